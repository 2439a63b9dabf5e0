"""Options that several commands have."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Annotated

import typer
from typer.models import OptionInfo

from scpslab.core import names, units
from scpslab.core.choices import one_of
from scpslab.core.errors import UsageError

if TYPE_CHECKING:
    # Commands that only read need no engine, which takes a while to load.
    from scpslab.engine import Engine


def choice(option: str, choices: Collection[str], does: str) -> OptionInfo:
    """An option with a value that is one of the choices; the message about another one suggests the nearest."""
    option_info: OptionInfo = typer.Option(
        option, parser=lambda text: chosen(option, choices, text), metavar=f"[{'|'.join(choices)}]", help=does
    )
    return option_info


def chosen(place: str, choices: Collection[str], text: str) -> str:
    """A word that is one of the choices.

    Raises:
        UsageError: it is none; the message suggests the nearest.
    """
    if text not in choices:
        raise UsageError(f'{place}: found "{text}"; {one_of(text, choices)}')
    return text


def engine_choice(engines: Mapping[str, type[Engine]], does: str) -> OptionInfo:
    """The option `--engine` of a command; its help says what each engine is."""
    known = ", ".join(f"{name} ({engine.summary})" for name, engine in engines.items())
    return choice("--engine", engines, f"{does}: {known}.")


def _jobs(text: str) -> int:
    """The value of `--jobs`."""
    if not (text.isascii() and text.isdigit() and len(text) <= 9 and int(text)):
        raise UsageError(
            f'--jobs: found "{text}"; expected a whole number from 1 on. Leave the option out for one cell per core.'
        )
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


def max_wall(does: str) -> OptionInfo:
    """The option `--max-wall`: a limit on the wall clock."""
    said = f"{does} Or with a unit: '2 h'."
    option_info: OptionInfo = typer.Option("--max-wall", parser=_wall_s, metavar="SECONDS", help=said)
    return option_info


Jobs = Annotated[
    int | None,
    typer.Option(parser=_jobs, metavar="NUMBER", help="Number of cells to run at a time. Default: one per core."),
]
RunArgument = Annotated[
    str, typer.Argument(metavar="RUN", help='A run folder, its name under runs/, or "last" for the newest.')
]
RunOrCampaign = Annotated[
    str,
    typer.Argument(metavar="RUN", help='A run or campaign: a folder, its name under runs/, or "last" for the newest.'),
]
Scenario = Annotated[
    str,
    typer.Argument(
        metavar="SCENARIO", help="A scenario by name or path; :VARIANT chooses a variant of it, e.g. fy97/fig04:test."
    ),
]
Settings = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="KEY=VALUE",
        help="Override one value of the scenario, e.g. workloads.transfer.size='100 kB'; may be repeated.",
    ),
]
Trust = Annotated[
    bool,
    typer.Option(
        "--trust", help="Use a topology's file (./NAME.py) that others own or may write. It runs with your rights."
    ),
]


def split(values: list[str] | None) -> list[str]:
    """The words of an option that is repeated or separated with commas."""
    return [word.strip() for value in values or () for word in value.split(",") if word.strip()]
