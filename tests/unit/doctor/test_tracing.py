"""What doctor says where ptrace is refused: by a real filter of system calls, and by settings that a test cannot
make.
"""

from __future__ import annotations

import errno
import platform
import signal
import subprocess
import sys

import pytest

from scpslab.engine.findings import Surroundings, explain

BARE = Surroundings("Debian")
DOCKER = Surroundings("Debian", "docker")
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


@pytest.mark.skipif(platform.machine() != "x86_64", reason="the filter has x86-64's number of ptrace")
@pytest.mark.parametrize(("answer", "said"), [(REFUSES, "Operation not permitted"), (KILLS, "killed by SIGSYS")])
def test_a_filter_that_forbids_ptrace_is_found(answer, said):
    done = subprocess.run(
        [sys.executable, "-c", BEHIND_A_FILTER, str(answer)], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == f"missing refused ({said}) by a seccomp filter"


def test_the_way_out_fits_what_refuses():
    assert explain(0, 0, True, DOCKER).state == "ok"
    assert explain(errno.EPERM, 0, True, DOCKER).fix.startswith("docker run --security-opt seccomp=unconfined")
    assert explain(-signal.SIGSYS, 0, True, Surroundings("Debian", "podman")).fix.startswith(
        "podman run --security-opt"
    )
    assert "docker" not in explain(errno.EPERM, 0, True, BARE).fix
    assert "security module" in explain(errno.EPERM, 0, False, BARE).fix


def test_yamas_scope_is_named_with_the_command_that_changes_it():
    found = explain(errno.EPERM, 2, False, BARE)
    assert (found.found, found.fix) == (
        "refused (Operation not permitted): kernel.yama.ptrace_scope is 2",
        "sudo sysctl -w kernel.yama.ptrace_scope=1",
    )
    # 3 holds until the next boot, whatever root writes.
    assert "boot again" in explain(errno.EPERM, 3, True, DOCKER).fix
