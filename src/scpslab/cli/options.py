"""Options that several commands have.

Options:
    jobs: Number of cells to run at a time. Default: one per core.
    set: Override one value of the scenario, e.g. workloads.transfer.size='100 kB'; may be repeated.
    trust: Use a topology's file (./NAME.py) that others own or may write. It runs with your rights.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from scpslab.core import names, units
from scpslab.core.choices import one_of
from scpslab.core.contents import parted
from scpslab.core.errors import UsageError
from scpslab.runs.run import RUNS

if TYPE_CHECKING:
    # Commands that only read need no engine, which takes a while to load.
    from scpslab.engine import Engine


def texts(docstring: str | None) -> dict[str, str]:
    """What the docstring of a module, or of a command, says of each of its options."""
    return parted(docstring, "Options")[1]


def choice(name: str, choices: Collection[str], does: str) -> Any:
    """An option, or an argument if its name has no dashes, with a value that is one of the choices; the message about
    another one suggests the nearest.
    """

    def chosen(text: str) -> str:
        if text not in choices:
            raise UsageError(f'{name}: found "{text}"; {one_of(text, choices)}')
        return text

    said: dict[str, Any] = {"parser": chosen, "help": does, "autocompletion": completed(lambda: choices)}
    if not name.startswith("--"):
        return typer.Argument(metavar=f"[{name}]", **said)
    return typer.Option(name, metavar=f"[{'|'.join(choices)}]", **said)


def completed(words: Callable[[], Iterable[str]]) -> Callable[[str], list[str]]:
    """What a shell completes the beginning of a word to."""
    return lambda incomplete: [word for word in words() if word.startswith(incomplete)]


def engine_choice(engines: Mapping[str, type[Engine]], does: str) -> Any:
    """The option `--engine` of a command; its help says what each engine is."""
    known = ", ".join(f"{name} ({engine.summary})" for name, engine in engines.items())
    return choice("--engine", engines, f"{does}: {known}.")


def _jobs(text: str) -> int:
    """The value of `--jobs`."""
    if not (text.isascii() and text.isdigit() and len(text) <= 9 and int(text)):
        advice = "Leave the option out for one cell per core."
        raise UsageError(f'--jobs: found "{text}"; expected a whole number from 1 on. {advice}')
    return int(text)


def _wall_s(text: str | int) -> int:
    """The value of `--max-wall`, in seconds; the default comes as a number."""
    text = str(text)
    try:
        wall_s = units.parse("duration", f"{text} s" if text.isdecimal() else text) // 10**9
    except units.UnitError as error:
        raise UsageError(f"--max-wall: {error}. Correct the option.") from error
    if wall_s < 1:
        raise UsageError(f"--max-wall: found {names.shown(text)}; expected at least 1 s. Correct the option.")
    return wall_s


def max_wall(does: str) -> Any:
    """The option `--max-wall`: a limit on the wall clock."""
    return typer.Option("--max-wall", parser=_wall_s, metavar="SECONDS", help=f"{does} Or with a unit: '2 h'.")


SAID = texts(__doc__)
Jobs = Annotated[int | None, typer.Option(parser=_jobs, metavar="NUMBER", help=SAID["jobs"])]
runs = completed(lambda: ["last", *(folder.name for folder in RUNS.glob("*-*"))])


def _named_run(what: str) -> Any:
    said = f'{what}, its name under runs/, or "last" for the newest.'
    return typer.Argument(metavar="RUN", help=said, autocompletion=runs)


RunArgument = Annotated[str, _named_run("A run folder")]
RunOrCampaign = Annotated[str, _named_run("A run or campaign: a folder")]
Settings = Annotated[list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help=SAID["set"])]
Trust = Annotated[bool, typer.Option("--trust", help=SAID["trust"])]


def split(values: list[str] | None) -> list[str]:
    """The words of an option that is repeated or separated with commas."""
    return [word.strip() for value in values or () for word in value.split(",") if word.strip()]


def check_out(path: Path, option: str = "--out") -> None:
    """Refuses a path of an option that cannot be a file.

    Raises:
        UsageError: it cannot.
    """
    if not path.parent.is_dir() or path.is_dir():
        found = "a folder" if path.is_dir() else "no folder for it"
        raise UsageError(f"{option} {path}: found {found}; expected the file to write. Name another.")
