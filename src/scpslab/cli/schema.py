"""`scpslab schema`: generates the scenario's JSON Schema and reference, and the tables of plan keys, from the classes that read these files."""

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


def write(check: Annotated[bool, typer.Option("--check", help="Change nothing; fail if a committed file is not current.")] = False) -> None:
    """Regenerate the scenario file's JSON Schema and reference.

    scenarios/scenario.schema.json is for editors; docs/scenario-reference.md and the tables of keys in docs/plan-format.md
    are for people. All are generated from the classes that read these files.
    """
    for path, text in generated().items():
        if check and (not path.exists() or path.read_text() != text):
            raise ScenarioError(f'{path}: found content that differs from what the model gives; expected the same. Run "scpslab schema".')
        if not check:
            path.write_text(text)
            typer.echo(path)


def generated() -> dict[Path, str]:
    """The generated files and their current content."""
    return {
        SCHEMA_FILE: json.dumps(schema(), indent=1, ensure_ascii=False) + "\n",
        REFERENCE_FILE: reference(),
        PLAN_FILE: page(PLAN_FILE),
    }
