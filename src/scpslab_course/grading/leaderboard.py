"""A page for the class: who has most points in the trials that nobody saw before, by pseudonym.

It has these points and what the trials measured. Names, ids, variants, and all that a student or a student's program
wrote are not on it. Rows stand by points, then by pseudonym: the order of files says nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from scpslab.analysis.output import pages
from scpslab.core.scratch import replace_text
from scpslab_course.grading.formats import Facts
from scpslab_course.grading.grade import Grade, Graded, Status

# Of two, each would know whose the other's points are.
FEWEST = 3


@dataclass(frozen=True)
class Place:
    """A row: its rank (equal points have the same one), the points of all trials, and the trials by name."""

    rank: int
    pseudonym: str
    points: float
    trials: dict[str, Graded]


@dataclass(frozen=True)
class Board:
    """An assignment: its trials, the most points for them, and the rows; none if they are fewer than FEWEST."""

    assignment: str
    trials: tuple[Graded, ...]
    most: float
    places: tuple[Place, ...]


def write_leaderboard(grades: Sequence[Grade], facts: Facts, path: Path) -> Path:
    """Writes the page; returns its path."""
    template = pages(Path(__file__).parent / "templates").get_template("leaderboard.html.j2")
    replace_text(path, template.render(facts=facts, boards=list(boards(grades)), fewest=FEWEST))
    return path


def boards(grades: Sequence[Grade]) -> Iterator[Board]:
    """The boards of the assignments that have hidden trials. A student or group has one row: the best one."""
    ranked = [one for one in grades if one.status is Status.GRADED and one.pseudonym]
    for assignment in dict.fromkeys(one.assignment for one in ranked):
        best: dict[str, tuple[float, str, dict[str, Graded]]] = {}
        for one in (one for one in ranked if one.assignment == assignment):
            trials = {part.name: part for part in one.parts if part.numbers is not None}
            points = round(sum(part.earned or 0 for part in trials.values()), 2)
            if one.whose not in best or best[one.whose][0] < points:
                best[one.whose] = points, one.pseudonym, trials
        rows = sorted(best.values(), key=lambda row: (-row[0], row[1]))
        # One that was completed, where there is one: it has the names of what was measured.
        tried = ([trials[name] for _, _, trials in rows if name in trials] for name in rows[0][2])
        every = tuple(max(parts, key=lambda part: len(part.numbers or ())) for parts in tried)
        order = [points for points, _, _ in rows]
        places = (Place(order.index(points) + 1, name, points, trials) for points, name, trials in rows)
        most = sum(part.points for part in every)
        yield Board(assignment, every, most, tuple(places) if len(rows) >= FEWEST else ())
