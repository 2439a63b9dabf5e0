"""`scpslab schema`: generates JSON Schemas and references of scenarios and assignments, and the tables of plan keys,
from the classes that read these files.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from scpslab.core.errors import ScenarioError, UsageError
from scpslab.core.project import IS_INSTALLED
from scpslab.scenario.load import FOLDER
from scpslab.scenario.reference import page, reference, schema
from scpslab_course.course import reference as courses
from scpslab_course.course.assignment import FOLDER as ASSIGNMENTS

SCHEMA_FILE = FOLDER / "scenario.schema.json"
REFERENCE_FILE = FOLDER.parent / "docs" / "scenario-reference.md"
ASSIGNMENT_FILE = FOLDER.parent / "docs" / "assignment-reference.md"
PLAN_FILE = FOLDER.parent / "docs" / "plan-format.md"


def register(app: typer.Typer) -> None:
    """Adds the command to the program."""
    app.command("schema")(write)


def write(
    check: Annotated[
        bool, typer.Option("--check", help="Change nothing; fail if a committed file is not current.")
    ] = False,
) -> None:
    """Regenerate the JSON Schemas and references of scenarios and assignments.

    The schemas (scenarios/scenario.schema.json, assignments/*.schema.json) are for editors; docs/scenario-reference.md,
    docs/assignment-reference.md and the tables of keys in docs/plan-format.md are for people. All are generated from
    the classes that read these files.
    """
    if IS_INSTALLED:
        raise UsageError(
            "schema: found an installation; expected a clone, in which these files are committed. Run it in a clone."
        )
    for path, text in generated().items():
        if check and (not path.exists() or path.read_text() != text):
            raise ScenarioError(
                f"{path}: found content that differs from what the model gives; expected the same. "
                'Run "scpslab schema".'
            )
        if not check:
            path.write_text(text)
            typer.echo(path)


def generated() -> dict[Path, str]:
    """The generated files and their current content."""
    return {
        SCHEMA_FILE: _json(schema()),
        REFERENCE_FILE: reference(),
        ASSIGNMENTS / courses.SCHEMA_ID: _json(courses.assignment_schema()),
        ASSIGNMENTS / courses.MARKING_ID: _json(courses.marking_schema()),
        ASSIGNMENT_FILE: courses.reference(),
        PLAN_FILE: page(PLAN_FILE),
    }


def _json(schema: dict[str, Any]) -> str:
    return json.dumps(schema, indent=1, ensure_ascii=False) + "\n"
