"""What a network's nodes have besides the guest image: packages by their names, and programs of the user's."""

import re
from typing import Annotated, Literal, NamedTuple

from scpslab.plan.schema import Items, Part, Text
from scpslab.plan.values import Seed

Registry = Literal["debian", "pypi", "crate"]
# Debian policy 5.6.1 and 5.6.12; PEP 508 and 440; names and versions of crates.io.
SPELLINGS: dict[Registry, str] = {
    "debian": r"([a-z0-9][a-z0-9+.-]{1,99})(?:=([A-Za-z0-9][A-Za-z0-9.+:~-]{0,99}))?",
    "pypi": r"pypi:([A-Za-z0-9][A-Za-z0-9._-]{0,99})==([A-Za-z0-9][A-Za-z0-9.!+]{0,99})",
    "crate": r"crate:([A-Za-z][A-Za-z0-9_-]{0,63})@([0-9][A-Za-z0-9.+-]{0,99})",
}
EXPECTED = "NAME or NAME=VERSION of Debian, pypi:NAME==VERSION, or crate:NAME@VERSION"
MOST_PACKAGES = 100


class Wanted(NamedTuple):
    """A package of a registry; `version` None: the newest."""

    registry: Registry
    name: str
    version: str | None


def wanted(text: str) -> Wanted | None:
    """The package that a text names; None if it names none."""
    for registry, spelling in SPELLINGS.items():
        if found := re.fullmatch(spelling, text, re.ASCII):
            return Wanted(registry, found[1], found[2])
    return None


PackageName = Annotated[str, Text(EXPECTED, lambda text: wanted(text) is not None)]


class Pack(Part):
    """Layers over the guest image: `packages` of registries, with what they need; `programs`: the SHA-256 of a tar of
    the user's own.
    """

    packages: Annotated[tuple[PackageName, ...], Items(0, MOST_PACKAGES)]
    programs: Seed | None = None
