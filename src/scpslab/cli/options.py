"""Options that several commands have."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Annotated

import typer
from typer.models import OptionInfo

from scpslab.core.choices import one_of
from scpslab.core.errors import UsageError
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
