"""Programs as people and machines start them: commands, set-up, checks of the machine. What the lab hears of programs:
their last line too, with or without a line feed. The environment of a clone is made anew when the system's Python
is another one than it was made with. Builds that end early: one that fails leaves its log alone, one that is
interrupted takes its programs with it.
"""

import errno
import os
import platform
import select
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from scpslab.core.errors import CapabilityError
from scpslab.lab.loop import Loop
from scpslab.setup import images, silent
from scpslab.setup.job import Job
from tests.lab.pages import ROOT

# Puts itself behind a filter that answers ptrace (system call 101 of x86-64) so, then runs the check.
BEHIND_A_FILTER = """
import ctypes, struct, sys
from scpslab.engine import findings as tracing
answer = int(sys.argv[1])
steps = [(0x20, 0, 0, 0), (0x15, 0, 1, 101), (0x06, 0, 0, answer), (0x06, 0, 0, 0x7FFF0000)]
program = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *step) for step in steps))
libc = ctypes.CDLL(None, use_errno=True)
assert libc.prctl(38, 1, 0, 0, 0) == 0
assert libc.prctl(22, 2, struct.pack("HxxxxxxQ", len(steps), ctypes.addressof(program)), 0, 0) == 0
found = tracing.ptrace()
print(found.state, found.found)
"""
REFUSES, KILLS = 0x00050000 | errno.EPERM, 0x80000000


def output(*words: str) -> str:
    """What a program of Python prints."""
    return subprocess.run([sys.executable, "-c", *words], check=True, capture_output=True, text=True).stdout


@pytest.mark.skipif(platform.machine() != "x86_64", reason="the filter has x86-64's number of ptrace")
@pytest.mark.parametrize(("answer", "cause"), [(REFUSES, "Operation not permitted"), (KILLS, "killed by SIGSYS")])
def test_a_filter_that_forbids_ptrace_is_found(answer, cause):
    assert output(BEHIND_A_FILTER, str(answer)).strip() == f"missing refused ({cause}) by a seccomp filter"


@pytest.mark.parametrize(
    ("words", "needless"),
    [
        # What people type first takes a tenth of a second.
        (("--help",), {"numpy", "pydantic", "matplotlib", "yaml", "rich"}),
        # Numpy stands there, and is not loaded.
        (("validate", "fy97/fig04:test"), {"numpy.linalg", "matplotlib", "rich"}),
    ],
)
def test_a_command_loads_no_library_that_it_does_not_need(words, needless):
    said = "import atexit, sys; from scpslab.cli.app import main; atexit.register(lambda: print(*sys.modules)); main()"
    assert needless & set(output(said, *words).split()) == set()


def test_what_the_autograder_s_container_runs_needs_no_library_for_pictures():
    output("import sys; sys.modules['matplotlib'] = None; import scpslab_course.autograder.__main__")


def test_a_second_setup_needs_no_network():
    if any(images.find(part, images.cache_dir()) is None for part in images.PARTS):
        pytest.skip("the images are not built here")
    command = ["unshare", "--map-root-user", "--net", sys.executable, "-m", "scpslab.setup"]
    if subprocess.run([*command[:3], "true"], capture_output=True, check=False).returncode:
        pytest.skip("no user namespaces here")
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert "building" not in done.stdout


def test_the_last_line_counts_without_a_line_feed_and_comes_before_the_program_s_end():
    loop, heard = Loop(), []
    process = subprocess.Popen(["sh", "-c", r"printf 'one\ntwo'"], stdout=subprocess.PIPE)
    loop.on_lines(process.stdout, heard.append)
    loop.on_exit(process, heard.append)
    assert loop.run_until(lambda: 0 in heard, None)
    assert heard == ["one", "two", 0]


NEEDED = ("bash", "cat", "dirname", "sha256sum", "readlink", "flock")


def test_an_environment_whose_python_is_gone_is_not_current(tmp_path):
    programs, venv = tmp_path / "programs", tmp_path / "clone" / ".venv" / "bin"
    for folder in (programs, venv, tmp_path / "clone" / "tools"):
        folder.mkdir(parents=True)
    for name in NEEDED:
        (programs / name).symlink_to(shutil.which(name))
    script = Path(shutil.copy(ROOT / "tools" / "setup-python", tmp_path / "clone" / "tools"))
    (tmp_path / "clone" / "requirements.lock").write_text("")
    (tmp_path / "python3.12").write_text("")
    (venv / "python").symlink_to(tmp_path / "python3.12")
    mark = tmp_path / "clone" / ".venv" / "lock.sha256"
    facts = f"{script.read_text()}{tmp_path / 'clone'}\n{tmp_path / 'python3.12'}\n".encode()
    mark.write_bytes(subprocess.run(["sha256sum"], input=facts, check=True, capture_output=True).stdout)

    def run():
        return subprocess.run(
            [script], env={**os.environ, "PATH": str(programs)}, capture_output=True, text=True, check=False
        )

    assert (run().returncode, run().stderr) == (0, "")
    (tmp_path / "python3.12").unlink()
    assert run().returncode == 3
    assert "python3: found none of version 3.11" in run().stderr


# A part whose build starts a program in the background; both hold the pipe's end, so the pipe is at its end when both
# have gone.
BUILDS = """
import runpy, sys
from scpslab.setup import images
BUILD = ["sh", "-c", f"exec 3>{sys.argv[1]}; sleep 600 & echo ready >&3; wait"]
images.PARTS = (images.Built("tools", "tools", "images/guest/tools", lambda job: job.run(BUILD), "bin", images.files_of),)
images.NEEDED_BYTES = 1
sys.argv = ["scpslab.setup"]
runpy.run_module("scpslab.setup", run_name="__main__")
"""
LIMIT_S = 60


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_an_interrupted_build_leaves_no_process(tmp_path, number):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    environment = os.environ | {"SCPSLAB_CACHE": str(tmp_path / "cache")}
    with (
        subprocess.Popen(
            [sys.executable, "-c", BUILDS, str(pipe)], env=environment, stderr=subprocess.PIPE, text=True
        ) as build,
        pipe.open("rb", 0) as end,
    ):
        assert end.read(6) == b"ready\n"
        build.send_signal(number)
        assert build.wait(LIMIT_S) == 130
        said = build.stderr.read()
        assert select.select([end], [], [], LIMIT_S)[0], "a program of the build is still there"
        assert end.read(1) == b""
    assert said == "interrupted: finished parts are kept; repeat the command to build the others\n"
    assert list((tmp_path / "cache" / "tools").iterdir()) == []


def test_a_failed_build_leaves_its_log_and_nothing_else(recipes, monkeypatch):
    folder, _, parts = recipes

    def build(job: Job) -> None:
        job.target.write_text("half")
        (job.work / "read-only").mkdir()
        (job.work / "read-only" / "file").touch()
        (job.work / "read-only").chmod(0o500)
        job.run(["sh", "-c", "echo cannot do it; exit 7"])

    monkeypatch.setattr(
        images, "PARTS", (*parts[:2], images.Built("kernel", "kernel", "kernel", build, "product", images.files_of))
    )
    with pytest.raises(CapabilityError, match=r"sh: found exit code 7, last lines .cannot do it.; expected 0"):
        images.ensure(silent)
    assert list((folder / "cache" / "kernel").iterdir()) == []
    assert "cannot do it" in (folder / "cache" / "kernel.log").read_text()
