"""`scpslab schema`: the scenario's JSON Schema and reference, and the tables of a plan's keys, made from the classes that read them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from scpslab.errors import ScenarioError
from scpslab.planning.reference import page
from scpslab.scenario.load import FOLDER
from scpslab.scenario.reference import reference, schema

SCHEMA_FILE = FOLDER / "scenario.schema.json"
REFERENCE_FILE = FOLDER.parent / "docs" / "scenario-reference.md"
PLAN_FILE = FOLDER.parent / "docs" / "plan-format.md"


def register(app: typer.Typer) -> None:
    """Adds the command to the program."""
    app.command("schema")(write)


def write(check: Annotated[bool, typer.Option("--check", help="Change nothing; fail when a committed file is not current.")] = False) -> None:
    """Writes the scenario file's schema and reference, and the tables of a plan's keys.

    scenarios/scenario.schema.json is for editors, docs/scenario-reference.md and the tables of
    docs/plan-format.md for people; all are made from the classes that read these files.
    """
    for path, text in generated().items():
        if check and (not path.exists() or path.read_text() != text):
            raise ScenarioError(f'{path}: found other content than the model gives; expected it current. Run "scpslab schema".')
        if not check:
            path.write_text(text)
            typer.echo(path)


def generated() -> dict[Path, str]:
    """The generated files and what they shall hold."""
    return {
        SCHEMA_FILE: json.dumps(schema(), indent=1, ensure_ascii=False) + "\n",
        REFERENCE_FILE: reference(),
        PLAN_FILE: page(PLAN_FILE),
    }
