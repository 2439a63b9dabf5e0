"""The list of formats, and the way from a file to its profiles."""

from dataclasses import replace
from pathlib import Path

from scpslab.core.choices import one_of
from scpslab.core.errors import ScenarioError
from scpslab.core.folders import instead_of_a_file
from scpslab.core.problems import UnfitError
from scpslab.scenario.profiles.contacts import Hdtn, Ion, Tvg
from scpslab.scenario.profiles.emulators import Dipt, Mahimahi
from scpslab.scenario.profiles.format import LARGEST_BYTES, Format, Options, Table
from scpslab.scenario.profiles.measured import Iperf3, Irtt, Ping
from scpslab.scenario.profiles.orbits import Tle, by_elevation
from scpslab.scenario.profiles.profile import Imported

__all__ = ["FORMATS", "by_elevation", "content", "format_of", "read"]
ALL = (Table(), Mahimahi(), Ping(), Irtt(), Iperf3(), Ion(), Hdtn(), Tvg(), Dipt(), Tle())
FORMATS: dict[str, Format] = {one.name: one for one in ALL}


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
        problem = error.at((), "Correct the file.")
        raise ScenarioError(str(replace(problem, subject=problem.subject or path.name))) from error
