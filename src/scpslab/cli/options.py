"""Options that several commands have."""

from __future__ import annotations

from collections.abc import Collection
from typing import Annotated

import typer
from typer.models import OptionInfo

from scpslab.core.choices import one_of
from scpslab.core.errors import UsageError


def choice(option: str, choices: Collection[str], does: str) -> OptionInfo:
    """An option with a value that is one of the choices; the message about another one suggests the nearest."""

    def chosen(text: str) -> str:
        if text not in choices:
            raise UsageError(f'{option}: found "{text}"; {one_of(text, choices)}')
        return text

    option_info: OptionInfo = typer.Option(option, parser=chosen, metavar=f"[{'|'.join(choices)}]", help=does)
    return option_info


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
