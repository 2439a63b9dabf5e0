"""Programs as people and machines start them: commands, set-up, checks of the machine."""

import errno
import platform
import subprocess
import sys

import pytest

from scpslab.setup import images

pytestmark = pytest.mark.slow

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


def test_help_loads_no_library_that_only_commands_need():
    """It is what people type first, and it takes a tenth of a second."""
    loaded = output("import sys; from scpslab.cli.app import program; program(['--help']); print(*sys.modules)").split()
    assert {"numpy", "pydantic", "matplotlib", "yaml", "rich"} & set(loaded) == set()


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
