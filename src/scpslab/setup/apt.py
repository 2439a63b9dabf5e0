"""A private apt in the cache folder: Debian 13's packages on any Debian or Ubuntu machine, without root and without touching the system's own.

The mirror is the one the machine uses for Debian, so that a site's mirror serves the lab too; SCPSLAB_MIRROR names another. A machine that uses
none, such as one with Ubuntu, gets the one that mmdebstrap takes by itself.
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
# Where mmdebstrap, a Perl script, says its own.
DEFAULT_IN_SCRIPT = re.compile(r"^\s*my \$mirror\s*=\s*'(https?://[^'\s]+/debian)'", re.MULTILINE)


def mirror(sources: Path = SYSTEM_SOURCES, bootstrap: str | None = None) -> str:
    """The address of a Debian mirror. `bootstrap` is mmdebstrap's file, if not the one on the path.

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
    raise CapabilityError(f"{sources}: found no mirror of Debian; expected one there or in mmdebstrap. Set SCPSLAB_MIRROR to one's address.")


def sources_line() -> str:
    """The suite the guest and the kernel come from, as apt's sources.list has it.

    Raises:
        CapabilityError: the keys that Debian signs with are not on this machine, or it names no mirror.
    """
    if not KEYRING.is_file():
        raise CapabilityError(f"{KEYRING}: found no such file; expected Debian's keys. Run: make packages.")
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
        # Without this, a mirror that cannot be reached is only a warning.
        "APT::Update::Error-Mode": "any",
        "Acquire::Languages": "none",
        "Acquire::Retries": "3",
    }
    options = [word for name, value in settings.items() for word in ("-o", f"{name}={value}")]
    job.run(["apt-get", *options, "update"])
    job.run(["apt-get", *options, "download", *packages], cwd=folder)
    return [next(folder.glob(f"{package}_*.deb")) for package in packages]
