"""What each handout says of how its predictions and numbers are marked: made from the two files of the assignment."""

from collections.abc import Iterator

from scpslab_course.course.assignment import Assignment, Marking
from scpslab_course.course.model import Interval, MarkedNumber

TITLE = "## How predictions and numbers are marked"
RULE = """Intervals are marked by one rule (`scpslab docs assignments`, "How predictions are marked"), with the F of this table. Give the interval in which you are 90 % sure: on average it has the most points. A word has all points or none."""
NUMBERS = "A number has all points up to this distance from the right one. Common mistakes have a part of the points."


def told(assignment: Assignment, marking: Marking) -> str:
    """The section."""
    return "\n".join(_lines(assignment, marking))


def _lines(assignment: Assignment, marking: Marking) -> Iterator[str]:
    yield from (TITLE, "", RULE, "", "| prediction | points | F |", "|---|---|---|")
    for name, asked in assignment.file.predictions.items():
        scoring = marking.file.predictions[name]
        yield f"| `{name}` | {asked.points:g} | {f'{scoring.factor:g}' if isinstance(scoring, Interval) else 'a word'} |"
    yield from ("", NUMBERS, "", "| number | points | distance | partly right |", "|---|---|---|---|")
    for name, asked in assignment.file.answers.items():
        marked = marking.file.answers[name]
        if isinstance(marked, MarkedNumber):
            partly = "; ".join(
                f"{one.share:.0%} up to {_distance(one.relative, one.absolute)}".replace("%", " %", 1)
                for one in marked.partial
            )
            yield f"| `{name}` | {asked.points:g} | {_distance(marked.relative, marked.absolute)} | {partly} |"


def _distance(relative: float | None, absolute: float | None) -> str:
    found = [f"{100 * relative:g} %"] if relative else []
    found += [f"{absolute:g}"] if absolute else []
    return " or ".join(found) or "none: a count is exact"
