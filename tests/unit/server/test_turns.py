"""Turns on a shared machine: nobody above the limits, the next place for the user with fewest cells, and nothing held by the dead."""

from __future__ import annotations

import fcntl
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from scpslab.errors import CapabilityError
from scpslab.server import Full, Turn, Turns
from scpslab.server.turns import ASLEEP_S, TICKET, Limits, Ticket, is_next, waited

ANNA, BO, CY = 1001, 1002, 1003
HOLDER = """
import sys
from pathlib import Path
from scpslab.server import Turns
from scpslab.server.turns import Limits
turns = Turns(Path(sys.argv[1]), Limits(int(sys.argv[2])), "test")
print(turns.take(100), flush=True)
sys.stdin.readline()
"""


def has(user: int, cells: int, since: float | None = None, *, wants: int = 100, looked: float = 50.0) -> Ticket:
    """A ticket of someone with so many cells of 100 MiB."""
    return Ticket(user, (-1,) * cells, 100 * cells, wants, since, looked)


@pytest.mark.parametrize(
    ("mine", "others", "limits", "expected"),
    [
        (has(ANNA, 0, 1), [], Limits(1), True),
        (has(ANNA, 0, 1), [has(BO, 1)], Limits(1), False),
        (has(ANNA, 1, 1), [has(BO, 0)], Limits(2), True),
        (has(ANNA, 1, 1), [has(BO, 0, 9)], Limits(2), False),
        (has(ANNA, 0, 9), [has(BO, 1, 1)], Limits(2), True),
        (has(ANNA, 0, 9), [has(BO, 0, 1)], Limits(2), False),
        (has(ANNA, 0, 1), [has(BO, 0, 9), has(CY, 1)], Limits(2), True),
        (has(ANNA, 2, 1), [], Limits(9, cells_per_user=2), False),
        (has(ANNA, 1, 9), [has(BO, 0, 1), has(BO, 1)], Limits(9, cells_per_user=1), False),
        (has(ANNA, 1, 9), [has(BO, 0, 1), has(BO, 2)], Limits(9, cells_per_user=2), True),
        (has(ANNA, 1, 1, wants=101), [], Limits(9, memory_mib_per_user=200), False),
        (has(ANNA, 1, 1), [], Limits(9, memory_mib_per_user=200), True),
        (has(ANNA, 0, 1), [has(BO, 2)], Limits(9, memory_mib=250), False),
        (has(ANNA, 1, 1), [has(BO, 0, 9, wants=900)], Limits(9, memory_mib=1000), False),
        (has(ANNA, 1, 1), [has(BO, 0, 9, looked=55 - ASLEEP_S)], Limits(2), True),
    ],
    ids=[
        "alone",
        "no place is left",
        "who has less does not wait",
        "who has less waits too, and later",
        "who has more has waited longer",
        "both have nothing, the other waits longer",
        "both have nothing, the other came later",
        "the user's cells",
        "nobody may have more than one, and both have it",
        "who may have no more is passed over",
        "the user's memory",
        "the user's memory just suffices",
        "the memory of all",
        "a large cell is not passed by small ones",
        "who has stopped looking is passed over",
    ],
)
def test_who_is_next(mine, others, limits, expected):
    assert is_next(mine, others, limits, now_s=55.0) is expected


@pytest.fixture
def folder(tmp_path):
    made = tmp_path / "turns"
    made.mkdir()
    made.chmod(0o1777)
    return made


@pytest.fixture
def turns(folder):
    """Runs that share a folder; `turns(…)` makes one."""
    made = []

    def make(*limits: int) -> Turns:
        made.append(Turns(folder, Limits(*limits), "server.yaml"))
        return made[-1]

    yield make
    for one in made:
        one.close()


def holder(folder: Path, cells: int) -> subprocess.Popen[str]:
    """A process that holds a turn of `cells` on the machine until it gets a line."""
    words = [sys.executable, "-c", HOLDER, str(folder), str(cells)]
    process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline().startswith("Turn(")
    return process


def test_a_place_is_given_once_and_again_when_it_is_free(turns):
    first, second = turns(1), turns(1)
    turn = first.take(100)
    assert isinstance(turn, Turn)
    assert str(second.take(100)) == "shared machine: 1 of 1 cells run, 1 yours, 1 user at work; waiting for a turn"
    first.give_back(turn)
    assert isinstance(second.take(100), Turn)


def test_runs_of_one_user_take_turns_too(turns):
    first, second = turns(1), turns(1)
    turn = first.take(100)
    for run, other in [(second, first), (first, second)] * 2:
        assert isinstance(run.take(100), Full)
        other.give_back(turn)
        # Whoever has just had it comes after whoever waits.
        assert isinstance(other.take(100), Full)
        turn = run.take(100)
        other.wait_no_longer()


def test_a_killed_holder_holds_nothing(folder, turns):
    process = holder(folder, 1)
    mine = turns(1)
    assert isinstance(mine.take(100), Full)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert isinstance(mine.take(100), Turn)
    # Its ticket has gone, too.
    assert len(list(folder.glob(f"{TICKET}*"))) == 1


def test_a_stopped_holder_keeps_its_place_and_its_memory(folder, turns):
    process = holder(folder, 1)
    try:
        process.send_signal(signal.SIGSTOP)
        assert isinstance(turns(1).take(100), Full)
    finally:
        process.kill()
        process.wait()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can be several users")
def test_the_user_of_a_ticket_is_whose_file_it_is(folder, turns):
    process = holder(folder, 3)
    os.chown(next(folder.glob(f"{TICKET}*")), ANNA, ANNA)
    try:
        assert [(one.user, one.cells) for one in turns(3).seen()] == [(ANNA, 1)]
    finally:
        process.communicate("\n")
    # Nobody removes another's ticket; without its lock it counts for nothing.
    assert turns(3).seen() == []
    assert len(list(folder.glob(f"{TICKET}*"))) == 1


@pytest.mark.parametrize("text", [b"", b"{", b"[]", b'{"cores": "all"}', b'{"cores": [0], "memory_mib": true}', b"\xff" * 100, b'{"cores": [1e999]}'])
def test_what_is_no_ticket_counts_for_nothing(text):
    assert Ticket.read(7, text) == Ticket(7)


def test_a_ticket_reads_as_it_was_written():
    ticket = Ticket(7, (0, -1, 3), 4608, 1536, 12.5, 13.25)
    assert Ticket.read(7, ticket.text()) == ticket


def test_things_that_others_put_there_keep_nobody_waiting(folder, turns):
    os.mkfifo(folder / f"{TICKET}pipe")
    (folder / f"{TICKET}link").symlink_to("/dev/zero")
    (folder / f"{TICKET}folder").mkdir()
    (folder / "readme").write_text("hello")
    assert isinstance(turns(1).take(100), Turn)
    assert (folder / "readme").exists()


def test_cells_have_cores_of_their_own(turns, monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1, 5})
    first, second = turns(3), turns(3)
    assert [run.take(100).core for run in (first, second, first)] == [0, 1, 5]
    assert turns(4).take(100).core is None


def test_a_cell_that_never_fits_is_an_error(turns):
    with pytest.raises(CapabilityError, match=r"server.yaml: found a cell that counts with 300 MiB; expected at most 200 MiB"):
        turns(4, 1000, 2, 200).take(300)


def test_a_missing_folder_is_named_with_the_command_that_makes_it(tmp_path):
    missing = Turns(tmp_path / "none", Limits(1), "server.yaml")
    with pytest.raises(CapabilityError, match=r"found no folder .*none; .*install -d -m 1777"):
        missing.check()
    with pytest.raises(CapabilityError, match="No such file"):
        missing.take(1)


def test_a_folder_that_somebody_keeps_is_an_error_and_no_hang(folder, turns, monkeypatch):
    monkeypatch.setattr("scpslab.server.turns.STUCK_S", 0.2)
    descriptor = os.open(folder, os.O_RDONLY)
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    mine = turns(1)
    try:
        with pytest.raises(CapabilityError, match="fuser"):
            waited(mine, 100, lambda: False)
    finally:
        os.close(descriptor)
    assert isinstance(mine.take(100), Turn)


def test_waiting_ends_when_the_run_does(turns):
    first, second = turns(1), turns(1)
    first.take(100)
    assert waited(second, 100, lambda: second.since_s is not None) is None
    assert second.since_s is None


def test_many_threads_and_runs_stay_within_the_limit(folder):
    most, now, lock = [0], [0], threading.Lock()

    def work(run: Turns) -> None:
        for _ in range(5):
            turn = waited(run, 100, lambda: False)
            with lock:
                now[0] += 1
                most[0] = max(most[0], now[0])
            time.sleep(0.001)
            with lock:
                now[0] -= 1
            run.give_back(turn)

    runs = [Turns(folder, Limits(2), "server.yaml") for _ in range(2)]
    threads = [threading.Thread(target=work, args=(run,)) for run in runs for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for run in runs:
        run.close()
    assert most[0] == 2
    assert list(folder.iterdir()) == []
