"""Made-up students: issued, solved by a script, packed. The cheats do what a student with an afternoon can do."""

import gzip
import hashlib
import io
import json
import shutil
import tarfile
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from scpslab.running import RunOptions
from scpslab.runs.archive import write_archive
from scpslab_course.course import answers
from scpslab_course.course.answers import Expected, expected
from scpslab_course.course.assignment import FOLDER, Assignment, find, load_assignment, load_marking, names
from scpslab_course.course.folder import make_course, parties, plan_issue, read_roster, write_issue
from scpslab_course.course.runs import rows_of, run_variant
from scpslab_course.course.workspace import LOG, RUNS, WRITE_UP, Workspace, plan_start, write_start
from scpslab_course.grading import submission
from scpslab_course.grading.grade import Code

SMALL = Path(__file__).parents[1] / "data" / "small_assignment"
# What each cheat is to be called.
CHEATS = {
    "others-variant": Code.OTHER_VARIANT,
    "edited-results": Code.EDITED_RESULTS,
    "edited-captures": Code.EDITED_CAPTURES,
    "replayed-log": Code.REPLAYED_LOG,
    "late-prediction": Code.LATE_PREDICTION,
    "swapped-plan": Code.SWAPPED_PLAN,
    "copied-numbers": Code.COPIED_NUMBERS,
}
# A hundred cells: only make test-course runs them.
LONG_ASSIGNMENTS = frozenset({"three-papers"})
HONEST = ("right", "right-in-other-words", "mistaken", "rounded", "blank")
TEXT = "It is {} who says why: a window travels once in each round trip, and slow start needs several of them."
TIMES = tuple(f"2026-11-22T{hour:02}:00:00Z" for hour in range(8, 20))


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
    ) -> None:
        """`assignment`: one of the project's, or "small", that of these tests; `added`: lines at the end of files."""
        self.course = make_course(folder / "satnet", "Made up", "term-1", [assignment])
        own = self.course.folder / "assignments"
        if assignment == "small":
            shutil.copytree(SMALL, own / assignment)
        for name, lines in (added or {}).items():
            with (own / assignment / name).open("a") as file:
                file.write(lines)
        self._assignment: Assignment = load_assignment(find(assignment, (own, FOLDER)))
        self._marking, self._folder = load_marking(self._assignment), folder / "students"
        self._folder.mkdir()
        self.roster = folder / "roster.csv"
        self.roster.write_text("student,email\n" + "".join(f"{one},{one}@example.org\n" for one in students))
        everybody = parties(read_roster(self.roster))
        secret, marked = self.course.secret(), [(self._assignment, self._marking)]
        issued = plan_issue(self.course, secret, "term-1", everybody, marked, reference)
        write_issue(self.course, "term-1", issued)
        self._variants = {one.variant.student: one.variant for one in issued}

    def hand_in(self, student: str, role: str, other: str, files: Mapping[str, bytes] | None = None) -> MadeUp:
        """What a student hands in. `other`: a student from whom is copied; `files`: deliverables."""
        owner = other if role == "others-variant" else student
        mine, into = self._variants[owner], self._folder / student
        workspace = write_start(plan_start(self._assignment, mine), self._assignment, mine, into, TIMES[0])
        before = (into / LOG).read_bytes()
        right = self._right(owner)
        if role not in ("late-prediction", "replayed-log"):
            self._predict(workspace, right, wrong=role == "mistaken")
        self._run(workspace)
        if role == "late-prediction":
            self._predict(workspace, right)
        if role == "replayed-log":
            self._predict_with_an_old_log(workspace, right, before)
        if role == "edited-results":
            _edit_results(into / RUNS)
        if role == "edited-captures":
            _edit_capture(into / RUNS)
        _write(workspace, self._right(other) if role == "copied-numbers" else right, role)
        for name, content in (files or {}).items():
            (into / name).write_bytes(content)
        content = submission.pack(workspace)
        if role == "swapped-plan":
            content = repacked(content, {submission.ARCHIVE: self._runs_of(other)})
        target = self._folder / f"{student}{submission.SUFFIX}"
        target.write_bytes(content)
        return MadeUp(student, role, target)

    def _results(self, student: str) -> dict[str, Path]:
        """The runs of a student's variant, by somebody who makes no mistake."""
        options = RunOptions(out=self._folder / "right" / student)
        return run_variant(self._assignment, self._variants[student].parameters, options)

    def _right(self, student: str) -> Expected:
        parameters = self._variants[student].parameters
        return expected(self._assignment, self._marking, parameters, rows_of(self._results(student)))

    def _runs_of(self, student: str) -> bytes:
        """An archive of another student's runs: plans that are not those of one's own variant."""
        runs = sorted(self._results(student).values())
        return write_archive(runs, self._folder / f"{student}.tar.gz").read_bytes()

    def _predict(self, workspace: Workspace, right: Expected, *, wrong: bool = False) -> None:
        for name, asked in workspace.assignment.file.predictions.items():
            truth = right.predictions[name]
            if asked.kind == "choice":
                value = next((word for word in asked.choices if (word == truth) != wrong), str(truth))
            elif asked.kind == "interval":
                value = f"{truth * 0.8:.4g}..{truth * 1.2:.4g}" if not wrong else f"{truth * 2:.4g}..{truth * 3:.4g}"
            else:
                value = f"{truth * (20 if wrong else 1.05):.4g}"
            workspace.add(TIMES[1], "predict", name, value)

    def _run(self, workspace: Workspace) -> None:
        options = RunOptions(out=workspace.runs)
        for number, name in enumerate(workspace.assignment.scenario_names):
            run_variant(workspace.assignment, workspace.variant.parameters, options, scenarios=[name])
            workspace.add(TIMES[2 + number], "run", name)

    def _predict_with_an_old_log(self, workspace: Workspace, right: Expected, before: bytes) -> None:
        """Runs, looks, puts the log of the beginning back, hides the runs, and predicts what was seen."""
        aside = workspace.folder / "aside"
        (workspace.folder / LOG).write_bytes(before)
        workspace.runs.rename(aside)
        self._predict(workspace, right)
        shutil.rmtree(workspace.runs, ignore_errors=True)
        aside.rename(workspace.runs)


def _edit_results(runs: Path) -> None:
    for path in runs.glob("*/results.csv"):
        lines = path.read_text().splitlines()
        head = lines[0].split(",")
        for column in ("goodput_bps", "rtt_mean_ms"):
            if column in head:
                fields = lines[1].split(",")
                fields[head.index(column)] = f"{float(fields[head.index(column)]) * 1.3:.6f}"
                lines[1] = ",".join(fields)
        path.write_text("\n".join(lines) + "\n")


def _edit_capture(runs: Path) -> None:
    path = next(runs.glob("*/cells/*/captures/*.pcap"))
    content = bytearray(path.read_bytes())
    content[-20] ^= 1
    path.write_bytes(bytes(content))


def _write(workspace: Workspace, right: Expected, role: str) -> None:
    lines, numbers = [], []
    for name, asked in workspace.assignment.file.answers.items():
        answer = right.answers.get(name)
        if role == "blank":
            lines.append(f"{name}:")
        elif asked.kind == "text":
            lines.append(f"{name}: |\n  {TEXT.format(workspace.variant.student)}")
        else:
            value = answer.wrong[0].value if role == "mistaken" and answer.wrong else answer.value
            if asked.kind == "choice":
                lines.append(f"{name}: {value}")
                continue
            unit = f" {asked.unit}" if role == "right-in-other-words" and asked.unit else ""
            lines.append(f"{name}: {value:{'.4g' if role == 'rounded' else '.8g'}}{unit}")
            numbers.append(f"{name} is {value:.5g} {asked.unit}")
    truths = [
        f"{name} came out as {truth:.5g}" for name, truth in right.predictions.items() if isinstance(truth, float)
    ]
    (workspace.folder / answers.FILE).write_text("\n".join(lines) + "\n")
    if role != "blank":
        head = f"# Write-up of {workspace.variant.student}\n\n"
        found = f"I found that {', '.join(numbers)}. Of my predictions, {', '.join(truths)}.\n"
        (workspace.folder / WRITE_UP).write_text(head + found)


def members_of(content: bytes) -> dict[str, bytes]:
    """The members of a gzipped tar."""
    with tarfile.open(fileobj=io.BytesIO(content), mode="r:gz") as archive:
        return {member.name: archive.extractfile(member).read() for member in archive.getmembers()}


def repacked(content: bytes, members: Mapping[str, bytes | None]) -> bytes:
    """A submission with other members, and with their digests; None: without that member."""
    found = {name: one for name, one in {**members_of(content), **members}.items() if one is not None}
    contents = json.loads(found.pop(submission.CONTENTS))
    contents["members"] = {name: hashlib.sha256(one).hexdigest() for name, one in found.items()}
    return packed({submission.CONTENTS: json.dumps(contents).encode(), **found})


def packed(members: dict[str, bytes]) -> bytes:
    """A gzipped tar of these members."""
    target = io.BytesIO()
    with gzip.GzipFile("", "wb", mtime=0, fileobj=target) as zipped, tarfile.open(fileobj=zipped, mode="w") as archive:
        for name, content in members.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
    return target.getvalue()


def assignments(is_whole: bool) -> list[str]:
    """The project's assignments; those that take long only if all are asked for."""
    return [name for name in names() if is_whole or name not in LONG_ASSIGNMENTS]


def roles(count: int) -> list[str]:
    """The roles of a class: every cheat once, all others honest in turn."""
    return [*CHEATS, *(HONEST[number % len(HONEST)] for number in range(count - len(CHEATS)))]
