"""Autograders: archives for platforms that build a container of their own, and what it runs (__main__.py).

An archive has wheels of scpslab and of what grading needs, one assignment, and two scripts. The course's secret is not
in it, nor is anything that only drawing variants needs (docs/security.md). The wheels have the versions of this
installation. Names inside an archive and its container are by Gradescope's convention (its repository
autograder_samples, January 2025).
"""

import importlib.metadata
import json
import re
import subprocess
import sys
import zipfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from scpslab.analysis.output import csv_text
from scpslab.core.errors import CapabilityError, ScenarioError, UsageError, some_of
from scpslab.core.installation import add_extra, version
from scpslab.core.names import shown
from scpslab.core.scratch import replacing
from scpslab.documents.yaml_lines import written
from scpslab.setup import cache_dir
from scpslab.setup.images import parts_facts
from scpslab_course.course.assignment import INSTRUCTOR, Assignment, Marking
from scpslab_course.course.folder import FILE, OWN, Course, Student
from scpslab_course.course.model import MARKING, SCENARIO_SUFFIX
from scpslab_course.course.workspace import handed_out

# In the container: the archive is unpacked in SOURCE, the student's files are in SUBMISSION.
ROOT = Path("/autograder")
SOURCE, SUBMISSION, METADATA, RESULTS = "source", "submission", "submission_metadata.json", "results/results.json"
# In the archive.
SETUP, RUN = "setup.sh", "run_autograder"
WHEELS, REQUIREMENTS, PYTHONS = "wheels", "requirements.txt", "pythons"
COURSE, STUDENTS = "course", "students.csv"
# Times and owners of the machine are nobody's business: the same input gives the same archive.
DATE = (1980, 1, 1, 0, 0, 0)
PLAIN, PROGRAM = 0o100644, 0o100755
# What grading imports: pictures are not drawn, so that the largest libraries stay away.
NEEDED = ("cryptography", "jinja2", "mpmath", "numpy", "pydantic", "pyyaml", "rich", "typer")
PARTS = "scpslab/project_files/parts/parts.json"
# Names of wheels (PyPA: binary distribution format): NAME-VERSION-…
WHEEL = re.compile(r"(?P<name>[A-Za-z0-9_.]+)-(?P<version>[^-]+)-.*\.whl")
PLATFORMS = ("manylinux2014_x86_64", "manylinux_2_17_x86_64", "manylinux_2_28_x86_64")
MAKE = 'Make it ("make wheel" in a clone), or name the file from which you have installed'

SAME_PARTS = "Everybody of a course needs the same wheel, or clones with the same parts"


@dataclass(frozen=True)
class Wheels:
    """The wheels of an archive: their files, the pinned requirements that they fulfil, and the versions of Python that
    they are for.
    """

    files: Sequence[Path]
    requirements: Sequence[str]
    pythons: Sequence[str]


def write_archive(
    out: Path, course: Course, term: str, assignment: Assignment, students: Sequence[Student], wheels: Wheels
) -> int:
    """Writes the archive in one step; returns its size in bytes.

    Raises:
        ScenarioError: students without an e-mail address, or two with the same.
    """
    check_emails(students)
    # It has the markings, and the students' addresses.
    with replacing(out, private=True) as aside, zipfile.ZipFile(aside, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content, mode in _members(course, term, assignment, students, wheels):
            entry = zipfile.ZipInfo(name, DATE)
            entry.external_attr = mode << 16
            # Wheels are compressed already.
            entry.compress_type = zipfile.ZIP_STORED if name.endswith(".whl") else zipfile.ZIP_DEFLATED
            archive.writestr(entry, content)
    return out.stat().st_size


def _members(
    course: Course, term: str, assignment: Assignment, students: Sequence[Student], wheels: Wheels
) -> Iterator[tuple[str, bytes, int]]:
    for name in (SETUP, RUN):
        yield name, (Path(__file__).parent / name).read_bytes(), PROGRAM
    yield PYTHONS, (" ".join(wheels.pythons) + "\n").encode(), PLAIN
    yield REQUIREMENTS, "".join(f"{line}\n" for line in wheels.requirements).encode(), PLAIN
    # Variants of other assignments are refused, because this course has none.
    facts = course.file.model_copy(update={"term": term, "assignments": (assignment.name,)}).model_dump(mode="json")
    yield f"{COURSE}/{FILE}", written(facts).encode(), PLAIN
    listed: list[list[object]] = [[one.id, one.email] for one in students]
    yield STUDENTS, csv_text([["student", "email"], *listed]).encode(), PLAIN
    for inside, content in files_of(course, term, assignment):
        yield f"{COURSE}/{OWN}/{assignment.name}/{inside}", content, PLAIN
    for wheel in wheels.files:
        yield f"{WHEELS}/{wheel.name}", wheel.read_bytes(), PLAIN


def files_of(course: Course, term: str, assignment: Assignment) -> Iterator[tuple[str, bytes]]:
    """What grading reads of an assignment: the students' part, and of the instructor's marking.yaml and the scenarios
    of its trials.
    """
    yield from handed_out(assignment.folder)
    marking = course.marking(assignment)
    yield f"{INSTRUCTOR}/{MARKING}", _without_draws(course, term, assignment, marking)
    for name in sorted({f"{trial.scenario}{SCENARIO_SUFFIX}" for trial in marking.file.trials.values()}):
        yield f"{INSTRUCTOR}/{name}", (marking.folder / name).read_bytes()


def _without_draws(course: Course, term: str, assignment: Assignment, marking: Marking) -> bytes:
    """marking.yaml, with the values that the secret draws for trials: the container has no secret.

    Raises:
        UsageError: the secret is needed, and missing.
    """
    if not any(trial.is_drawn for trial in marking.file.trials.values()):
        return (marking.folder / MARKING).read_bytes()
    key = course.secret().draw_key
    trials = {
        name: trial.fixed(trial.drawn(key, term, assignment.name, name)) for name, trial in marking.file.trials.items()
    }
    file = marking.file.model_copy(update={"trials": trials})
    data = file.model_dump(mode="json", by_alias=True, exclude_unset=True)
    return written(data).encode()


def check_emails(students: Sequence[Student]) -> None:
    """Refuses a roster by which the platform's word of who handed in says nothing.

    Raises:
        ScenarioError: students without an e-mail address, or two with the same.
    """
    without = [student.id for student in students if not student.email]
    if without:
        expected = "expected one of every student, because the platform identifies students by e-mail"
        found = f"found no e-mail address of {some_of(without)}"
        raise ScenarioError(f"--roster: {found}; {expected}. Add the column email.")
    seen: dict[str, str] = {}
    for student in students:
        other = seen.setdefault(student.email.casefold(), student.id)
        if other != student.id:
            found = f"found the e-mail address {shown(student.email)} of {other} and {student.id}"
            raise ScenarioError(f"--roster: {found}; expected one of each. Correct the roster.")


def collect(own: Path, pythons: Sequence[str], folder: Path) -> Wheels:
    """The wheels for these versions of Python; those that are missing are downloaded into `folder`.

    Raises:
        UsageError: `own` is not the wheel of this scpslab.
        CapabilityError: wheels cannot be downloaded.
    """
    check_own(own)
    pins = {_normal(one.name): one.version for one in importlib.metadata.distributions()}
    missing = [name for name in NEEDED if name not in pins]
    if missing:
        advice = f"Run: {add_extra('course')}."
        raise CapabilityError(f"Python packages: found no {', '.join(missing)}; expected what grading needs. {advice}")
    constraints = folder / "constraints.txt"
    constraints.write_text("".join(f"{name}=={pinned}\n" for name, pinned in sorted(pins.items()) if name != "scpslab"))
    for python in pythons:
        _download(python, constraints, folder)
    files = sorted(folder.glob("*.whl"))
    found = {_normal(match["name"]): match["version"] for file in files if (match := WHEEL.fullmatch(file.name))}
    requirements = [f"{name}=={pinned}" for name, pinned in sorted(found.items())]
    return Wheels([own, *files], [f"scpslab=={version()}", *requirements], pythons)


def check_own(wheel: Path) -> None:
    """Makes sure that a wheel is that of this program, with the parts that are used here: others give other bytes than
    the students' runs have.

    Raises:
        UsageError: it is not.
    """
    where = f"--wheel {wheel}"
    match = WHEEL.fullmatch(wheel.name)
    if match is None or match["name"] != "scpslab" or not wheel.is_file():
        raise UsageError(f"{where}: found no wheel of scpslab; expected scpslab-{version()}-….whl. {MAKE}.")
    if match["version"] != version():
        raise UsageError(f"{where}: found version {match['version']}; expected {version()}, which runs here. {MAKE}.")
    try:
        with zipfile.ZipFile(wheel) as archive:
            parts = json.loads(archive.read(PARTS))["parts"]
            carried = {str(part["name"]): str(part["sha256"]) for part in parts}
    except (OSError, KeyError, TypeError, ValueError, zipfile.BadZipFile) as error:
        said = f"found no built parts in it ({type(error).__name__}); expected them"
        raise UsageError(f"{where}: {said}. {MAKE}.") from error
    for name, facts in parts_facts(cache_dir()).items():
        if carried.get(name) != facts["sha256"]:
            found = f"found SHA-256 {carried.get(name, 'of none')[:12]}; expected {facts['sha256'][:12]}"
            said = f"{found}, which runs here: otherwise the grader's bytes differ from the students'"
            raise UsageError(f"{where}: {name}: {said}. {SAME_PARTS}.")


def _download(python: str, constraints: Path, folder: Path) -> None:
    words = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check"]
    words += ["--only-binary", ":all:", "--dest", str(folder)]
    words += ["--python-version", python, "--implementation", "cp", "--constraint", str(constraints)]
    words += [*(f"--platform={name}" for name in PLATFORMS), *NEEDED]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        last = (done.stderr.strip().splitlines() or ["nothing"])[-1]
        advice = "Connect to the network, or choose another --python."
        said = f"found {last}; expected them from the package index"
        raise CapabilityError(f"wheels for Python {python}: {said}. {advice}")


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()
