"""Submissions that would take memory and time without end, or cannot be written: each costs its own grade alone."""

import hashlib
import json
import random
import subprocess
import sys
import time

import pytest

from scpslab_course.grading import submission
from tests.lab.cheats import members_of, packed, repacked
from tests.lab.made_up_class import MadeUpClass
from tests.lab.pages import ROOT

MOST_MEMORY_KIB = 512 << 10
# Runs a command, and prints the largest resident size in KiB among it and what it started. A program of its own,
# because this process has had guests.
LARGEST_CHILD = """
import resource, subprocess, sys
subprocess.run(sys.argv[1:], capture_output=True)
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
"""


def with_results(content: bytes, results: bytes) -> bytes:
    """The submission with another results.csv in its runs, listed as it is."""
    runs = members_of(members_of(content)[submission.ARCHIVE])
    name = next(name for name in runs if name.endswith("results.csv"))
    contents = json.loads(runs["archive.json"])
    for run in contents["runs"]:
        if name == f"{run['run']}/results.csv":
            run["files"]["results.csv"] = hashlib.sha256(results).hexdigest()
    return repacked(
        content, {submission.ARCHIVE: packed(runs | {name: results, "archive.json": json.dumps(contents).encode()})}
    )


def with_answer(content: bytes, answer: str) -> bytes:
    """The submission with another answer to the first question."""
    first, _, rest = members_of(content)["answers.yaml"].decode().partition("\n")
    return repacked(content, {"answers.yaml": f"{first.partition(':')[0]}: {answer}\n{rest}".encode()})


def numbers() -> bytes:
    """A write-up of 70,000 numbers, each of which may be another student's."""
    stream = random.Random(1)
    return " ".join(f"{stream.randint(100_000, 999_999)}.{number:06d}" for number in range(70_000)).encode()


def many_files(content: bytes) -> bytes:
    """The submission with 6,000 files in its runs, none of which is listed."""
    runs = members_of(members_of(content)[submission.ARCHIVE])
    return repacked(content, {submission.ARCHIVE: packed(runs | {f"more/{number}": b"" for number in range(6000)})})


# What was done to a right submission, its status, and words of what is said of it.
COSTLY = {
    "half a surrogate pair": (lambda right: with_answer(right, '"\\ud800"'), "ungraded", "half of a surrogate pair"),
    "10 MiB of line feeds": (lambda right: with_results(right, b"a\n" * (5 << 20)), "ungraded", "of 10485760 bytes"),
    "3 MiB of line feeds": (lambda right: with_results(right, b"a\n" * (3 << 19)), "held", "edited-results"),
    "6,000 files": (many_files, "ungraded", "more than 5000 files"),
    "20,000 spaces": (lambda right: with_answer(right, f'"1 x{" " * 20_000}y"'), "graded", ""),
    "70,000 numbers": (lambda right: repacked(right, {"write-up.md": numbers()}), "graded", ""),
    "right": (lambda right: right, "graded", ""),
}


@pytest.fixture(scope="module")
def graded(tmp_path_factory):
    """What `scpslab grade` writes of these submissions of one student, its memory and its time."""
    folder = tmp_path_factory.mktemp("costly")
    made = MadeUpClass(folder, ["anna"])
    right = made.hand_in("anna", "right", "anna").file.read_bytes()
    files = []
    for number, (change, *_) in enumerate(COSTLY.values()):
        files.append(folder / f"{number}.submission.tar.gz")
        files[-1].write_bytes(change(right))
    (folder / "who.csv").write_text("file,student\n" + "".join(f"{file.name},anna\n" for file in files))
    asked = ["--course", made.course.folder, "--submitters", folder / "who.csv", "--format", "json"]
    command = [ROOT / "scpslab", "grade", *files, *asked, "--out", folder / "grades.json"]
    begun = time.monotonic()
    measured = [sys.executable, "-c", LARGEST_CHILD, *command]
    largest_kib = int(subprocess.run(measured, capture_output=True, text=True, check=True).stdout)
    grades = json.loads((folder / "grades.json").read_text())
    return dict(zip(COSTLY, grades, strict=True)), largest_kib, time.monotonic() - begun


@pytest.mark.parametrize("name", COSTLY)
def test_each_costly_submission_costs_its_own_grade_and_says_why(graded, name):
    grades, _, _ = graded
    _, status, words = COSTLY[name]

    assert grades[name]["status"] == status, grades[name]
    assert words in grades[name]["comment"]


def test_the_memory_of_a_class_stays_below_half_a_gibibyte_and_nothing_takes_long(graded):
    _, kib, seconds = graded

    assert kib < MOST_MEMORY_KIB
    assert seconds < 120
