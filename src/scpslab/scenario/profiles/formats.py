"""The list of formats, and the way from a file to its profiles."""

from __future__ import annotations

from pathlib import Path

from scpslab.core.choices import one_of
from scpslab.core.errors import ScenarioError
from scpslab.core.folders import instead_of_a_file
from scpslab.core.problems import UnfitError
from scpslab.scenario.profiles.dipt import Dipt
from scpslab.scenario.profiles.format import LARGEST_BYTES, Format, Options
from scpslab.scenario.profiles.hdtn import Hdtn
from scpslab.scenario.profiles.ion import Ion
from scpslab.scenario.profiles.iperf3 import Iperf3
from scpslab.scenario.profiles.irtt import Irtt
from scpslab.scenario.profiles.mahimahi import Mahimahi
from scpslab.scenario.profiles.orbits import Tle, by_elevation
from scpslab.scenario.profiles.ping import Ping
from scpslab.scenario.profiles.profile import Imported
from scpslab.scenario.profiles.table import Table
from scpslab.scenario.profiles.tvg import Tvg

__all__ = ["FORMATS", "by_elevation", "content", "format_of", "read"]
# A line for each format.
FORMATS: dict[str, Format] = {
    one.name: one
    for one in (
        Table(),
        Mahimahi(),
        Ping(),
        Irtt(),
        Iperf3(),
        Ion(),
        Hdtn(),
        Tvg(),
        Dipt(),
        Tle(),
    )
}


def format_of(path: Path, named: str | None) -> Format:
    """The format that a person names, or that a file's suffix says.

    Raises:
        ScenarioError: there is none.
    """
    if named is not None:
        if named not in FORMATS:
            raise ScenarioError(f'--format: found "{named}"; {one_of(named, FORMATS)}')
        return FORMATS[named]
    for one in FORMATS.values():
        if path.suffix in one.suffixes:
            return one
    raise ScenarioError(
        f"{path}: found no suffix of a format; expected --format with one of {', '.join(FORMATS)}. Add it."
    )


def content(path: Path) -> bytes:
    """The bytes of a file.

    Raises:
        ScenarioError: it is not there, or is too large.
    """
    if not path.is_file():
        raise ScenarioError(
            f"{path}: found {instead_of_a_file(path) or 'no such file'}; expected a file. Name another."
        )
    if (size := path.stat().st_size) > LARGEST_BYTES:
        raise ScenarioError(f"{path}: found {size} bytes; expected at most {LARGEST_BYTES}. Shorten it.")
    return path.read_bytes()


def read(path: Path, named: str | None, options: Options) -> Imported:
    """The profiles of a file.

    Raises:
        ScenarioError: it has none.
    """
    try:
        return format_of(path, named).read(content(path), path.name, options)
    except UnfitError as error:
        subject = "" if error.problem.subject else f"{path.name}: "
        raise ScenarioError(f"{subject}{error}") from error
