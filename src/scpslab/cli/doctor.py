"""`scpslab doctor`: checks whether this machine can run labs, and shows how to fix what is missing."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Annotated

import typer
from rich.table import Table
from rich.text import Text

from scpslab.cli.options import choice, engine_choice
from scpslab.cli.tables import plain_console
from scpslab.core.errors import CapabilityError
from scpslab.engine import DEFAULT, ENGINES

ENGINE = engine_choice(ENGINES, "The engine to check for")
FORMATS = ("table", "json")
COLOURS = {"ok": "green", "warning": "yellow", "missing": "red"}


def doctor(
    engine: Annotated[str, ENGINE] = DEFAULT,
    format_: Annotated[str, choice("--format", FORMATS, "Output format: to read, or for other programs.")] = "table",
) -> None:
    """Check this machine, and show how to fix what is missing.

    The command checks everything that an engine needs, before anything starts.

    Examples: scpslab doctor · scpslab doctor --engine host --format json
    """
    findings = ENGINES[engine]().findings()
    if format_ == "json":
        typer.echo(json.dumps([asdict(finding) for finding in findings], indent=1))
    else:
        table = Table("check", "", "found", box=None, pad_edge=False)
        for finding in findings:
            table.add_row(finding.name, Text(finding.state, COLOURS[finding.state]), finding.found)
        console = plain_console()
        console.print(table)
        # In lines of their own, so that a command can be copied from a terminal of any width.
        for finding in findings:
            if finding.state != "ok" and finding.fix:
                console.print(f"\n{finding.name}: what to do:\n  {finding.fix}", highlight=False, soft_wrap=True)
    if any(finding.state == "missing" for finding in findings):
        raise typer.Exit(CapabilityError.exit_code)
