"""The exact versions that a recipe was published with (versions.txt): one package a line, and the day on which a Debian
mirror had them all.

A line is `NAME VERSION`, or `NAME VERSION SHA256` where the package file itself is the recipe's source.
"""

import re
from dataclasses import dataclass
from pathlib import Path

from scpslab.core.errors import CapabilityError

FILE = "versions.txt"
DATE = re.compile(r"date (\d{8}T\d{6}Z)", re.ASCII)
# As Debian's policy manual writes names and versions.
PACKAGE = re.compile(r"([a-z0-9][a-z0-9+.-]+) ((?:\d+:)?[0-9][A-Za-z0-9.+~-]*)(?: ([0-9a-f]{64}))?", re.ASCII)


@dataclass(frozen=True)
class Package:
    """A package's name and version; `sha256` of its file, where the recipe says it."""

    name: str
    version: str
    sha256: str = ""


@dataclass(frozen=True)
class Versions:
    """`date` is written as Debian's snapshot service writes it."""

    date: str
    packages: tuple[Package, ...]


def read(file: Path) -> Versions:
    """The versions of a recipe.

    Raises:
        CapabilityError: a line is something else, a package comes twice, or there is no date or no package.
    """
    date, packages = "", list[Package]()
    for number, line in enumerate(file.read_text(encoding="utf-8", errors="replace").splitlines(), 1):
        if not line or line.startswith("#"):
            continue
        if not date and (day := DATE.fullmatch(line)):
            date = day[1]
        elif date and (found := PACKAGE.fullmatch(line)) and found[1] not in {package.name for package in packages}:
            packages.append(Package(found[1], found[2], found[3] or ""))
        else:
            wanted = "NAME VERSION or NAME VERSION SHA256, each name once" if date else "date YYYYMMDDTHHMMSSZ"
            raise CapabilityError(f'{file}:{number}: found "{line}"; expected {wanted}. Run: make pin.')
    if not packages:
        raise CapabilityError(f"{file}: found no package; expected a date and a line for each package. Run: make pin.")
    return Versions(date, tuple(packages))


def text(versions: Versions, comment: str) -> str:
    """The file's text. `comment` is its first line."""
    rows = [" ".join(filter(None, (package.name, package.version, package.sha256))) for package in versions.packages]
    return "\n".join([f"# {comment}", f"date {versions.date}", *rows]) + "\n"


def of_file(package: Path) -> str:
    """The version in the name of a package's file, NAME_VERSION_ARCHITECTURE.deb, in which a colon is written %3a."""
    return package.name.split("_")[1].replace("%3a", ":")


def differences(wanted: Versions, found: dict[str, str]) -> list[str]:
    """What differs between the versions of a recipe and those that were taken, one text a package."""
    asked = {package.name: package.version for package in wanted.packages}
    texts = [
        f"{name} {found[name]} for {version}" if name in found else f"no {name}"
        for name, version in asked.items()
        if found.get(name) != version
    ]
    return [*texts, *(f"{name} {version} besides" for name, version in sorted(found.items()) if name not in asked)]
