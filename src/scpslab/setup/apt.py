"""A private apt in the cache folder: Debian 13's packages on any Debian or Ubuntu machine, without root and without touching the system's own.

The mirror is the machine's own Debian mirror, so that a site's mirror serves the lab too; SCPSLAB_MIRROR overrides it. A machine without a Debian
mirror, such as one with Ubuntu, uses mmdebstrap's default.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Sequence
from pathlib import Path

from scpslab.errors import CapabilityError
from scpslab.setup.job import Job

SUITE = "trixie"
KEYRING = Path("/usr/share/keyrings/debian-archive-keyring.gpg")
SYSTEM_SOURCES = Path("/etc/apt")
# `deb [options] URI suite …`, or `URIs: URI …` (deb822); a mirror of Debian itself ends in /debian.
SOURCE_LINE = re.compile(r"^(?:deb\s+(?:\[[^\]]*\]\s*)?|URIs:\s*)((?:https?|mirror\+https?)://\S+/debian)/?(?:\s|$)")
# The line of mmdebstrap, a Perl script, that names its default mirror.
DEFAULT_IN_SCRIPT = re.compile(r"^\s*my \$mirror\s*=\s*'(https?://[^'\s]+/debian)'", re.MULTILINE)


def mirror(sources: Path = SYSTEM_SOURCES, bootstrap: str | None = None) -> str:
    """The address of a Debian mirror. `bootstrap` is mmdebstrap's file (default: the one on the path).

    Raises:
        CapabilityError: neither the machine nor mmdebstrap names one.
    """
    if given := os.environ.get("SCPSLAB_MIRROR"):
        return given.rstrip("/")
    for file in [sources / "sources.list", *sorted((sources / "sources.list.d").glob("*"))]:
        if file.suffix not in (".list", ".sources") or not file.is_file():
            continue
        for line in file.read_text(errors="replace").splitlines():
            if found := SOURCE_LINE.match(line):
                return found[1]
    script = bootstrap or shutil.which("mmdebstrap")
    if script and (default := DEFAULT_IN_SCRIPT.search(Path(script).read_text(errors="replace"))):
        return default[1]
    raise CapabilityError(f"{sources}: found no mirror of Debian; expected one there or in mmdebstrap. Set SCPSLAB_MIRROR to the address of a mirror.")


def sources_line() -> str:
    """The suite from which guest and kernel come, as a line of apt's sources.list.

    Raises:
        CapabilityError: this machine lacks the Debian archive keys, or names no mirror.
    """
    if not KEYRING.is_file():
        raise CapabilityError(f"{KEYRING}: found no such file; expected the Debian archive keys. Run: make packages.")
    return f"deb [signed-by={KEYRING}] {mirror()} {SUITE} main"


def download(packages: Sequence[str], folder: Path, job: Job) -> list[Path]:
    """Fetches the newest versions of packages of Debian 13 into `folder`; returns their files.

    Raises:
        CapabilityError: no network, or apt failed.
    """
    root = folder / "apt"
    for part in ("lists/partial", "archives/partial", "etc/none"):
        (root / part).mkdir(parents=True)
    (root / "status").touch()
    (root / "etc" / "sources.list").write_text(sources_line() + "\n")
    settings = {
        "Dir::State": root,
        "Dir::State::lists": root / "lists",
        "Dir::State::status": root / "status",
        "Dir::Cache": root,
        "Dir::Cache::archives": root / "archives",
        "Dir::Etc::sourcelist": root / "etc" / "sources.list",
        "Dir::Etc::sourceparts": root / "etc" / "none",
        "Dir::Etc::preferences": root / "etc" / "no-preferences",
        "Dir::Etc::preferencesparts": root / "etc" / "none",
        "APT::Architecture": "amd64",
        "APT::Sandbox::User": "",
        # Without this setting, apt only warns about a mirror that cannot be reached.
        "APT::Update::Error-Mode": "any",
        "Acquire::Languages": "none",
        "Acquire::Retries": "3",
    }
    options = [word for name, value in settings.items() for word in ("-o", f"{name}={value}")]
    job.run(["apt-get", *options, "update"])
    job.run(["apt-get", *options, "download", *packages], cwd=folder)
    return [next(folder.glob(f"{package}_*.deb")) for package in packages]
