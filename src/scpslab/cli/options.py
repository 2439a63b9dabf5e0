"""Options that several commands have."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Annotated

import typer
from typer.models import OptionInfo

from scpslab.core.choices import one_of
from scpslab.core.errors import UsageError

if TYPE_CHECKING:
    # Commands that only read need no engine, which takes a while to load.
    from scpslab.engine import Engine


def choice(option: str, choices: Collection[str], does: str) -> OptionInfo:
    """An option with a value that is one of the choices; the message about another one suggests the nearest."""

    def chosen(text: str) -> str:
        if text not in choices:
            raise UsageError(f'{option}: found "{text}"; {one_of(text, choices)}')
        return text

    option_info: OptionInfo = typer.Option(option, parser=chosen, metavar=f"[{'|'.join(choices)}]", help=does)
    return option_info


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
