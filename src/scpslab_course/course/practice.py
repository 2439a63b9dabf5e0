"""practice.json: the practice variant of an assignment, and its answers for everybody to read."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from scpslab.core import strict_json
from scpslab.core.errors import ScenarioError
from scpslab.plan import schema
from scpslab.plan.schema import PlanError, Range
from scpslab.plan.values import PlainText
from scpslab_course.course.assignment import PRACTICE, Assignment
from scpslab_course.course.expected import Expected
from scpslab_course.course.variant import Variant

FORMAT = 1
AS_CLOSE_AS = 1e-3
LARGEST_BYTES = 1 << 20
HOW = "The practice variant with its answers; scpslab course practice NAME writes it again."


@dataclass(frozen=True, kw_only=True)
class Practice:
    """The file."""

    format_: Annotated[int, Range(FORMAT, FORMAT)]
    how: PlainText
    variant: Variant
    expected: Expected


def write(variant: Variant, expected: Expected) -> str:
    """The text of the file."""
    return json.dumps(schema.write(Practice(format_=FORMAT, how=HOW, variant=variant, expected=expected)), indent=1, ensure_ascii=False) + "\n"


def agree(practice: Practice, variant: Variant, expected: Expected) -> bool:
    """Whether a file says of a variant what is expected: the same words, and numbers within a thousandth. Another kernel moves packets by microseconds."""
    return practice.variant == variant and _close(schema.write(practice.expected), schema.write(expected))


def _close(one: Any, other: Any) -> bool:
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(_close(one[key], other[key]) for key in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(_close, one, other))
    if isinstance(one, int | float) and isinstance(other, int | float):
        return math.isclose(one, other, rel_tol=AS_CLOSE_AS)
    return bool(one == other)


def read_practice(assignment: Assignment) -> Practice:
    """The practice variant of an assignment.

    Raises:
        ScenarioError: it has none, or the file cannot be read.
    """
    path: Path = assignment.folder / PRACTICE
    advice = f'Its author makes it: "scpslab course practice {assignment.name}".'
    try:
        if path.stat().st_size > LARGEST_BYTES:
            raise ScenarioError(f"{path}: found {path.stat().st_size} bytes; expected a practice variant. {advice}")
        return schema.read(Practice, strict_json.loads(path.read_bytes()))
    except OSError as error:
        raise ScenarioError(f"{path}: found {error.strerror}; expected a practice variant. {advice}") from error
    except (strict_json.JsonError, PlanError) as error:
        raise ScenarioError(f"{path}: {error}. {advice}") from error
