"""What a student with an afternoon can do instead of the work, and what each of it is to be called.

A cheat is a made-up student who does one step otherwise. `named`: what the grader is to find; without it the submission
cannot be told from honest work, and `says` says why.
"""

import csv
import dataclasses
import gzip
import hashlib
import io
import json
import re
import shutil
import tarfile
from collections.abc import Mapping
from typing import ClassVar

from scpslab.running import RunOptions
from scpslab.runs.archive import write_archive
from scpslab_course.course import answers
from scpslab_course.course import variant as variants
from scpslab_course.course.assignment import INSTRUCTOR, SOLUTION, Assignment
from scpslab_course.course.runs import run_variant
from scpslab_course.course.variant import PRACTICE, Secret, Variant
from scpslab_course.course.workspace import LOG, RUNS, VARIANT, appended
from scpslab_course.grading import submission
from scpslab_course.grading.grade import Code
from tests.lab.made_up_students import TIMES, Student

# What runs a student's file asks it for a policy, or for the two ends of a transport.
HOSTILE = """
def hostile(*given, **named):
    {}
class Policy:
    __init__ = on_start = hostile
class Sender(Policy): pass
class Receiver(Policy): pass
"""


class Cheat(Student):
    """`reason`: words of why there is no grade, where none is given."""

    named: ClassVar[Code | None] = None
    reason: ClassVar[str] = ""

    @classmethod
    def fits(cls, assignment: Assignment) -> bool:
        """Whether an assignment has what this takes."""
        return True


class OthersVariant(Cheat):
    says, named = "hands in the variant of another student", Code.OTHER_VARIANT

    def issued(self) -> Variant:
        return self.made.variants[self.other]


class OtherTerm(Cheat):
    says, named = "hands in a variant that was issued for another term", Code.OTHER_VARIANT

    def issued(self) -> Variant:
        return self.made.issued_in("term-0", self.student)


class ForgedVariant(Cheat):
    says, reason = "changes the variant and signs it with a key of one's own", "signed with the key"
    key: ClassVar[Secret] = Secret(hashlib.sha256(b"a student's own").digest())

    def packed(self, content: bytes) -> bytes:
        return repacked(content, {VARIANT: variants.write(variants.signed(self.variant, self.key))})


class PracticeVariant(ForgedVariant):
    says, reason, key = "signs the variant as everybody can, for practice", "the practice variant", PRACTICE


class EditedVariant(Cheat):
    says, reason = "changes the name in a signed variant", "changed after it was signed"

    def packed(self, content: bytes) -> bytes:
        theirs = self.made.variants[self.other]
        forged = dataclasses.replace(theirs, student=self.student, members=(self.student,))
        return repacked(content, {VARIANT: variants.write(forged)})


class SwappedPlan(Cheat):
    says, named = "hands in the runs of another student's variant", Code.SWAPPED_PLAN

    def packed(self, content: bytes) -> bytes:
        runs = sorted(self.made.results(self.made.variants[self.other]).values())
        archive = write_archive(runs, self.made.folder / f"{self.student}.tar.gz").read_bytes()
        return repacked(content, {submission.ARCHIVE: archive})


class MissingRun(Cheat):
    says, named = "leaves out a run, and lists the others", Code.MISSING_RUN

    @classmethod
    def fits(cls, assignment: Assignment) -> bool:
        return len(assignment.file.scenarios) > 1

    def packed(self, content: bytes) -> bytes:
        runs = sorted(run.folder.path for run in self.workspace.planned.values())
        archive = write_archive(runs[1:], self.made.folder / f"{self.student}.tar.gz").read_bytes()
        return repacked(content, {submission.ARCHIVE: archive})


class EditedResults(Cheat):
    says, named = "edits the first line of results.csv; the archive's digests are computed anew", Code.EDITED_RESULTS
    lines: ClassVar[int | None] = 1

    def after_runs(self) -> None:
        for path in (self.workspace.folder / RUNS).glob("*/results.csv"):
            with path.open(newline="") as file:
                head, *rows = csv.reader(file)
            for row in rows[: self.lines]:
                for index, name in enumerate(head):
                    if name in ("goodput_bps", "rtt_mean_ms", "transfer_s") and row[index]:
                        row[index] = f"{float(row[index]) * 1.3:.6f}"
            with path.open("w", newline="") as file:
                csv.writer(file, lineterminator="\n").writerows([head, *rows])


class EditedResultsInTheLog(EditedResults):
    says, lines = "edits results.csv, and writes the log anew with the edited digests and a right chain", None

    def after_runs(self) -> None:
        super().after_runs()
        write_log_anew(self)


class EditedCaptures(Cheat):
    says, named = "edits the captures", Code.EDITED_CAPTURES

    @classmethod
    def fits(cls, assignment: Assignment) -> bool:
        files = map(assignment.scenario, assignment.file.scenarios)
        return any("kind: capture" in path.read_text() for path in files)

    def after_runs(self) -> None:
        for path in (self.workspace.folder / RUNS).glob("*/cells/*/captures/*.pcap"):
            content = bytearray(path.read_bytes())
            content[-20] ^= 1
            path.write_bytes(bytes(content))


class ClaimsAnotherVersion(EditedResults):
    says, named = "edits results.csv, and claims another version of the laboratory", Code.OTHER_VERSION
    lines = None

    def after_runs(self) -> None:
        super().after_runs()
        for path in (self.workspace.folder / RUNS).glob("*/manifest.json"):
            manifest = json.loads(path.read_text())
            for cell in manifest["cells"].values():
                cell["key"] = hashlib.sha256(cell["key"].encode()).hexdigest()[: len(cell["key"])]
            path.write_text(json.dumps(manifest))


class LatePrediction(Cheat):
    says, named = "predicts after the run", Code.LATE_PREDICTION

    def before_runs(self) -> None:
        pass

    def after_runs(self) -> None:
        self.predict()


class BrokenLog(LatePrediction):
    says, named = "predicts after the run, and moves the line up in the log", Code.BROKEN_LOG

    def after_runs(self) -> None:
        super().after_runs()
        path = self.workspace.folder / LOG
        first, *others = path.read_bytes().splitlines(keepends=True)
        path.write_bytes(b"".join([first, *reversed(others)]))


class ReplayedLog(Cheat):
    says, named = "runs, looks, puts an old log back, hides the runs and predicts what was seen", Code.REPLAYED_LOG

    def before_runs(self) -> None:
        self.log = (self.workspace.folder / LOG).read_bytes()

    def after_runs(self) -> None:
        aside = self.workspace.folder / "aside"
        (self.workspace.folder / LOG).write_bytes(self.log)
        self.workspace.runs.rename(aside)
        self.predict()
        shutil.rmtree(self.workspace.runs, ignore_errors=True)
        aside.rename(self.workspace.runs)


class LogAnew(Cheat):
    says = "runs, looks, then writes the whole log anew with a right chain: the chain shows changes, not times"

    def before_runs(self) -> None:
        pass

    def after_runs(self) -> None:
        write_log_anew(self)


class RanElsewhere(Cheat):
    says = "runs the scenarios in another folder first, and predicts what came out: nothing of it is in the submission"

    def before_runs(self) -> None:
        run_variant(
            self.made.assignment,
            self.variant.parameters,
            RunOptions(out=self.made.folder / "elsewhere", jobs=self.made.jobs),
        )
        self.predict()

    def predicted(self, asked, truth, low: float, high: float) -> str:
        return super().predicted(asked, truth, 0.99, 1.01)


class CopiedNumbers(Cheat):
    says, named = "copies another student's numbers", Code.COPIED_NUMBERS

    def value(self, name: str) -> float | str:
        return self.made.right(self.made.variants[self.other]).answers[name].value


class CopiedPredictions(Cheat):
    says, named = "copies another student's predictions", Code.EQUAL_LOGS

    @classmethod
    def fits(cls, assignment: Assignment) -> bool:
        return sum(asked.kind != "choice" for asked in assignment.file.predictions.values()) > 1

    def __init__(self, made, student: str, other: str) -> None:
        super().__init__(made, student, other)
        self.theirs = Student(made, other, other)

    def predict(self) -> None:
        for name, asked in self.workspace.assignment.file.predictions.items():
            draws, truth = self.theirs.draws(name), self.theirs.right.predictions[name]
            value = self.predicted(asked, truth, draws.uniform(0.7, 0.9), draws.uniform(1.1, 1.3))
            self.workspace.add(TIMES[1], "predict", name, value)


class CopiedText(Cheat):
    says, named = "copies another student's texts", Code.EQUAL_TEXTS

    @classmethod
    def fits(cls, assignment: Assignment) -> bool:
        return any(asked.kind == "text" for asked in assignment.file.answers.values())

    def text(self, name: str) -> str:
        return Student(self.made, self.other, self.other).text(name)


class EditedText(CopiedText):
    says, named = "copies another student's texts, and changes every ninth word and all numbers", None

    def text(self, name: str) -> str:
        words = re.sub(r"\d[\d.]*", "17.3", super().text(name)).split()
        return " ".join(f"{word} really" if number % 9 == 8 else word for number, word in enumerate(words))


class PublishedText(Cheat):
    says, named = "takes the texts of the published solution", Code.PUBLISHED_SOLUTION

    @classmethod
    def fits(cls, assignment: Assignment) -> bool:
        return CopiedText.fits(assignment) and (assignment.folder / INSTRUCTOR / SOLUTION / answers.FILE).is_file()

    def text(self, name: str) -> str:
        path = self.made.assignment.folder / INSTRUCTOR / SOLUTION / answers.FILE
        given = answers.read_answers(path.read_bytes(), path).given
        # The solution has no text for the write-up and for a line in a file.
        return " ".join(str(given[name]).split()) if name in given else super().text(name)


def programs(assignment: Assignment) -> list[str]:
    """The programs that are handed in."""
    return [one.file for one in assignment.file.deliverables if one.file.endswith(".py")]


class CopiedProgram(Cheat):
    says, named = "hands in another student's program", Code.EQUAL_TEXTS

    @classmethod
    def fits(cls, assignment: Assignment) -> bool:
        return bool(programs(assignment))

    def deliverable(self, name: str) -> bytes:
        return Student(self.made, self.other, self.other).deliverable(name)


class RenamedProgram(CopiedProgram):
    says, named = "hands in another student's program with other names and comments", None

    def deliverable(self, name: str) -> bytes:
        return renamed(super().deliverable(name))


class PublishedProgram(Cheat):
    says, named = "hands in the program of the published solution", Code.PUBLISHED_SOLUTION

    @classmethod
    def fits(cls, assignment: Assignment) -> bool:
        solution = assignment.folder / INSTRUCTOR / SOLUTION
        return any((solution / name).is_file() for name in programs(assignment))

    def deliverable(self, name: str) -> bytes:
        path = self.made.assignment.folder / INSTRUCTOR / SOLUTION / name
        return path.read_bytes() if path.is_file() else super().deliverable(name)


class HostileProgram(Cheat):
    """A program that is not to gain anything: it has no points, and what it did is said."""

    body: ClassVar[str] = ""

    @classmethod
    def fits(cls, assignment: Assignment) -> bool:
        return bool(assignment.file.trials)

    def deliverable(self, name: str) -> bytes:
        tried = {one.file for one in self.made.assignment.file.trials.values()}
        return HOSTILE.format(self.body).encode() if name in tried else super().deliverable(name)


class EndlessProgram(HostileProgram):
    says, reason = "hands in a program that never answers", "no points"
    body = "while True: pass"


class GreedyProgram(HostileProgram):
    says, reason = "hands in a program that takes all memory", "no points"
    body = "return [len([bytearray(1 << 20) for _ in range(1 << 20)])], None"


class CuriousProgram(HostileProgram):
    says, reason = "hands in a program that looks for files and starts programs", "no points"
    body = "import os, subprocess; return [len(open('/etc/shadow').read()) + os.system('rm -rf /')], None"


class TwiceFromAGroup(Cheat):
    says, named, of_class = (
        "hands in for a group, and so does the other of it with other texts",
        Code.OTHER_VARIANT,
        True,
    )


class Bomb(Cheat):
    says, reason = "hands in a gigabyte of zeros, packed", "found no submission.json"

    def packed(self, content: bytes) -> bytes:
        return gzip.compress(bytes(1 << 30), 1)


class LinkInside(Cheat):
    says, reason = "hands in a link to a file of the grader's", "neither a file nor a folder"

    def packed(self, content: bytes) -> bytes:
        target = io.BytesIO()
        with tarfile.open(fileobj=target, mode="w:gz") as archive:
            for name, one in members_of(content).items():
                entry = tarfile.TarInfo(name)
                if name == answers.FILE:
                    entry.type, entry.linkname = tarfile.SYMTYPE, "/etc/passwd"
                else:
                    entry.size = len(one)
                archive.addfile(entry, io.BytesIO(one))
        return target.getvalue()


class LeavesTheFolder(Cheat):
    says, reason = "hands in a file that would be unpacked elsewhere", "found the member"

    def packed(self, content: bytes) -> bytes:
        return packed({**members_of(content), "../../etc/cron.d/x": b"* * * * * root true\n"})


CHEATS: dict[str, type[Cheat]] = {
    "others-variant": OthersVariant,
    "edited-results": EditedResults,
    "edited-captures": EditedCaptures,
    "replayed-log": ReplayedLog,
    "late-prediction": LatePrediction,
    "swapped-plan": SwappedPlan,
    "copied-numbers": CopiedNumbers,
    "other-term": OtherTerm,
    "forged-variant": ForgedVariant,
    "practice-variant": PracticeVariant,
    "edited-variant": EditedVariant,
    "missing-run": MissingRun,
    "edited-results-in-the-log": EditedResultsInTheLog,
    "claims-another-version": ClaimsAnotherVersion,
    "broken-log": BrokenLog,
    "log-anew": LogAnew,
    "ran-elsewhere": RanElsewhere,
    "copied-predictions": CopiedPredictions,
    "copied-text": CopiedText,
    "edited-text": EditedText,
    "published-text": PublishedText,
    "copied-program": CopiedProgram,
    "renamed-program": RenamedProgram,
    "published-program": PublishedProgram,
    "endless-program": EndlessProgram,
    "greedy-program": GreedyProgram,
    "curious-program": CuriousProgram,
    "twice-from-a-group": TwiceFromAGroup,
    "bomb": Bomb,
    "link-inside": LinkInside,
    "leaves-the-folder": LeavesTheFolder,
}


def of_assignment(assignment: Assignment) -> list[str]:
    """The cheats that an assignment has room for."""
    return [name for name, one in CHEATS.items() if one.fits(assignment)]


def write_log_anew(student: Student) -> None:
    """A log that says: predicted, then ran; the chain is right."""
    workspace = student.workspace
    path = workspace.folder / LOG
    states = workspace.states()
    none = [dataclasses.replace(state, finished=0, results="") for state in states]
    log = appended(b"", workspace.variant.digest, TIMES[0], "start", workspace.assignment.name, "", none)
    path.write_bytes(log)
    aside = workspace.folder / "aside"
    workspace.runs.rename(aside)
    student.predict()
    aside.rename(workspace.runs)
    for number, state in enumerate(states):
        log = path.read_bytes()
        line = (TIMES[2 + number], "run", state.scenario, "", [*states[: number + 1], *none[number + 1 :]])
        path.write_bytes(appended(log, workspace.variant.digest, *line))


def renamed(content: bytes) -> bytes:
    """A program whose attributes have other names, with other numbers and a comment behind every line."""
    text = content.decode()
    for number, name in enumerate(dict.fromkeys(re.findall(r"\bself\.([a-z]\w*)\b(?!\()", text))):
        text = re.sub(rf"\bself\.{name}\b(?!\()", f"self.mine_{number}", text)
    text = re.sub(r"\b2\b", "3", text)
    return "\n".join(f"{line}  # {number}" if line else line for number, line in enumerate(text.split("\n"))).encode()


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


def packed(members: Mapping[str, bytes]) -> bytes:
    """A gzipped tar of these members."""
    target = io.BytesIO()
    with gzip.GzipFile("", "wb", mtime=0, fileobj=target) as zipped, tarfile.open(fileobj=zipped, mode="w") as archive:
        for name, content in members.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
    return target.getvalue()
