"""A semester: every assignment of the project, issued to a class, solved by scripts with mistakes that students make,
cheated in every known way, and graded in a container of one processor and 2 GB.

Opt-in, because it takes hours: make test-course. SCPSLAB_CLASS is the number of students, and SCPSLAB_ASSIGNMENTS the
names if not all. What was measured is a page, which grows with each assignment: build/semester.md.
"""

import json
import os
import shutil
import sys
from collections import defaultdict
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from multiprocessing import get_context
from pathlib import Path

import pytest

from scpslab_course.course.assignment import find, load_assignment, names
from tests.lab.cheats import CHEATS, HostileProgram, of_assignment
from tests.lab.class_container import Cost, container
from tests.lab.made_up_class import COPIED_FROM, MadeUp, MadeUpClass, groups_of, reference, roles
from tests.lab.made_up_students import HONEST
from tests.lab.pages import ROOT

COUNT = int(os.environ.get("SCPSLAB_CLASS", "0"))
pytestmark = pytest.mark.skipif(COUNT == 0, reason="opt-in: make test-course")
ASSIGNMENTS = os.environ.get("SCPSLAB_ASSIGNMENTS", "").split() or names()
PAGE = ROOT / "build" / "semester.md"
# What is said of honest students: a late prediction is a mistake, which costs its own points.
DESERVED = {"late": {"late-prediction"}}
# Of a class of 80 in a container whose processor is its own.
MOST_PEAK_BYTES = 2 << 30
# The class whose students work now: children of this process inherit it, because formulas cannot be sent to them.
CLASS: list[MadeUpClass] = []
# 95 %: with no event in n trials, the rate is below this number divided by n.
RULE_OF_THREE = 3


@dataclass
class Semester:
    """What the assignments that were graded have shown."""

    costs: dict[str, tuple[int, Cost]] = field(default_factory=dict)
    tried: dict[str, list[tuple[str, bool, str]]] = field(default_factory=lambda: defaultdict(list))
    honest: int = 0
    troubled: list[str] = field(default_factory=list)
    sizes: list[int] = field(default_factory=list)

    def page(self) -> str:
        """The tables, as text."""
        return "\n".join([*self._of_time(), "", *self._of_cheats(), "", *self._of_honesty(), ""])

    def _of_time(self) -> Iterator[str]:
        yield f"| assignment, {COUNT} students | submissions | minutes | processor minutes | most memory |"
        yield "|---|---|---|---|---|"
        for name, (count, cost) in self.costs.items():
            minutes = f"{cost.wall_s / 60:.1f} | {cost.cpu_s / 60:.1f}"
            yield f"| {name} | {count} | {minutes} | {cost.peak_bytes / 1e6:.0f} MB |"
        count, costs = sum(count for count, _ in self.costs.values()), [cost for _, cost in self.costs.values()]
        minutes = f"{sum(cost.wall_s for cost in costs) / 60:.1f} | {sum(cost.cpu_s for cost in costs) / 60:.1f}"
        yield f"| all | {count} | {minutes} | {max(cost.peak_bytes for cost in costs) / 1e6:.0f} MB |"
        yield f"\nSubmissions of {min(self.sizes) / 1e3:.0f} to {max(self.sizes) / 1e3:.0f} kB."
        yield from (f"{one.name}: {one.stat().st_size / 1e6:.1f} MB." for one in (ROOT / "dist").glob("*.whl"))

    def _of_cheats(self) -> Iterator[str]:
        yield "| cheat | what the student does | tried | named | as |"
        yield "|---|---|---|---|---|"
        for role, found in self.tried.items():
            cheat = CHEATS[role]
            named = sum(is_named for _, is_named, _ in found)
            if cheat.named is None and not cheat.reason:
                yield f"| {role} | {cheat.says} | {len(found)} | cannot be seen | |"
            else:
                missed = ", ".join(name for name, is_named, _ in found if not is_named)
                as_ = ", ".join(dict.fromkeys(said for _, is_named, said in found if is_named))
                yield f"| {role} | {cheat.says} | {len(found)} | {named}{f', missed: {missed}' * bool(missed)} | {as_} |"

    def _of_honesty(self) -> Iterator[str]:
        bound = f"below {RULE_OF_THREE / self.honest:.2%} with a confidence of 95 %" if not self.troubled else ""
        yield f"Honest submissions: {self.honest}; held, refused or remarked upon: {len(self.troubled)}. {bound}"
        yield from (f"- {one}" for one in self.troubled)


@pytest.fixture(scope="module")
def semester() -> Semester:
    """What was seen so far."""
    return Semester()


def solved(student: str, role: str) -> MadeUp:
    """What a student of the class hands in; the folder that it comes from goes."""
    made = CLASS[-1]
    handed_in = made.hand_in(student, role, "s00")
    shutil.rmtree(made.folder / student)
    return handed_in


@pytest.mark.parametrize("name", ASSIGNMENTS)
def test_a_class_is_graded_with_every_cheat_named_and_no_honest_student_troubled(name, semester, tmp_path):
    folder = tmp_path / "class"
    folder.mkdir()
    students, whose = hand_in(name, folder)
    with (folder / "who.csv").open("w") as file:
        file.write("file,student\n" + "".join(f"{one.file.name},{one.id}\n" for one in students))
    files, asked = [str(one.file) for one in students], ["--course", folder / "satnet", "--format", "gradescope"]
    asked += ["--submitters", folder / "who.csv", "--out", folder / "grades", "--jobs", "1"]
    with container(folder) as graders:
        ended, cost = graders.run([sys.executable, "-P", "-m", "scpslab", "grade", *files, *map(str, asked)])
    assert ended.returncode == 1, ended.stderr
    grades = [json.loads(path.read_text()) for path in sorted((folder / "grades").iterdir())]

    semester.costs[name] = len(grades), cost
    semester.sizes += [one.file.stat().st_size for one in students]
    for one, grade in zip(students, grades, strict=True):
        look(semester, name, one, grade)
    PAGE.parent.mkdir(exist_ok=True)
    PAGE.write_text(semester.page())
    print(f"\n{semester.page()}")
    here = [
        (role, said) for role, found in semester.tried.items() for place, ok, said in found if place == name and not ok
    ]
    assert here == []
    assert [one for one in semester.troubled if one.startswith(name)] == []
    assert cost.peak_bytes <= MOST_PEAK_BYTES
    assert len(whose) == COUNT


def hand_in(name: str, folder: Path) -> tuple[list[MadeUp], dict[str, str]]:
    """Issues an assignment to the class, and has it solved on all cores."""
    whose = {f"s{number:02}": role for number, role in enumerate(roles(COUNT, fitting(name)))}
    CLASS.append(MadeUpClass(folder, whose, reference, name, groups=groups_of(whose), jobs=1))
    with ProcessPoolExecutor(mp_context=get_context("fork")) as pool:
        return list(pool.map(solved, whose, whose.values())), whose


def fitting(name: str) -> list[str]:
    """The cheats that the class tries: as many as it has room for beside one of each kind of honest student."""
    return of_assignment(load_assignment(find(name)))[: max(0, COUNT - len(HONEST) - 2)]


def look(semester: Semester, name: str, one: MadeUp, grade: dict) -> None:
    """Takes down what was found of one submission, and whether it is what was to be found."""
    found, status, said = set(grade["extra_data"]["findings"]), grade["extra_data"]["status"], grade["output"]
    if one.role in CHEATS:
        cheat = CHEATS[one.role]
        if issubclass(cheat, HostileProgram):
            trials = [test for test in grade.get("tests", ()) if test["name"].startswith("trial ")]
            is_named = bool(trials) and all(test["score"] == 0 for test in trials)
        elif cheat.reason:
            is_named = status == "ungraded" and cheat.reason in said
        else:
            is_named = found == ({cheat.named} if cheat.named else set())
        as_ = ", ".join(sorted(found)) or (cheat.reason if cheat.reason and is_named else "nothing")
        semester.tried[one.role].append((name, is_named, as_ if is_named else f"{as_}: {said}"))
    elif one.role != COPIED_FROM:
        semester.honest += 1
        if status != "graded" or found - DESERVED.get(one.role, set()):
            semester.troubled.append(f"{name}, {one.id}, {one.role}: {said}")
