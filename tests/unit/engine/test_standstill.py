"""Which program keeps virtual time from passing: its command line, on the stack as Linux begins it."""

import os

import pytest

from scpslab.engine.standstill import command_line

MACHINE = os.uname().machine.encode()
SETTINGS = (b"HOME=/root", b"LANG=C.UTF-8")


def stack(*words: bytes) -> bytes:
    """The stack's upper end: random bytes, the machine's name, the command line, the settings, the file."""
    strings = b"\0".join([b"\x17\xbf\xe5" + MACHINE, *words, *SETTINGS, b"/usr/bin/x"])
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
