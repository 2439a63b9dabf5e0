"""Which program keeps virtual time from passing."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest

from scpslab.engine.standstill import command_line, standstill

MACHINE = os.uname().machine.encode()


def stack(
    *words: bytes, file: bytes = b"/usr/bin/x", settings: tuple[bytes, ...] = (b"HOME=/root", b"LANG=C.UTF-8")
) -> bytes:
    """The upper end of a stack as Linux begins it: random bytes, the name of the machine, the command line, the
    settings, the file.
    """
    strings = b"\0".join([b"\x17\xbf\xe5" + MACHINE, *words, *settings, file])
    return strings.rjust(4096 - 9, b"\0") + b"\0" * 9


@pytest.mark.parametrize(
    ("pages", "words"),
    [
        ([stack(b"sh", b"-c", b"while :; do :; done")], ["sh", "-c", "while :; do :; done"]),
        ([b"\x7fELF" + b"\0" * 4092, stack(b"iperf3", b"-n", b"200K")], ["iperf3", "-n", "200K"]),
        ([stack()], ["/usr/bin/x"]),
        ([b"\0" * 4096, b"\xff" * 4096], []),
        ([], []),
    ],
)
def test_the_command_line_is_found_on_the_stack(pages, words):
    assert command_line(iter(pages)) == words


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
