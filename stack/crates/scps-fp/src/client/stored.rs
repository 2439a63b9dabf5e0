//! What of a file is at either end: sizes, checksums, and whether a source is still the same (scps-fp §11.3).

use super::{Context, Fault, Remote};
use crate::command::FileType;
use crate::crc::find_crc;
use crate::partial::stored_size;
use crate::private::{part_name, part_path};
use crate::reply::find_size;
use cap_std::ambient_authority;
use cap_std::fs::Dir;
use std::path::Path;

pub(super) fn local_error(path: &Path) -> impl Fn(std::io::Error) -> Fault + '_ {
    move |e| Fault::Local(format!("{}: {e}", path.display()))
}

/// Where a stored beginning is looked for.
pub(super) struct Stored {
    /// Wire octets.
    pub size: u64,
    /// Name at the receiver.
    pub name: String,
}

/// What is known of a source when the transfer starts.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub(super) struct Source {
    pub size: Option<u64>,
    pub changed_at: Option<String>,
}

/// The folder and name of a local path.
pub(super) fn place(path: &Path) -> Result<(Dir, String), Fault> {
    let name = path.file_name().ok_or_else(|| Fault::Local(format!("{}: not a file name", path.display())))?;
    let folder = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let dir = Dir::open_ambient_dir(folder, ambient_authority()).map_err(local_error(folder))?;
    Ok((dir, name.to_string_lossy().into_owned()))
}

/// What of a file is stored here.
pub(super) fn stored_locally(local: &Path, file_type: FileType) -> Result<Option<Stored>, Fault> {
    let (folder, name) = place(local)?;
    for name in [part_name(&name), name] {
        if folder.metadata(&name).is_ok_and(|m| m.is_file()) {
            let file = folder.open(&name).map_err(local_error(local))?;
            let size = stored_size(&file, file_type).map_err(|e| Fault::Local(e.text))?;
            return Ok(Some(Stored { size, name }));
        }
    }
    Ok(None)
}

impl Remote {
    /// What of a file is stored at the server: our own servers keep a part beside the target.
    pub(super) fn stored(&mut self, cx: &mut Context<'_>, path: &str) -> Result<Option<Stored>, Fault> {
        let part = self.is_kin().then(|| part_path(path));
        for name in part.into_iter().chain([path.to_owned()]) {
            if let Some(size) = self.size(cx, &name)? {
                return Ok(Some(Stored { size, name }));
            }
        }
        Ok(None)
    }

    /// SIZE; `None` if the file does not exist or the server does not tell.
    pub(super) fn size(&mut self, cx: &mut Context<'_>, path: &str) -> Result<Option<u64>, Fault> {
        let reply = self.shown(cx, |cx, remote| remote.command(cx, &format!("SIZE {path}")))?;
        match reply.code {
            213 => Ok(find_size(&reply.text())),
            450 => Err(Fault::Refused(reply)),
            _ => Ok(None),
        }
    }

    /// SITE CRC; `None` if the server does not know it.
    pub(super) fn crc(&mut self, cx: &mut Context<'_>, path: &str) -> Result<Option<u32>, Fault> {
        if self.lacks.contains("SITE CRC") {
            return Ok(None);
        }
        let reply = self.shown(cx, |cx, remote| remote.command(cx, &format!("SITE CRC {path}")))?;
        if matches!(reply.code, 500..=504) {
            self.lacks.insert("SITE CRC");
        }
        Ok(find_crc(&reply.text()).filter(|_| reply.is_done()))
    }

    /// What is known of a file at the server.
    pub(super) fn source(&mut self, cx: &mut Context<'_>, path: &str) -> Result<Source, Fault> {
        let size = self.size(cx, path)?;
        let reply = self.shown(cx, |cx, remote| remote.extension(cx, "MDTM", &format!("MDTM {path}")))?;
        Ok(Source { size, changed_at: reply.filter(|r| r.code == 213).map(|r| r.text()) })
    }
}
