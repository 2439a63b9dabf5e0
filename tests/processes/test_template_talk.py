"""What the engine makes of what a template says on its socket, or does not: programs of a few lines are the kernel."""

import os
import signal
import sys
import textwrap
import time

import pytest

from scpslab.engine import template as templates
from scpslab.engine.template import TemplateError, TemplateGuest

LIMIT_S = 100.0
PREAMBLE = """
import os, signal, socket, sys, time
talk = socket.socket(fileno=0)
say = lambda text: talk.send(text.encode())
hear = lambda: talk.recv(4096).decode()
"""


@pytest.fixture
def start(tmp_path):
    """Starts a program as a template."""
    started = []

    def make(program: str) -> TemplateGuest:
        words = [sys.executable, "-c", PREAMBLE + textwrap.dedent(program)]
        template = TemplateGuest(words, tmp_path, dict(os.environ), None)
        started.append(template)
        template.boot(LIMIT_S)
        return template

    yield make
    for template in started:
        template.close()


def ended(template: TemplateGuest) -> bool:
    """Whether it has ended by itself, or been ended, and its process is gone."""
    limit = time.monotonic() + LIMIT_S
    while template.is_alive and time.monotonic() < limit:
        time.sleep(0.01)
    try:
        os.kill(template.pid, 0)
    except ProcessLookupError:
        return not template.is_alive
    return False


@pytest.mark.parametrize(
    "answer",
    [
        "nonsense",
        "",
        "ready",
        "ready many",
        "ready -1",
        "running 0",
        "running -1",
        "running 1",  # nobody has asked
        "refused 11",  # the same
        "running 99999999999999999999",
        "ended 1 99999999999999999999",
        "ended 1",
        "ended 1 -1",
        "ended 1 4991",  # stopped: not an end
        "ready 1 2 3",
        "x" * 4000,
    ],
)
def test_a_template_that_talks_nonsense_is_ended(start, answer):
    """Whatever has taken over a guest's kernel can say what it likes: it loses its own cells."""
    template = start(f'say("ready 1"); say({answer!r}); time.sleep(1000)')

    assert ended(template)
    with pytest.raises(TemplateError, match="ended, or does not answer"):
        template.fork(template._folder, None)


def test_a_fork_is_what_the_template_says(start, tmp_path):
    template = start(
        """
        say("ready 1")
        while True:
            word, *rest = hear().split(" ", 2)
            if word == "run":
                child = os.fork()
                if not child:
                    time.sleep(1000)
                say(f"running {child}")
            else:
                os.kill(int(rest[0]), signal.SIGKILL)
                say(f"ended {child} {os.waitpid(child, 0)[1]}")
        """
    )
    fork = template.fork(tmp_path, 0)
    assert [one.pid for one in template.running()] == [fork.pid]
    assert fork.poll() is None
    fork.kill()

    assert fork.wait(LIMIT_S) == -signal.SIGKILL
    assert (fork.lost, template.running(), template.is_alive) == (False, [], True)


def test_one_that_cannot_fork_says_why_and_can_be_asked_again(start, tmp_path):
    template = start('say("ready 1"); [say("refused 11") for _ in iter(hear, "")]')

    for _ in range(2):
        with pytest.raises(TemplateError, match="no room for one more: Resource temporarily unavailable"):
            template.fork(tmp_path, None)
    assert template.is_alive


def test_one_that_does_not_answer_is_ended(start, tmp_path, monkeypatch):
    monkeypatch.setattr(templates, "ANSWER_LIMIT_S", 0.2)
    template = start('say("ready 1"); time.sleep(1000)')

    with pytest.raises(TemplateError, match="ended, or does not answer"):
        template.fork(tmp_path, None)
    assert not template.is_alive
    assert ended(template)


def test_whose_fork_is_lost_is_not_given_the_same_template_again(start, tmp_path):
    """Also while another fork of it has not ended yet: a cell is tried once more, and only once."""
    template = start(
        """
        say("ready 1")
        for seconds in (0, 3):
            hear()
            child = os.fork()
            if not child:
                talk.close()
                time.sleep(seconds)
                os._exit(0)
            say(f"running {child}")
        """
    )
    first, second = template.fork(tmp_path, None), template.fork(tmp_path, None)

    assert first.wait(LIMIT_S) == -signal.SIGKILL
    assert first.lost
    assert not template.is_alive
    assert second.wait(LIMIT_S) == -signal.SIGKILL


def test_one_that_reads_nothing_does_not_hold_up_who_asks(start):
    """The socket takes a few hundred requests; what does not fit is not sent."""
    template = start('say("ready 1"); time.sleep(1000)')
    started = time.monotonic()
    for _ in range(5000):
        template.ask("end 1")

    assert time.monotonic() - started < LIMIT_S


def test_a_fork_that_does_not_end_costs_its_template(start, tmp_path, monkeypatch):
    monkeypatch.setattr(templates, "END_LIMIT_S", 0.5)
    template = start('say("ready 1"); hear(); child = os.fork(); child and say(f"running {child}"); time.sleep(3)')
    fork = template.fork(tmp_path, None)
    fork.kill()

    assert fork.wait(LIMIT_S) == -signal.SIGKILL
    assert fork.lost
    assert ended(template)
