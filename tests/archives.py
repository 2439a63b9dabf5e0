"""Archives of runs taken apart and packed again, as somebody who changes them does: with the right digests."""

import gzip
import hashlib
import io
import json
import tarfile
from collections.abc import Iterable
from pathlib import Path


def members(archive: Path) -> dict[str, bytes]:
    """The content of every file, by name."""
    with tarfile.open(archive, "r:gz") as packed:
        return {member.name: packed.extractfile(member).read() for member in packed}


def listed(files: dict[str, bytes], inputs: Iterable[str] = ()) -> dict[str, bytes]:
    """The files with the digests of them all in archive.json, `inputs` of the run among them."""
    contents = json.loads(files["archive.json"])
    for run in contents["runs"]:
        run["inputs"] |= dict.fromkeys(inputs, "")
        for names in (run["files"], run["inputs"]):
            for name in names:
                if (member := f"{run['run']}/{name}") in files:
                    names[name] = hashlib.sha256(files[member]).hexdigest()
    return files | {"archive.json": json.dumps(contents).encode()}


def pack(files: dict[str, bytes], target: Path, before: Iterable[bytes] = ()) -> Path:
    """Writes an archive of files, behind some bytes."""
    with target.open("wb") as raw, gzip.GzipFile("", "wb", 1, raw, 0) as zipped:
        for part in before:
            zipped.write(part)
        with tarfile.open(fileobj=zipped, mode="w") as tar:
            for name, content in files.items():
                entry = tarfile.TarInfo(name)
                entry.size = len(content)
                tar.addfile(entry, io.BytesIO(content))
    return target
