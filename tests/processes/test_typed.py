"""Commands from a pipe: each is typed when the prompt asks for it, and what the lab prints is shown whole."""

import os
import subprocess
import sys
import time

import pytest

from scpslab.engine.terminal import typed
from scpslab.lab.place import PROMPT

# A prompt whose commands take a while: what is typed too early would be read by the command.
LAB = f"""
import sys, time, termios
while True:
    print({PROMPT!r}, end="", flush=True)
    line = sys.stdin.readline()
    if not line:
        break
    time.sleep(0.05)
    termios.tcflush(0, termios.TCIFLUSH)
    print("did", line.strip())
print("over " * 20000 + "end")
"""


def session(write, lab=LAB):
    """What is shown of a lab whose commands `write` writes into a pipe."""
    source, commands = os.pipe()
    shown, screen = os.pipe()
    reader = subprocess.Popen(["cat"], stdin=shown, stdout=subprocess.PIPE, text=True)
    with typed(source, screen) as terminal:
        process = subprocess.Popen([sys.executable, "-c", lab], stdin=terminal, stdout=terminal)
        write(commands)
        os.close(commands)
        process.wait(timeout=30)
    for descriptor in (source, shown, screen):
        os.close(descriptor)
    return reader.communicate()[0].replace("\r\n", "\n")


def did(answer):
    """The lines that commands were answered with."""
    return [line for line in answer.splitlines() if line.startswith("did")]


@pytest.mark.parametrize("end", ["", "\n"])
def test_every_line_waits_for_its_prompt(end):
    answer = session(lambda pipe: os.write(pipe, b"one\ntwo\nthree" + end.encode()))

    assert did(answer) == ["did one", "did two", "did three"]
    assert f"{PROMPT}two\ndid two\n" in answer
    assert answer.rstrip().endswith("over " * 20000 + "end")


def test_a_slow_writer_is_waited_for():
    def write(pipe):
        for piece in (b"on", b"e\ntw", b"o\n"):
            os.write(pipe, piece)
            time.sleep(0.3)

    assert did(session(write)) == ["did one", "did two"]
    # No line is the end of input.
    assert did(session(lambda _pipe: None)) == []


def test_a_lab_that_ends_by_itself_ends_the_typing():
    """The rest of the commands has nobody to read it, and the source stays open."""
    source, _commands = os.pipe()
    shown, screen = os.pipe()
    with typed(source, screen) as terminal:
        subprocess.run([sys.executable, "-c", f"print({PROMPT!r})"], stdin=terminal, stdout=terminal, check=True)

    assert PROMPT.encode() in os.read(shown, 100)
