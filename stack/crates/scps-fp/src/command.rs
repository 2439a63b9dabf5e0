//! The grammar of command lines (scps-fp §1, §3).

use crate::address::{decimal, parse_eprt, parse_port};
use std::net::SocketAddr;

/// Representation of a file on the wire.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum FileType {
    /// Octets as they are.
    #[default]
    Image,
    /// Lines end in CR LF on the wire.
    Ascii,
}

impl FileType {
    /// The letter of TYPE.
    pub fn letter(self) -> char {
        match self {
            FileType::Image => 'I',
            FileType::Ascii => 'A',
        }
    }
}

/// The words of SITE.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Site {
    /// Server clock.
    Time,
    /// Checksum of a stored file.
    Crc(String),
    /// Checksums in completion replies on or off.
    CrcSwitch(bool),
    /// End of the server, if allowed.
    Terminate,
}

/// A command, its arguments checked as far as that needs no state.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Command {
    /// Login name.
    User(String),
    /// Password. Never printed: see [`Command::verb`].
    Pass(String),
    /// Account.
    Acct,
    /// Change directory.
    Cwd(String),
    /// To the parent directory.
    Cdup,
    /// Print directory.
    Pwd,
    /// End.
    Quit,
    /// Data address, also EPRT.
    Port(SocketAddr),
    /// Passive.
    Pasv,
    /// Extended passive.
    Epsv,
    /// Representation.
    Type(FileType),
    /// Structure: only "file".
    Stru,
    /// Mode: only "stream".
    Mode,
    /// Send a file.
    Retr(String),
    /// Store a file.
    Stor(String),
    /// Store under a unique name.
    Stou(Option<String>),
    /// Append.
    Appe(String),
    /// Octets the whole file will have.
    Allo(u64),
    /// Restart marker.
    Rest(u64),
    /// Rename from.
    Rnfr(String),
    /// Rename to.
    Rnto(String),
    /// End a transfer and undo it.
    Abor,
    /// End a transfer and keep what there is.
    Intr,
    /// Delete a file.
    Dele(String),
    /// Remove a directory.
    Rmd(String),
    /// Make a directory.
    Mkd(String),
    /// Long listing.
    List(Option<String>),
    /// Names.
    Nlst(Option<String>),
    /// Local services.
    Site(Site),
    /// System type.
    Syst,
    /// State, or a listing.
    Stat(Option<String>),
    /// Help.
    Help(Option<String>),
    /// Nothing.
    Noop,
    /// Automatic restart on or off (ARST, NARS).
    AutoRestart(bool),
    /// Best effort on, with a fill octet.
    Bets(Option<u8>),
    /// Best effort off.
    Nbes,
    /// Copy a file on the server.
    Copy(String, String),
    /// Idle time-out, seconds.
    Idle(u32),
    /// Reply text off or on (SUPP, NSUP).
    Suppress(bool),
    /// Read ranges named in a control file.
    Read(String),
    /// Size of a file.
    Size(String),
    /// Update records as a control file says.
    Updt(String),
    /// Features.
    Feat,
    /// Options.
    Opts(String),
    /// Time of modification.
    Mdtm(String),
}

/// Why a line is no command.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum CommandError {
    /// No such verb: 500.
    #[error("unknown command {0}")]
    Unknown(String),
    /// A verb of FTP that is not offered: 502.
    #[error("{0} is not implemented")]
    NotImplemented(&'static str),
    /// Arguments missing, too many or malformed: 501.
    #[error("{verb}: {expected}")]
    Argument {
        /// The verb.
        verb: &'static str,
        /// What should have been there.
        expected: &'static str,
    },
    /// A parameter that exists but is not offered: 504.
    #[error("{verb}: only {offered} is offered")]
    Parameter {
        /// The verb.
        verb: &'static str,
        /// What is.
        offered: &'static str,
    },
}

impl CommandError {
    /// The reply code.
    pub fn code(&self) -> u16 {
        match self {
            CommandError::Unknown(_) => 500,
            CommandError::NotImplemented(_) => 502,
            CommandError::Argument { .. } => 501,
            CommandError::Parameter { .. } => 504,
        }
    }
}

/// Every verb, upper case; the order of HELP.
pub const VERBS: [&str; 48] = [
    "ABOR", "ACCT", "ALLO", "APPE", "ARST", "BETS", "CDUP", "COPY", "CWD", "DELE", "EPRT", "EPSV", "FEAT", "HELP",
    "IDLE", "INTR", "LIST", "MDTM", "MKD", "MODE", "NARS", "NBES", "NLST", "NOOP", "NSUP", "OPTS", "PASS", "PASV",
    "PORT", "PWD", "QUIT", "READ", "REST", "RETR", "RMD", "RNFR", "RNTO", "SITE", "SIZE", "STAT", "STOR", "STOU",
    "STRU", "SUPP", "SYST", "TYPE", "UPDT", "USER",
];

/// Verbs of RFC 959 and its kin that are known but not offered, and the older spellings that are.
const NOT_OFFERED: [&str; 5] = ["REIN", "SMNT", "AUTH", "PBSZ", "PROT"];
const SPELLINGS: [(&str, &str); 5] =
    [("XCUP", "CDUP"), ("XPWD", "PWD"), ("XCWD", "CWD"), ("XMKD", "MKD"), ("XRMD", "RMD")];

const PATH: &str = "expected one pathname in UTF-8 without control characters";
const NOTHING: &str = "takes no argument";
/// Largest idle time-out (scps-fp §3.1).
const IDLE_MAX: u32 = 32_767;

fn known(verb: &str) -> Option<&'static str> {
    let upper = verb.to_ascii_uppercase();
    let alias = SPELLINGS.iter().find(|(old, _)| *old == upper).map(|(_, new)| *new);
    alias.or_else(|| VERBS.iter().copied().find(|v| *v == upper))
}

impl Command {
    /// Reads a line without its end.
    pub fn parse(line: &[u8]) -> Result<Command, CommandError> {
        let text = String::from_utf8_lossy(line);
        let text = text.trim_start_matches(' ');
        let (word, rest) = text.split_once(' ').map_or((text, None), |(w, r)| (w, Some(r)));
        let Some(verb) = known(word) else {
            let upper = word.to_ascii_uppercase();
            if let Some(verb) = NOT_OFFERED.iter().find(|v| **v == upper) {
                return Err(CommandError::NotImplemented(verb));
            }
            let shown = word.chars().filter(char::is_ascii_graphic).take(16).collect();
            return Err(CommandError::Unknown(shown));
        };
        parse_arguments(Arguments { verb, rest: rest.filter(|r| !r.is_empty()) })
    }

    /// The verb and its visible arguments, for logs: a password is never part of it.
    pub fn verb(line: &[u8]) -> String {
        let text = String::from_utf8_lossy(line);
        let shown: String = text.chars().flat_map(char::escape_default).take(120).collect();
        match shown.split_once(' ') {
            Some((verb, _)) if verb.eq_ignore_ascii_case("PASS") || verb.eq_ignore_ascii_case("ACCT") => {
                format!("{verb} ****")
            }
            _ => shown,
        }
    }
}

#[derive(Clone, Copy)]
struct Arguments<'a> {
    verb: &'static str,
    rest: Option<&'a str>,
}

impl Arguments<'_> {
    fn wrong(&self, expected: &'static str) -> CommandError {
        CommandError::Argument { verb: self.verb, expected }
    }

    fn none(&self, command: Command) -> Result<Command, CommandError> {
        match self.rest.map(str::trim) {
            None | Some("") => Ok(command),
            Some(_) => Err(self.wrong(NOTHING)),
        }
    }

    /// Everything after the verb is one pathname, blanks included.
    fn path(&self) -> Result<String, CommandError> {
        self.rest.filter(|p| is_path(p)).map(str::to_owned).ok_or_else(|| self.wrong(PATH))
    }

    /// A pathname that may be absent; options of `ls` before it are skipped.
    fn listing(&self) -> Result<Option<String>, CommandError> {
        let mut rest = self.rest.unwrap_or("").trim_start();
        while rest.starts_with('-') {
            rest = rest.split_once(' ').map_or("", |(_, r)| r).trim_start();
        }
        match rest {
            "" => Ok(None),
            path if is_path(path) => Ok(Some(path.to_owned())),
            _ => Err(self.wrong(PATH)),
        }
    }

    fn number<T: std::str::FromStr>(&self, expected: &'static str) -> Result<T, CommandError> {
        self.rest.map(str::trim).and_then(decimal).ok_or_else(|| self.wrong(expected))
    }

    fn word(&self) -> Result<String, CommandError> {
        self.rest
            .map(|r| r.trim().to_ascii_uppercase())
            .filter(|w| !w.is_empty())
            .ok_or_else(|| self.wrong("expected a word"))
    }

    fn two_paths(&self) -> Result<Command, CommandError> {
        const EXPECTED: &str = "expected two pathnames; quote those with blanks";
        let words = split_quoted(self.rest.unwrap_or("")).ok_or_else(|| self.wrong(EXPECTED))?;
        match <[String; 2]>::try_from(words) {
            Ok([from, to]) if is_path(&from) && is_path(&to) => Ok(Command::Copy(from, to)),
            _ => Err(self.wrong(EXPECTED)),
        }
    }

    fn site(&self) -> Result<Command, CommandError> {
        const EXPECTED: &str = "expected TIME, CRC path, CRCON, CRCOFF or TERMINATE";
        let rest = self.rest.unwrap_or("").trim_start();
        let (word, path) = rest.split_once(' ').unwrap_or((rest, ""));
        let site = match word.to_ascii_uppercase().as_str() {
            "TIME" => Site::Time,
            "CRC" if is_path(path) => Site::Crc(path.to_owned()),
            "CRCON" => Site::CrcSwitch(true),
            "CRCOFF" => Site::CrcSwitch(false),
            "TERMINATE" => Site::Terminate,
            _ => return Err(self.wrong(EXPECTED)),
        };
        Ok(Command::Site(site))
    }

    fn only(
        &self,
        accepted: &[&str],
        known: &[&str],
        command: Command,
        offered: &'static str,
    ) -> Result<Command, CommandError> {
        let word = self.word()?;
        if accepted.contains(&word.as_str()) {
            Ok(command)
        } else if known.contains(&word.as_str()) {
            Err(CommandError::Parameter { verb: self.verb, offered })
        } else {
            Err(self.wrong("unknown parameter"))
        }
    }
}

/// A pathname that may be used: not empty, no NUL, CR or LF, and no U+FFFD, which stands for octets that are not UTF-8: names with
/// different ones would be one name.
pub fn is_path(path: &str) -> bool {
    !path.is_empty() && !path.contains(['\0', '\r', '\n', char::REPLACEMENT_CHARACTER])
}

/// Words separated by blanks; a word in double quotes may hold blanks, and quotes as pairs.
pub fn split_quoted(text: &str) -> Option<Vec<String>> {
    let mut words = Vec::new();
    let mut chars = text.chars().peekable();
    loop {
        while chars.next_if_eq(&' ').is_some() {}
        let Some(&first) = chars.peek() else { return Some(words) };
        let mut word = String::new();
        if first == '"' {
            chars.next();
            loop {
                match chars.next()? {
                    '"' if chars.next_if_eq(&'"').is_some() => word.push('"'),
                    '"' => break,
                    c => word.push(c),
                }
            }
            if chars.peek().is_some_and(|c| *c != ' ') {
                return None;
            }
        } else {
            while let Some(c) = chars.next_if(|c| *c != ' ') {
                word.push(c);
            }
        }
        words.push(word);
    }
}

/// Commands separated by semicolons; one in a word that [`split_quoted`] takes for quoted separates nothing.
pub fn split_commands(text: &str) -> Vec<&str> {
    let mut commands = Vec::new();
    let (mut start, mut in_quotes, mut begins_word) = (0, false, true);
    for (at, c) in text.char_indices() {
        match c {
            // A pair of quotes within quotes ends them and begins them again.
            '"' if in_quotes => (in_quotes, begins_word) = (false, true),
            _ if in_quotes => {}
            '"' if begins_word => in_quotes = true,
            ';' => {
                commands.push(text[start..at].trim());
                (start, begins_word) = (at + 1, true);
            }
            _ => begins_word = c.is_whitespace(),
        }
    }
    commands.push(text[start..].trim());
    commands
}

fn parse_arguments(a: Arguments<'_>) -> Result<Command, CommandError> {
    Ok(match a.verb {
        "USER" => Command::User(a.rest.map(str::to_owned).ok_or_else(|| a.wrong("expected a name"))?),
        // An empty password is a password.
        "PASS" => Command::Pass(a.rest.unwrap_or("").to_owned()),
        "ACCT" => Command::Acct,
        "CWD" => Command::Cwd(a.path()?),
        "CDUP" => a.none(Command::Cdup)?,
        "PWD" => a.none(Command::Pwd)?,
        "QUIT" => a.none(Command::Quit)?,
        "PORT" => Command::Port(
            a.rest.map(str::trim).and_then(parse_port).ok_or_else(|| a.wrong("expected six octets h,h,h,h,p,p"))?,
        ),
        "EPRT" => Command::Port(
            a.rest.map(str::trim).and_then(parse_eprt).ok_or_else(|| a.wrong("expected |family|address|port|"))?,
        ),
        "PASV" => a.none(Command::Pasv)?,
        "EPSV" => Command::Epsv,
        "TYPE" => match a.word()?.as_str() {
            "A" | "A N" => Command::Type(FileType::Ascii),
            "I" | "L 8" => Command::Type(FileType::Image),
            _ => return Err(CommandError::Parameter { verb: "TYPE", offered: "A, A N, I or L 8" }),
        },
        "STRU" => a.only(&["F", "1"], &["R", "P", "2", "3"], Command::Stru, "file structure (F)")?,
        "MODE" => a.only(&["S", "1"], &["B", "C", "2", "3"], Command::Mode, "stream mode (S)")?,
        "RETR" => Command::Retr(a.path()?),
        "STOR" => Command::Stor(a.path()?),
        "STOU" => Command::Stou(a.rest.map(|_| a.path()).transpose()?),
        "APPE" => Command::Appe(a.path()?),
        // The second form, "n R m", gives a record size, which a stream of octets has not.
        "ALLO" => {
            Command::Allo(a.rest.and_then(|r| decimal(r.split(' ').next()?)).ok_or_else(|| a.wrong("expected octets"))?)
        }
        "REST" => Command::Rest(a.number("expected an octet count")?),
        "RNFR" => Command::Rnfr(a.path()?),
        "RNTO" => Command::Rnto(a.path()?),
        "ABOR" => a.none(Command::Abor)?,
        "INTR" => a.none(Command::Intr)?,
        "DELE" => Command::Dele(a.path()?),
        "RMD" => Command::Rmd(a.path()?),
        "MKD" => Command::Mkd(a.path()?),
        "LIST" => Command::List(a.listing()?),
        "NLST" => Command::Nlst(a.listing()?),
        "SITE" => a.site()?,
        "SYST" => a.none(Command::Syst)?,
        "STAT" => Command::Stat(a.listing()?),
        "HELP" => Command::Help(a.rest.map(str::to_owned)),
        "NOOP" => a.none(Command::Noop)?,
        "ARST" => a.none(Command::AutoRestart(true))?,
        "NARS" => a.none(Command::AutoRestart(false))?,
        "BETS" if a.rest.is_none() => Command::Bets(None),
        "BETS" => Command::Bets(Some(a.number("expected a fill octet 0..255")?)),
        "NBES" => a.none(Command::Nbes)?,
        "COPY" => a.two_paths()?,
        "IDLE" => match a.number::<u32>("expected seconds 1..32767")? {
            0 => return Err(a.wrong("expected seconds 1..32767")),
            n if n > IDLE_MAX => return Err(a.wrong("expected seconds 1..32767")),
            n => Command::Idle(n),
        },
        "SUPP" => a.none(Command::Suppress(true))?,
        "NSUP" => a.none(Command::Suppress(false))?,
        "READ" => Command::Read(a.path()?),
        "SIZE" => Command::Size(a.path()?),
        "UPDT" => Command::Updt(a.path()?),
        "FEAT" => a.none(Command::Feat)?,
        "OPTS" => Command::Opts(a.word()?),
        "MDTM" => Command::Mdtm(a.path()?),
        _ => return Err(CommandError::NotImplemented(a.verb)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<Command, u16> {
        Command::parse(line.as_bytes()).map_err(|e| e.code())
    }

    #[test]
    fn verbs_ignore_case_and_extra_blanks() {
        assert_eq!(parse("retr a"), Ok(Command::Retr("a".into())));
        assert_eq!(parse("nOoP"), Ok(Command::Noop));
        assert_eq!(parse("NOOP "), Ok(Command::Noop));
        assert_eq!(parse("\tNOOP"), Err(500));
    }

    #[test]
    fn a_pathname_may_hold_blanks() {
        assert_eq!(parse("STOR two words"), Ok(Command::Stor("two words".into())));
        assert_eq!(parse("RETR  lead"), Ok(Command::Retr(" lead".into())));
        assert_eq!(parse("RETR a\0b"), Err(501));
        assert_eq!(parse("RETR"), Err(501));
    }

    #[test]
    fn copy_takes_two_names_quoted_if_need_be() {
        assert_eq!(parse("COPY a b"), Ok(Command::Copy("a".into(), "b".into())));
        assert_eq!(parse("COPY \"a \"\"b\" c"), Ok(Command::Copy("a \"b".into(), "c".into())));
        for bad in ["COPY a", "COPY a b c", "COPY \"a b", "COPY", "COPY \"a\"b c"] {
            assert_eq!(parse(bad), Err(501), "{bad}");
        }
    }

    #[test]
    fn numbers_are_checked() {
        assert_eq!(parse("REST 3000000000"), Ok(Command::Rest(3_000_000_000)));
        for bad in ["REST", "REST -1", "REST x", "REST 99999999999999999999", "IDLE 0", "IDLE 32768", "BETS 256"] {
            assert_eq!(parse(bad), Err(501), "{bad}");
        }
        assert_eq!(parse("IDLE 5"), Ok(Command::Idle(5)));
        assert_eq!(parse("BETS 32"), Ok(Command::Bets(Some(32))));
    }

    #[test]
    fn parameters_are_letters_or_the_digits_of_the_reference() {
        for good in ["MODE S", "MODE 1"] {
            assert_eq!(parse(good), Ok(Command::Mode));
        }
        for good in ["STRU F", "stru 1"] {
            assert_eq!(parse(good), Ok(Command::Stru));
        }
        for unoffered in ["MODE B", "MODE C", "MODE 2", "STRU R", "STRU P", "TYPE E", "TYPE L 9"] {
            assert_eq!(parse(unoffered), Err(504), "{unoffered}");
        }
        assert_eq!(parse("TYPE A N"), Ok(Command::Type(FileType::Ascii)));
        assert_eq!(parse("TYPE L 8"), Ok(Command::Type(FileType::Image)));
    }

    #[test]
    fn listings_skip_the_options_of_ls() {
        assert_eq!(parse("LIST -la"), Ok(Command::List(None)));
        assert_eq!(parse("LIST -l -a dir"), Ok(Command::List(Some("dir".into()))));
    }

    #[test]
    fn a_semicolon_in_quotes_separates_nothing() {
        assert_eq!(split_commands("put f; get g"), ["put f", "get g"]);
        assert_eq!(split_commands(r#"put "semi;colon.bin" g;ls"#), [r#"put "semi;colon.bin" g"#, "ls"]);
        assert_eq!(split_commands(r#"put "a"";b" c"#), [r#"put "a"";b" c"#]);
        // A quote within a word is a letter of it.
        assert_eq!(split_commands(r#"get 5"disk; ls;"#), [r#"get 5"disk"#, "ls", ""]);
        // What has no end is one command, and that says so.
        assert_eq!(split_commands(r#"ls; put "a; quit"#), ["ls", r#"put "a; quit"#]);
    }

    #[test]
    fn unknown_and_unoffered_verbs_differ() {
        assert_eq!(parse("FROB x"), Err(500));
        assert_eq!(parse("REIN"), Err(502));
        assert_eq!(parse("USERX a"), Err(500));
    }

    #[test]
    fn every_verb_is_understood_with_some_argument() {
        for verb in VERBS {
            let tries = ["", " a", " 1", " a b", " 1,2,3,4,5,6", " |1|1.2.3.4|5|", " TIME", " F", " S", " I"];
            assert!(tries.iter().any(|t| parse(&format!("{verb}{t}")).is_ok()), "{verb}");
        }
    }

    #[test]
    fn a_password_is_never_shown() {
        assert_eq!(Command::verb(b"PASS secret"), "PASS ****");
        assert_eq!(Command::verb(b"pass  secret"), "pass ****");
        assert_eq!(Command::verb(b"RETR a\x1b"), "RETR a\\u{1b}");
    }
}
