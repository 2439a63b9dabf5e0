"""A made-up class with one assignment: its course, roster and variants, and what its students hand in."""

import os
import shutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from scpslab.core.scratch import scratch
from scpslab.documents.quantities import AxisValue
from scpslab.running import RunOptions
from scpslab_course.course.answers import Expected, expected
from scpslab_course.course.assignment import FOLDER, Assignment, find, load_assignment, load_marking, names
from scpslab_course.course.folder import Party, make_course, parties, plan_issue, read_roster, write_issue
from scpslab_course.course.formulas import Rows
from scpslab_course.course.runs import rows_of, run_variant
from scpslab_course.course.variant import Variant
from tests.lab.cheats import CHEATS
from tests.lab.made_up_students import HONEST, Student

SMALL = Path(__file__).parents[1] / "data" / "small_assignment"
# A hundred cells: only make test-course runs them.
LONG_ASSIGNMENTS = frozenset({"three-papers"})
TERM = "term-1"
# Works honestly, and lets others copy: equal texts and predictions are said of both.
COPIED_FROM, TWICE = "copied-from", "twice-from-a-group"
ROLES: Mapping[str, type[Student]] = {COPIED_FROM: Student, **HONEST, **CHEATS}


@dataclass(frozen=True)
class MadeUp:
    """One student: the role, the file that was handed in, and by whom."""

    id: str
    role: str
    file: Path


class MadeUpClass:
    """A course of one assignment below a folder, whose variants were issued to students; makes their submissions."""

    def __init__(
        self,
        folder: Path,
        students: Iterable[str],
        reference: Callable[..., Any] | None = None,
        assignment: str = "small",
        added: Mapping[str, str] | None = None,
        groups: Mapping[str, str] | None = None,
        jobs: int | None = None,
    ) -> None:
        """`assignment`: one of the project's, or "small", that of these tests; `added`: lines at the end of files;
        `groups`: by student.
        """
        self.course = make_course(folder / "satnet", "Made up", TERM, [assignment])
        own = self.course.folder / "assignments"
        if assignment == "small":
            shutil.copytree(SMALL, own / assignment)
        for name, lines in (added or {}).items():
            with (own / assignment / name).open("a") as file:
                file.write(lines)
        self.assignment = load_assignment(find(assignment, (own, FOLDER)))
        self.marking, self.folder, self._reference = load_marking(self.assignment), folder / "students", reference
        self.folder.mkdir()
        self.roster, self.jobs, group = folder / "roster.csv", jobs, dict(groups or {})
        lines = (f"{one},{one}@example.org,{group.get(one, '')}\n" for one in students)
        self.roster.write_text(f"student,email,group\n{''.join(lines)}")
        self._parties = parties(read_roster(self.roster))
        issued = self._issue(TERM, self._parties)
        write_issue(self.course, TERM, issued)
        self.variants = {one.student.id: one.variant for one in issued}
        self._right: dict[str, Expected] = {}

    def hand_in(self, student: str, role: str, other: str, files: Mapping[str, bytes] | None = None) -> MadeUp:
        """What a student hands in. `other`: a student from whom is copied; `files`: deliverables."""
        target = self.folder / f"{student}.submission.tar.gz"
        target.write_bytes(ROLES[role](self, student, other).hand_in(files))
        return MadeUp(student, role, target)

    def results(self, variant: Variant) -> dict[str, Path]:
        """The runs of a variant, by somebody who makes no mistake."""
        # Processes that make submissions at the same time have folders of their own; the result cache is common.
        out = self.folder / "right" / f"{variant.digest[:16]}-{os.getpid()}"
        options = RunOptions(out=out, jobs=self.jobs)
        return run_variant(self.assignment, variant.parameters, options)

    def right(self, variant: Variant) -> Expected:
        """What is right for a variant."""
        if variant.digest not in self._right:
            rows = rows_of(self.results(variant))
            self._right[variant.digest] = expected(self.assignment, self.marking, variant.parameters, rows)
        return self._right[variant.digest]

    def issued_in(self, term: str, student: str) -> Variant:
        """What the course issues to a student in another term."""
        party = next(one for one in self._parties if student in (member.id for member in one.members))
        return self._issue(term, [party])[0].variant

    def _issue(self, term: str, whose: Iterable[Party]) -> list:
        marked = [(self.assignment, self.marking)]
        return plan_issue(self.course, self.course.secret(), term, list(whose), marked, self._reference)


def reference(assignment: Assignment, parameters: Mapping[str, AxisValue], scenarios: Sequence[str]) -> Rows:
    """The results that bands of difficulty read; nothing is said meanwhile."""
    with scratch() as folder:
        return rows_of(run_variant(assignment, parameters, RunOptions(out=folder), scenarios=scenarios))


def assignments(is_whole: bool) -> list[str]:
    """The project's assignments; those that take long only if all are asked for."""
    return [name for name in names() if is_whole or name not in LONG_ASSIGNMENTS]


def roles(count: int, cheats: Iterable[str]) -> list[str]:
    """The roles of a class: one from whom others copy, each of these cheats once, and all others honest in turn."""
    chosen, honest = [COPIED_FROM, *cheats], list(HONEST)
    # It takes two.
    chosen += [TWICE] if TWICE in chosen else []
    return [*chosen, *(honest[number % len(honest)] for number in range(count - len(chosen)))]


def groups_of(whose: Mapping[str, str]) -> dict[str, str]:
    """The groups of students, by their roles."""
    return {student: "pair" for student, role in whose.items() if role == TWICE}
