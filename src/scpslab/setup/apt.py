"""A private apt in the cache folder: Debian 13's packages on any Debian or Ubuntu machine, without root and without
touching the system's own.

The mirror is the machine's own Debian mirror, so that a site's mirror serves the lab too; SCPSLAB_MIRROR overrides it.
A machine without a Debian mirror, such as one with Ubuntu, uses mmdebstrap's default. Versions that a mirror no longer
has come from the snapshot service whose address is in SCPSLAB_SNAPSHOT.
"""

import os
import re
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from scpslab.core.errors import CapabilityError
from scpslab.core.installation import PACKAGES
from scpslab.setup.job import Job

SUITE = "trixie"
KEYRING = Path("/usr/share/keyrings/debian-archive-keyring.gpg")
SYSTEM_SOURCES = Path("/etc/apt")
# A place that is asked only for an older version is not waited for as long as the mirror.
BRIEF = {"Acquire::Retries": "0", "Acquire::http::Timeout": "15", "Acquire::https::Timeout": "15"}
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
    raise CapabilityError(
        f"{sources}: found no mirror of Debian; expected one there or in mmdebstrap. "
        "Set SCPSLAB_MIRROR to the address of a mirror."
    )


@dataclass(frozen=True)
class Place:
    """A place that has packages: its name in messages, and its line of apt's sources.list.

    `needed`: without it nothing can be built.
    """

    title: str
    line: str
    needed: bool = False


def places(date: str, *, security: bool) -> list[Place]:
    """Where packages come from, in the order in which they are asked.

    `date`: see versions.py. `security`: also the suite of security updates.

    Raises:
        CapabilityError: this machine lacks the Debian archive keys, or names no mirror.
    """
    found = [Place(mirror(), sources_line(), needed=True)]
    if security:
        address = f"{mirror()}-security"
        found.append(Place(address, _line(address, f"{SUITE}-security")))
    if service := os.environ.get("SCPSLAB_SNAPSHOT"):
        address = f"{service.rstrip('/')}/{date}"
        found.append(Place(address, _line(address, SUITE, "check-valid-until=no ")))
    return found


def sources_line() -> str:
    """The suite from which guest and kernel come, as a line of apt's sources.list.

    Raises:
        CapabilityError: this machine lacks the Debian archive keys, or names no mirror.
    """
    return _line(mirror(), SUITE)


def _line(address: str, suite: str, options: str = "") -> str:
    if not KEYRING.is_file():
        raise CapabilityError(f"{KEYRING}: found no such file; expected the Debian archive keys. To fix: {PACKAGES}.")
    return f"deb [{options}signed-by={KEYRING}] {address} {suite} main"


class Apt:
    """An apt in a folder of its own, with the packages of some places."""

    def __init__(self, job: Job, folder: Path, places: Sequence[Place], status: str = "") -> None:
        """Fetches the lists of packages into `folder`, a new one. `status`: dpkg's, of what is there already.

        Raises:
            CapabilityError: no network, or apt failed.
        """
        for part in ("lists/partial", "archives/partial", "etc/none"):
            (folder / part).mkdir(parents=True)
        (folder / "status").write_text(status)
        self._archives = folder / "archives"
        (folder / "etc" / "sources.list").write_text("".join(f"{place.line}\n" for place in places))
        settings = {
            "Dir::State": folder,
            "Dir::State::lists": folder / "lists",
            "Dir::State::status": folder / "status",
            "Dir::Cache": folder,
            "Dir::Cache::archives": folder / "archives",
            "Dir::Etc::sourcelist": folder / "etc" / "sources.list",
            "Dir::Etc::sourceparts": folder / "etc" / "none",
            "Dir::Etc::preferences": folder / "etc" / "no-preferences",
            "Dir::Etc::preferencesparts": folder / "etc" / "none",
            "APT::Architecture": "amd64",
            "APT::Sandbox::User": "",
            "APT::Install-Recommends": "false",
            # It is nobody else's.
            "Debug::NoLocking": "1",
            # Without this setting, apt only warns about a mirror that cannot be reached.
            "APT::Update::Error-Mode": "any",
            "Acquire::Languages": "none",
            "Acquire::Retries": "3",
            **({} if any(place.needed for place in places) else BRIEF),
        }
        self._job = job
        self._options = [word for name, value in settings.items() for word in ("-o", f"{name}={value}")]
        job.run(["apt-get", *self._options, "update"])

    def versions(self, names: Sequence[str]) -> dict[str, set[str]]:
        """The versions of packages that the places have."""
        found: dict[str, set[str]] = {name: set() for name in names}
        for line in self._job.output(["apt-cache", *self._options, "madison", *names]).splitlines():
            # A line is `name | version | place`; other lines are warnings.
            words = [word.strip() for word in line.split("|")]
            if len(words) == 3 and words[0] in found:
                found[words[0]].add(words[1])
        return found

    def download(self, wanted: Sequence[str], folder: Path) -> list[Path]:
        """Fetches packages, each a name or `name=version`, into `folder`; returns their files.

        Raises:
            CapabilityError: apt failed.
        """
        for word in wanted:
            for old in folder.glob(f"{word.partition('=')[0]}_*.deb"):
                old.unlink()
        self._job.run(["apt-get", *self._options, "download", *wanted], cwd=folder)
        return [next(folder.glob(f"{word.partition('=')[0]}_*.deb")) for word in wanted]

    def download_with_dependencies(self, wanted: Sequence[str]) -> list[Path]:
        """Fetches packages, each a name or `name=version`, and what they need besides what is there already; returns
        their files.

        Raises:
            CapabilityError: apt failed.
        """
        self._job.run(["apt-get", *self._options, "--yes", "--download-only", "install", *wanted])
        return sorted(self._archives.glob("*.deb"))


def download(packages: Sequence[str], folder: Path, job: Job) -> list[Path]:
    """Fetches the newest versions of packages of Debian 13 into `folder`; returns their files.

    Raises:
        CapabilityError: no network, or apt failed.
    """
    return Apt(job, folder / "apt", [Place(mirror(), sources_line(), needed=True)]).download(packages, folder)
