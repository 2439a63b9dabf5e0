"""How the program ends when nobody reads what it says, nobody answers, or the user has seen enough. What a child that
keeps virtual time from passing does; tests/unit/engine reads its command line. Commands from a pipe: each is typed
when the prompt asks for it, and what the lab prints is shown whole.
"""

import os
import signal
import subprocess
import sys
import time

import pytest

from scpslab.engine.console import typed
from scpslab.engine.uml import standstill
from scpslab.lab.place import PROMPT
from tests.lab.pages import ROOT

PROGRAM = (sys.executable, "-P", "-m", "scpslab")
SLEEPS = """
import time
from scpslab.cli import app, plan

def plan_(scenario: str = ""):
    print("waits", flush=True)
    time.sleep(60)

plan.plan_ = plan_
app.main()
"""


@pytest.mark.parametrize("words", [("list",), ("plan", "fy97/fig04"), ("docs", "cli")])
def test_a_reader_that_has_seen_enough_is_no_failure(words):
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "wb") as nobody:
        ended = subprocess.run([*PROGRAM, *words], stdout=nobody, stderr=subprocess.PIPE, check=False)
    assert (ended.returncode, ended.stderr) == (0, b"")


def test_an_interrupt_is_told_wherever_it_comes():
    command = [sys.executable, "-c", SLEEPS, "plan"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as program:
        assert program.stdout.readline() == "waits\n"
        program.send_signal(signal.SIGINT)
        assert program.wait(30) == 130
        assert program.stderr.read() == "interrupted: finished cells are kept; repeat the command to resume\n"


def test_without_a_standard_input_nothing_is_asked(tmp_path):
    file = tmp_path / "my own" / "mine.yaml"
    file.parent.mkdir()
    command = ["bash", "-c", 'exec "$@" <&-', "bash", *PROGRAM, "new", file]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    assert f"scpslab run '{file}'" in ended.stderr


def test_a_link_to_the_program_starts_it(tmp_path):
    (tmp_path / "link").symlink_to(ROOT / "scpslab")
    ended = subprocess.run([tmp_path / "link", "--version"], capture_output=True, text=True, check=False, cwd=tmp_path)
    assert (ended.returncode, ended.stdout.startswith("scpslab ")) == (0, True)


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
