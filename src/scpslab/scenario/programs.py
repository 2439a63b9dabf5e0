"""Workloads that run a Python file of the user's: what scenarios say of them, and how the file is read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, ClassVar

from scpslab.core.errors import ScenarioError
from scpslab.core.problems import Problem, UnfitError
from scpslab.documents.parts import Spelt
from scpslab.documents.quantities import Size
from scpslab.plan.programs import FILE, LEAST_PACKET_BYTES
from scpslab.plan.values import LONGEST_TEXT
from scpslab.scenario.workloads import Setting, Surroundings, Transfer

ProgramFile = Annotated[str, Spelt(f"^{FILE}$", "the name of a Python file: letters, digits, - and _, then .py")]


class Programmed(Transfer):
    """A transfer of datagrams that a Python file decides on.

    `named_by`: the key that names the file.
    """

    named_by: ClassVar[str]

    if TYPE_CHECKING:
        packet: Size

    @property
    def program_file(self) -> str:
        """The file, in the folder of the scenario."""
        name: str = getattr(self, self.named_by)
        return name

    def problems(self, around: Surroundings) -> Iterator[Problem]:
        """What does not fit."""
        if not LEAST_PACKET_BYTES <= self.packet <= around.mtu_bytes:
            expected = f"{LEAST_PACKET_BYTES} B to {around.mtu_bytes} B, the MTU of the path"
            yield Problem(("packet",), f'"{self.packet.text}"', expected, "Correct the value.")
        try:
            _program(around.folder / self.program_file)
        except UnfitError as error:
            yield error.at((self.named_by,))
        yield from super().problems(around)

    def derived(self, setting: Setting) -> Mapping[str, object]:
        """The file's text goes with the plan."""
        return {
            **super().derived(setting),
            "file": self.program_file,
            "code": read_program(setting.folder / self.program_file),
            "from_ip": setting.source(self.from_, self.to),
        }


def read_program(path: Path) -> str:
    """The text of a program; it is read and not run.

    Raises:
        ScenarioError: there is no such file, or it is no Python.
    """
    try:
        return _program(path)
    except UnfitError as error:
        raise ScenarioError(str(error)) from error


def _program(path: Path) -> str:
    expected = "a Python file"
    try:
        # A device or a pipe would be read for ever, and a link could lead to a file that is not for others: a plan
        # holds the text.
        if path.is_symlink() or not path.is_file():
            raise UnfitError(f'no ordinary file "{path.name}" beside the scenario', expected, "Correct the name.")
        with path.open("rb") as file:
            code = file.read(4 * LONGEST_TEXT + 1).decode()
    except OSError as error:
        found, advice = str(error.strerror), "Change its rights."
        raise UnfitError(found, f"{expected} that can be read", advice, path.name) from error
    except UnicodeDecodeError as error:
        raise UnfitError("bytes that are not UTF-8", expected, "Save it as UTF-8.", path.name) from error
    if len(code) > LONGEST_TEXT or "\0" in code:
        raise UnfitError(f"more than {LONGEST_TEXT} characters, or NUL", expected, "Make it shorter.", path.name)
    return code.replace("\r\n", "\n")
