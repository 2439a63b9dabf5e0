"""The autograder's archive in a container as Gradescope has it: no network, 768 MB, half a processor, 64 MB of
/dev/shm, Docker's own seccomp profile.

Opt-in, because it takes minutes and needs Docker Engine and root: make test-autograder. It sets
SCPSLAB_AUTOGRADER_WHEEL to the wheel of scpslab.
"""

import json
import os
import shutil
import subprocess
import time
import zipfile
from pathlib import Path

import pytest

from scpslab.setup.apt import sources_line
from scpslab_course.cli.course import _Reference
from tests.lab.cheats import CHEATS
from tests.lab.made_up_class import MadeUpClass

WHEEL = os.environ.get("SCPSLAB_AUTOGRADER_WHEEL")
pytestmark = pytest.mark.skipif(WHEEL is None, reason="opt-in: make test-autograder")
BASE = "scpslab/autograder-test:13"
# The Python of Debian 13.
PYTHON = "3.13"
LIMITS = ("--network", "none", "--memory", "768m", "--memory-swap", "768m", "--cpus", "0.5", "--shm-size", "64m")
# Gradescope's own limit is ten minutes; a machine that runs other tests beside this one has less than half a processor.
PATIENCE_S = 1800
# What shows without the class, whose look from one submission at others is not to be had where each has a container.
ALONE = ("others-variant", "edited-results", "edited-captures", "replayed-log", "late-prediction", "swapped-plan")
ROLES = ("right", *ALONE)
PEAK = "cat /sys/fs/cgroup/memory/memory.max_usage_in_bytes /sys/fs/cgroup/memory.peak 2>/dev/null"


def docker(*words: str, **options: object) -> str:
    return subprocess.run(
        ["docker", *words], check=True, capture_output=True, text=True, timeout=PATIENCE_S, **options
    ).stdout.strip()


@pytest.fixture(scope="module")
def base():
    """Debian 13 with its Python, as an instructor's image would have it; made of Debian's packages once."""
    if subprocess.run(["docker", "image", "inspect", BASE], capture_output=True, check=False).returncode != 0:
        words = ["mmdebstrap", "--quiet", "--variant=minbase", "--mode=root", "--include=python3,python3-venv"]
        words += ["trixie", "-", sources_line()]
        with subprocess.Popen(words, stdout=subprocess.PIPE) as made:
            docker("import", "-", BASE, stdin=made.stdout)
        assert made.returncode == 0
    return BASE


@pytest.fixture(scope="module")
def course(tmp_path_factory):
    """The archive, and the files of students in their roles."""
    folder = tmp_path_factory.mktemp("course")
    ids = [f"s{number}" for number in range(len(ROLES) + 1)]
    made = MadeUpClass(folder, ids, _Reference(None).rows, "first-steps")
    students = {role: made.hand_in(one, role, ids[-1]) for one, role in zip(ids, ROLES, strict=False)}
    words = ["course", "gradescope", "first-steps", "--course", str(folder / "satnet"), "--roster", str(made.roster)]
    words += ["--wheel", str(WHEEL), "--python", PYTHON]
    subprocess.run(
        [os.environ.get("SCPSLAB_PROGRAM", "./scpslab"), *words, "--out", str(folder / "autograder.zip")], check=True
    )
    return folder, students


@pytest.fixture(scope="module")
def container(base, course):
    """An image in which setup.sh has run, under the limits too."""
    folder, _ = course
    with zipfile.ZipFile(folder / "autograder.zip") as archive:
        archive.extractall(folder / "source")
    begun = time.monotonic()
    built = docker("run", "--detach", *LIMITS, base, "sleep", "infinity")
    docker("exec", built, "mkdir", "/autograder")
    docker("cp", str(folder / "source"), f"{built}:/autograder/source")
    docker("exec", built, "bash", "/autograder/source/setup.sh")
    image = docker("commit", built)
    docker("rm", "--force", built)
    size = int(docker("image", "inspect", "--format", "{{.Size}}", image))
    print(
        f"\narchive {(folder / 'autograder.zip').stat().st_size / 1e6:.1f} MB; "
        f"setup.sh {time.monotonic() - begun:.0f} s; image {size / 1e6:.0f} MB"
    )
    yield image
    docker("image", "rm", "--force", image)


@pytest.fixture(scope="module")
def graded(container, course):
    """Grades files as the platform does: a container for each."""

    def grade(*files: Path, email: str, before: str = "true") -> dict[str, object]:
        folder = course[0] / "handed-in"
        shutil.rmtree(folder, ignore_errors=True)
        (folder / "submission").mkdir(parents=True)
        for file in files:
            shutil.copy(file, folder / "submission")
        (folder / "submission_metadata.json").write_text(
            json.dumps({"id": 1, "users": [{"email": email, "id": 1, "name": "A Student"}]})
        )
        running = docker("run", "--detach", *LIMITS, container, "sleep", "infinity")
        try:
            docker("cp", f"{folder}/.", f"{running}:/autograder")
            begun = time.monotonic()
            words = ["docker", "exec", running, "bash", "-c", f"{before}; exec bash /autograder/source/run_autograder"]
            subprocess.run(words, check=False, timeout=PATIENCE_S)
            taken_s = time.monotonic() - begun
            peak = subprocess.run(
                ["docker", "exec", running, "sh", "-c", PEAK], capture_output=True, text=True, check=False
            ).stdout.split()
            print(f"graded in {taken_s:.0f} s; memory at most {int(peak[0]) / 1e6:.0f} MB, the files' cache included")
            return json.loads(docker("exec", running, "cat", "/autograder/results/results.json"))
        finally:
            docker("rm", "--force", running)

    return grade


def test_nothing_of_the_secret_travels(course):
    folder, _ = course
    secret = (folder / "satnet" / "secret").read_bytes().split()[-1]
    with zipfile.ZipFile(folder / "autograder.zip") as archive:
        for name in archive.namelist():
            content = archive.read(name)
            assert secret not in content, name
            assert bytes.fromhex(secret.decode()) not in content, name
        names = [name for name in archive.namelist() if name.startswith("course/")]
    assert "course/assignments/first-steps/instructor/marking.yaml" in names
    assert [name for name in names if "instructor/" in name and not name.endswith("marking.yaml")] == []


def test_an_honest_submission_has_its_points(graded, course):
    student = course[1]["right"]
    found = graded(student.file, email="S0@Example.org")
    assert found["score"] == pytest.approx(sum(test["max_score"] for test in found["tests"]), rel=0.02), found
    assert found["extra_data"]["findings"] == []


@pytest.mark.parametrize("role", ALONE)
def test_each_cheat_is_named_in_the_container(graded, course, role):
    student = course[1][role]
    found = graded(student.file, email=f"{student.id}@example.org")
    assert CHEATS[role].named in found["extra_data"]["findings"], found
    assert ("score" in found) == (role == "late-prediction")


def test_a_submission_of_somebody_unknown_has_no_score_and_says_why(graded, course):
    found = graded(course[1]["right"].file, email="stranger@example.org")
    assert "score" not in found
    assert "stranger@example.org" in found["output"]


def test_no_file_and_two_files_have_no_score_and_say_why(graded, course):
    for files in ((), (course[1]["right"].file, course[1]["late-prediction"].file)):
        found = graded(*files, email="s0@example.org")
        assert "score" not in found
        assert "expected the one file" in found["output"]


def test_a_grader_that_dies_leaves_a_result_without_a_score(graded, course):
    """Python itself does not get the memory that it asks for."""
    found = graded(course[1]["right"].file, email="s0@example.org", before="ulimit -v 60000")
    assert "score" not in found
    assert "Nothing was decided" in found["output"]
