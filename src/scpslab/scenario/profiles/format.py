"""What a format of profiles is: a class, with a line in the list of formats."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from datetime import datetime
from typing import ClassVar

from scpslab.core import strict_json
from scpslab.core.problems import UnfitError
from scpslab.scenario.profiles.profile import MS_NS, SECOND_NS, Imported, Profile

LARGEST_BYTES = 64 << 20


@dataclass(frozen=True)
class Pass:
    """Who sees whom: stations (degrees, degrees, metres), from when and for how long, at which steps and least
    elevation. `hand_over_ns`: so often the best satellite is chosen anew; 0: at every step.
    """

    stations: tuple[tuple[float, float, float], ...]
    start: datetime
    lasts_ns: int
    step_ns: int = SECOND_NS // 10
    least_deg: float = 25.0
    hand_over_ns: int = 0
    by_elevation: tuple[tuple[float, int, float], ...] = ()


@dataclass(frozen=True)
class Options:
    """What a person says of a file that the file does not. `delays`: the file of delays beside one of opportunities,
    and its name; `every_ns`: the time between lines without times, `nodes`: the ends of what is written.
    """

    delays: tuple[str, bytes] | None = None
    delay_every_ns: int = 10 * MS_NS
    probe_every_ns: int = SECOND_NS
    one_way: bool = False
    nodes: tuple[int, int] = (1, 2)
    orbit: Pass | None = None


class Format(ABC):
    """A format: `says` explains it in a line."""

    name: ClassVar[str]
    suffixes: ClassVar[tuple[str, ...]]
    says: ClassVar[str]

    @abstractmethod
    def read(self, data: bytes, name: str, options: Options) -> Imported:
        """The profiles of a file of that name.

        Raises:
            UnfitError: it is none; the error's subject is the file with its line.
        """

    def write(self, profile: Profile, options: Options) -> str:
        """The text of a profile.

        Raises:
            UnfitError: the format cannot say it.
        """
        raise UnfitError(f"the format {self.name}", "one that can be written", "Choose csv, hdtn, ion or mahimahi.")


def json_object(data: bytes, name: str) -> strict_json.JsonObject:
    """The object of a JSON file.

    Raises:
        UnfitError: there is none.
    """
    try:
        value = strict_json.loads(data)
    except strict_json.JsonError as error:
        raise UnfitError(str(error).removeprefix("found "), "JSON", "Correct the file.", name) from error
    if not isinstance(value, dict):
        raise UnfitError("JSON without keys", "an object", "Choose another format.", name)
    return value
