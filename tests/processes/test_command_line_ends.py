"""How the program ends when nobody reads what it says, nobody answers, or the user has seen enough."""

import os
import signal
import subprocess
import sys

import pytest

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
