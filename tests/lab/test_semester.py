"""A semester: every assignment of the project, issued to a class, solved by scripts with mistakes that students make,
cheated in every known way, and graded in a container of one processor and 2 GB.

Opt-in, because it takes hours: make test-course. SCPSLAB_CLASS is the number of students, and SCPSLAB_ASSIGNMENTS the
names if not all; SCPSLAB_CHEATS names the cheats of a small class if not the first ones. What an assignment has
shown is in build/semester/, and all of them together are a page: build/semester.md.
"""

import datetime as dt
import json
import os
import shutil
import sys
from collections import defaultdict
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass, field
from multiprocessing import get_context
from pathlib import Path

import pytest

from scpslab_course.course.assignment import find, load_assignment, names
from tests.lab.cheats import CHEATS, HostileProgram, of_assignment
from tests.lab.class_container import container
from tests.lab.made_up_class import COPIED_FROM, MadeUp, MadeUpClass, groups_of, reference, roles
from tests.lab.made_up_students import HONEST
from tests.lab.pages import ROOT

COUNT = int(os.environ.get("SCPSLAB_CLASS", "0"))
pytestmark = pytest.mark.skipif(COUNT == 0, reason="opt-in: make test-course")
ASSIGNMENTS = os.environ.get("SCPSLAB_ASSIGNMENTS", "").split() or names()
WANTED = os.environ.get("SCPSLAB_CHEATS", "").split()
PLACE = ROOT / "build" / "semester"
# What is said of honest students: a late prediction is a mistake, which costs its own points.
DESERVED = {"late": {"late-prediction"}}
# Who answers right. That says nothing of predictions, where an interval costs points by its width, and of programs, which
# are not made to pass trials.
RIGHT = ("right", "right-in-other-words")
# The class whose students work now: children of this process inherit it, because formulas cannot be sent to them.
CLASS: list[MadeUpClass] = []
# 95 %: with no event in n trials, the rate is below this number divided by n.
RULE_OF_THREE = 3


@dataclass
class Seen:
    """What an assignment has shown. `tried`: role, whether it was named as it has to be, and what was said."""

    name: str
    day: str
    wall_s: float
    cpu_s: float
    peak_bytes: int
    sizes: list[int]
    tried: list[tuple[str, bool, str]] = field(default_factory=list)
    honest: int = 0
    troubled: list[str] = field(default_factory=list)


@pytest.mark.parametrize("name", ASSIGNMENTS)
def test_a_class_is_graded_with_every_cheat_named_and_no_honest_student_troubled(name, tmp_path):
    folder = tmp_path / "class"
    folder.mkdir()
    students = hand_in(name, folder)
    rows = (f"{one.file.name},{one.id}\n" for one in students)
    (folder / "who.csv").write_text(f"file,student\n{''.join(rows)}")
    asked = ["--course", folder / "satnet", "--format", "json", "--jobs", "1"]
    asked += ["--submitters", folder / "who.csv", "--out", folder / "grades.json", *(one.file for one in students)]
    with container(folder) as graders:
        ended, cost = graders.run([sys.executable, "-P", "-m", "scpslab", "grade", *map(str, asked)])
    assert ended.returncode in (0, 1), ended.stderr
    grades = json.loads((folder / "grades.json").read_text())

    sizes = [one.file.stat().st_size for one in students]
    day = f"{dt.datetime.now(tz=dt.UTC):%Y-%m-%d}"
    seen = Seen(name, day, cost.wall_s, cost.cpu_s, cost.peak_bytes, sizes)
    for one, grade in zip(students, grades, strict=True):
        look(seen, one, grade)
    PLACE.mkdir(parents=True, exist_ok=True)
    (PLACE / f"{name}.json").write_text(json.dumps(asdict(seen), indent=1))
    written = "\n".join(page([Seen(**json.loads(path.read_text())) for path in sorted(PLACE.glob("*.json"))]))
    PLACE.with_suffix(".md").write_text(written)
    print(f"\n{written}")
    shutil.rmtree(folder)
    assert [one for one in seen.tried if not one[1]] == []
    assert seen.troubled == []


def hand_in(name: str, folder: Path) -> list[MadeUp]:
    """Issues an assignment to the class, and has it solved on all cores."""
    cheats = of_assignment(load_assignment(find(name)))
    # As many cheats as there is room for beside one of each kind of honest student, the copied one and another one of
    # a group.
    room = cheats[: max(0, COUNT - len(HONEST) - 2)]
    cheats = [one for one in cheats if one in WANTED] if WANTED else room
    whose = {f"s{number:02}": role for number, role in enumerate(roles(COUNT, cheats))}
    before = sum(os.times()[:4])
    CLASS.append(MadeUpClass(folder, whose, reference, name, groups=groups_of(whose), jobs=1))
    print(f"\n{name}: issued to {COUNT} in {sum(os.times()[:4]) - before:.1f} s of processor time")
    with ProcessPoolExecutor(mp_context=get_context("fork")) as pool:
        return list(pool.map(solved, whose, whose.values()))


def solved(student: str, role: str) -> MadeUp:
    """What a student of the class hands in; the folder that it comes from goes."""
    made = CLASS[-1]
    handed_in = made.hand_in(student, role, "s00")
    shutil.rmtree(made.folder / student)
    return handed_in


def look(seen: Seen, one: MadeUp, grade: dict) -> None:
    """Takes down what was found of one submission, and whether it is what was to be found."""
    found, status, said = set(grade["findings"]), grade["status"], grade["comment"]
    if one.role in CHEATS:
        cheat = CHEATS[one.role]
        if issubclass(cheat, HostileProgram):
            trials = [part for part in grade.get("parts", ()) if part["kind"] == "trial" and part["earned"] is not None]
            is_named = bool(trials) and all(part["earned"] == 0 for part in trials)
        elif cheat.reason:
            is_named = status == "ungraded" and cheat.reason in said
        else:
            is_named = found == ({cheat.named} if cheat.named else set())
        as_ = ", ".join(sorted(found)) or (cheat.reason if cheat.reason and is_named else "nothing")
        seen.tried.append((one.role, is_named, as_ if is_named else f"{as_}: {said}"))
    elif one.role != COPIED_FROM:
        seen.honest += 1
        if status != "graded" or found - DESERVED.get(one.role, set()):
            seen.troubled.append(f"{seen.name}, {one.id}, {one.role}: {said}")
        elif one.role in RIGHT:
            parts = (part for part in grade["parts"] if part["kind"] not in ("trial", "prediction"))
            marked = (part for part in parts if part["earned"] is not None)
            short = [f"{part['name']}: {part['comment']}" for part in marked if part["earned"] < part["points"]]
            seen.troubled += [f"{seen.name}, {one.id}, {one.role}, {said}" for said in short]


def page(semester: Sequence[Seen]) -> Iterator[str]:
    """The lines of the page: time, cheats, honest students."""
    yield "| assignment | day | submissions | minutes | processor minutes | most memory |"
    yield "|---|---|---|---|---|---|"
    for one in semester:
        minutes = f"{one.wall_s / 60:.1f} | {one.cpu_s / 60:.1f}"
        yield f"| {one.name} | {one.day} | {len(one.sizes)} | {minutes} | {one.peak_bytes / 1e6:.0f} MB |"
    sizes = [size for one in semester for size in one.sizes]
    minutes = f"{sum(one.wall_s for one in semester) / 60:.1f} | {sum(one.cpu_s for one in semester) / 60:.1f}"
    yield f"| all | | {len(sizes)} | {minutes} | {max(one.peak_bytes for one in semester) / 1e6:.0f} MB |"
    yield f"\nSubmissions of {min(sizes) / 1e3:.0f} to {max(sizes) / 1e3:.0f} kB."
    yield from (f"{one.name}: {one.stat().st_size / 1e6:.1f} MB." for one in (ROOT / "dist").glob("*.whl"))
    yield from ("", "| cheat | what the student does | tried | named | as |", "|---|---|---|---|---|")
    tried: dict[str, list[tuple[str, bool, str]]] = defaultdict(list)
    for one in semester:
        for role, is_named, said in one.tried:
            tried[role].append((one.name, is_named, said))
    for role, found in tried.items():
        cheat, missed = CHEATS[role], ", ".join(name for name, is_named, _ in found if not is_named)
        named = f"{sum(is_named for _, is_named, _ in found)}{f', missed: {missed}' if missed else ''}"
        is_seen = cheat.named or cheat.reason
        as_ = ", ".join(dict.fromkeys(said for _, is_named, said in found if is_named)) if is_seen else ""
        yield f"| {role} | {cheat.says} | {len(found)} | {named if is_seen else 'cannot be seen'} | {as_} |"
    honest, troubled = sum(one.honest for one in semester), [said for one in semester for said in one.troubled]
    bound = "" if troubled else f" The rate is below {RULE_OF_THREE / honest:.2%} with a confidence of 95 %."
    yield f"\nHonest submissions: {honest}; held, refused or remarked upon: {len(troubled)}.{bound}"
    yield from (f"- {one}" for one in troubled)
