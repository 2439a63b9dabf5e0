"""What a child that keeps virtual time from passing does; tests/unit/engine reads its command line."""

import os
import signal
import subprocess
import sys

import pytest

from scpslab.engine.standstill import standstill


@pytest.mark.parametrize(
    ("program", "says"),
    [("echo; while :; do :; done", "computed without any system call"), ("echo; exec sleep 60", "")],
)
def test_what_a_child_does_is_told(program, says):
    """A process and its only child, as a kernel and its only program."""
    parent = f"""
import subprocess
child = subprocess.Popen(["sh", "-c", {program!r}], stdout=subprocess.PIPE)
child.stdout.readline()
print(child.pid, flush=True)
child.wait()
"""
    process = subprocess.Popen([sys.executable, "-c", parent], stdout=subprocess.PIPE)
    assert process.stdout is not None
    child = int(process.stdout.readline())
    try:
        found = standstill(process.pid)
    finally:
        os.kill(child, signal.SIGKILL)
        process.wait()
        process.stdout.close()
    assert (says in found) if says else found == ""


def test_a_process_that_is_gone_says_nothing():
    process = subprocess.Popen(["true"])
    process.wait()
    assert standstill(process.pid) == ""
