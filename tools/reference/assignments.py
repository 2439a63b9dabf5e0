"""The assignment's files described for editors (JSON Schema) and for people (Markdown); and all that is generated."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import get_args

from pydantic import BaseModel

from scpslab.core.strict_json import JsonObject
from scpslab.scenario.load import FOLDER
from scpslab_course.course import model
from scpslab_course.course.assignment import FOLDER as ASSIGNMENTS
from scpslab_course.course.formulas import NAMES
from tools.reference.commands import command_tables
from tools.reference.described import schema_of, tables
from tools.reference.scenarios import page, plan_tables, reference, schema

SCHEMA_FILE = FOLDER / "scenario.schema.json"
REFERENCE_FILE = FOLDER.parent / "docs" / "scenario-reference.md"
ASSIGNMENT_FILE = FOLDER.parent / "docs" / "assignment-reference.md"
PLAN_FILE = FOLDER.parent / "docs" / "plan-format.md"
COMMANDS_FILE = FOLDER.parent / "docs" / "cli.md"
SCHEMA_ID, MARKING_ID = "assignment.schema.json", "marking.schema.json"


def _kinds(section: str, *parts: type[BaseModel]) -> Iterator[tuple[str, type[BaseModel]]]:
    """The title of each kind of a part: its section, and the word at `kind`."""
    yield from ((f"{section}: kind {get_args(part.model_fields['kind'].annotation)[0]}", part) for part in parts)


SECTIONS: tuple[tuple[str, type[BaseModel]], ...] = (
    ("assignment.yaml", model.AssignmentFile),
    *_kinds("variant", model.Choice, model.Range, model.Seed, model.Formula),
    *_kinds("predictions", model.IntervalPrediction, model.ChoicePrediction),
    *_kinds("answers", model.NumberAnswer, model.ChoiceAnswer, model.TextAnswer),
    ("deliverables", model.Deliverable),
    ("trials", model.Trial),
    ("marking.yaml", model.MarkingFile),
    ("marking: difficulty", model.Difficulty),
    ("marking: difficulty.bands", model.DifficultyBand),
    *_kinds("marking: predictions", model.Interval, model.Word),
    *_kinds("marking: answers", model.MarkedNumber),
    ("marking: answers.ANSWER.partial", model.Near),
    ("marking: answers.ANSWER.wrong of a number", model.WrongNumber),
    *_kinds("marking: answers", model.MarkedChoice),
    ("marking: answers.ANSWER.wrong of a choice", model.WrongWord),
    *_kinds("marking: answers", model.MarkedText),
    ("marking: lines.FILE", model.Lines),
    ("marking: trials", model.HiddenTrial),
    ("marking: rubric, write_up, deliverables.FILE", model.Item),
)
HEAD = f"""# Assignment reference

How to write one: [teaching.md](teaching.md#write-an-assignment). This page is made from the models in `src/scpslab_course/course/` by `make docs`, and a
test keeps it current; `assignments/{SCHEMA_ID}` and `assignments/{MARKING_ID}` say the same to editors.

An assignment is a folder: `assignment.yaml`, `handout.md`, the scenarios, `practice.json`, and files under `starter/` that a student's folder begins
with. The folder `instructor/` has `marking.yaml`, `instructor.md` and `solution/`; students never get it.

## Formulas

Formulas have numbers, texts in quotes, names of parameters, `+ - * / % **`, comparisons, `and`, `or`, `not`, `A if CONDITION else B`, and these functions:
{", ".join(f"`{name}`" for name in NAMES)}.
Parameters are in bit/s, s and bytes; a parameter without a unit is a number or a text. Values are in the unit of the question.

| function | value |
|---|---|
| `mean("SCENARIO", "COLUMN", "AXIS=VALUE", …)` | the mean of a column of results.csv over the completed cells with these values of axes |
| `lowest`, `highest` | the same, with the smallest or the largest value |
| `best("SCENARIO", "COLUMN", "AXIS", "OTHER=VALUE", …)` | the value of an axis with the highest mean of a column, as text |
| `nth("SCENARIO", "COLUMN", NUMBER, "AXIS=VALUE", …)` | a word of a column that has several, counted from 1; `words` without the number: all of them |
| `completed("SCENARIO", "AXIS=VALUE", …)` | the number of completed cells |

Cells with one bulk transfer, a capture without filter at its sender and a record of packets have further columns for formulas, which no file of a student's has:
`resends`, the data packets whose first byte was sent before; `resends_queue`, `resends_corrupt`, `resends_outage`, `resends_policy`, by what became of
the latest earlier copy; `resends_superfluous`, of which an earlier copy was not lost; and `resend_causes` and `resend_frames`, the causes and frames in order of time.

Formulas of `variant` may read the parameters above them, and no results. Those of trials read the results of one cell of the trial's own scenario.
"""


def generated() -> dict[Path, str]:
    """The generated files and their current content."""
    return {
        SCHEMA_FILE: _json(schema()),
        REFERENCE_FILE: reference(),
        ASSIGNMENTS / SCHEMA_ID: _json(schema_of(model.AssignmentFile, SCHEMA_ID, "scpslab assignment")),
        ASSIGNMENTS / MARKING_ID: _json(schema_of(model.MarkingFile, MARKING_ID, "scpslab marking")),
        ASSIGNMENT_FILE: HEAD + tables(SECTIONS),
        PLAN_FILE: page(PLAN_FILE, plan_tables()),
        COMMANDS_FILE: page(COMMANDS_FILE, command_tables()),
    }


def _json(schema: JsonObject) -> str:
    return json.dumps(schema, indent=1, ensure_ascii=False) + "\n"
