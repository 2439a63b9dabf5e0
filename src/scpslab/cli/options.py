"""Options that several commands have."""

from __future__ import annotations

from typing import Annotated

import typer

from scpslab.core.errors import UsageError


def _jobs(text: str) -> int:
    """The value of `--jobs`."""
    if not (text.isascii() and text.isdigit() and len(text) <= 9 and int(text)):
        raise UsageError(f'--jobs: found "{text}"; expected a whole number from 1 on. Leave the option out for one cell per core.')
    return int(text)


Jobs = Annotated[int | None, typer.Option(parser=_jobs, metavar="NUMBER", help="Number of cells to run at a time. Default: one per core.")]
