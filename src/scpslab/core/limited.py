"""Work on what strangers have written, in a child of its own: with limits of memory, CPU time and wall time, and
answers that are JSON, never a pickle.
"""

import json
import math
import os
import pickle
import resource
import signal
import socket
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, NoReturn

from scpslab.core import errors
from scpslab.core.errors import LimitError, WorkError

# Pages: all that are mapped, and those in memory (proc(5)).
STATM = Path("/proc/self/statm")
PAGE_BYTES = resource.getpagesize()
# A child can always do a little, however large its parent has grown.
LEAST_BYTES = 64 << 20
# Kinds of answers.
DONE, RAISED, FAILED, BROKE = "done", "raised", "failed", "broke"
# Answers of a child, one for each value that is sent to it.
Answers = Generator[Any, Any, None]


@dataclass(frozen=True)
class WorkLimits:
    """What the work may take: resident memory in bytes (with what this process has already), CPU time in seconds; and
    for an answer, wall time in seconds and bytes.
    """

    memory_bytes: int = 512 << 20
    cpu_s: float = 60
    wall_s: float = 600
    answer_bytes: int = 64 << 20


def limited(work: Callable[[], Any], limits: WorkLimits | None = None) -> Any:
    """Calls `work` in a forked child, and returns what it returned: see `in_child`."""

    def once() -> Answers:
        yield work()

    with in_child(once, limits) as ask:
        return ask(None)


@contextmanager
def in_child(work: Callable[[], Answers], limits: WorkLimits | None = None) -> Iterator[Callable[[Any], Any]]:
    """A forked child that answers several times: each call sends a value to the generator, and returns what it yields,
    as JSON gives it back: tuples are lists, keys are text.

    What the child changes in memory is gone afterwards; what it writes to files stays. It sees this process as it is:
    what is to be imported within the memory of a limit that is tight is imported before.

    A call raises:
        LimitError: it reached a limit, or was ended by a signal.
        WorkError: it raised what is no ScpslabError, or yielded what is no JSON.
        ScpslabError: the one that it raised, of the same class.
    """
    limits = limits or WorkLimits()
    # Before the fork: a child's count lacks the pages of files that it has not touched yet.
    room = max(limits.memory_bytes - int(STATM.read_text().split()[1]) * PAGE_BYTES, LEAST_BYTES)
    mine, theirs = socket.socketpair()
    child = os.fork()
    if child == 0:
        mine.close()
        _work(work, limits, room, theirs)
    theirs.close()
    statuses: list[int] = []

    def ended() -> int:
        # Until it is waited for, its id belongs to no other process.
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])

    try:
        with mine, mine.makefile("rb") as answers:

            def ask(value: Any) -> Any:
                content = _sent(mine, answers, value, limits.answer_bytes)
                if len(content) > limits.answer_bytes:
                    raise LimitError(f"found an answer of more than {limits.answer_bytes} bytes")
                if not content.endswith(b"\n"):
                    statuses.append(ended())
                    raise LimitError(_ended(statuses[0], limits))
                return _answer(content)

            yield ask
    finally:
        if not statuses:
            os.kill(child, signal.SIGKILL)
            ended()


def _sent(mine: socket.socket, answers: BinaryIO, value: Any, most: int) -> bytes:
    """The line that answers a value; a part of one if the child has ended, or more than `most` bytes."""
    try:
        mine.sendall(pickle.dumps(value))
        return answers.readline(most + 1)
    except OSError:
        return b""


def _work(work: Callable[[], Answers], limits: WorkLimits, room: int, ours: socket.socket) -> NoReturn:
    """The child: it answers until nobody asks, and leaves without what its parent does at its end."""
    try:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
        _limit(limits, room)
        answers = work()
        with ours.makefile("rb") as asking:
            while True:
                value = pickle.load(asking)  # noqa: S301 (its parent's)
                # While its parent does something else, no time passes.
                signal.setitimer(signal.ITIMER_REAL, limits.wall_s)
                message = _message(answers, value, limits)
                signal.setitimer(signal.ITIMER_REAL, 0)
                ours.sendall(message.encode() + b"\n")
    finally:
        os._exit(1)


def _message(answers: Answers, value: Any, limits: WorkLimits) -> str:
    try:
        return json.dumps([DONE, answers.send(value)])
    except errors.ScpslabError as error:
        kind = next(kind.__name__ for kind in type(error).__mro__ if kind.__module__ == errors.__name__)
        return json.dumps([RAISED, kind, str(error)])
    except MemoryError:
        return json.dumps([FAILED, _memory(limits)])
    except Exception as error:
        return json.dumps([BROKE, f"found {type(error).__name__}{_place(error)}: {str(error)[:200]}"])


def _limit(limits: WorkLimits, room: int) -> None:
    for ends in (signal.SIGINT, signal.SIGTERM, signal.SIGALRM, signal.SIGXCPU):
        signal.signal(ends, signal.SIG_DFL)
    _lower(resource.RLIMIT_AS, int(STATM.read_text().split()[0]) * PAGE_BYTES + room)
    _lower(resource.RLIMIT_CPU, math.ceil(limits.cpu_s))
    _lower(resource.RLIMIT_CORE, 0)


def _lower(kind: int, value: int) -> None:
    soft, hard = resource.getrlimit(kind)
    resource.setrlimit(kind, (value if soft == resource.RLIM_INFINITY else min(value, soft), hard))


def _answer(content: bytes) -> Any:
    kind, *values = json.loads(content)
    if kind == RAISED:
        raise getattr(errors, values[0])(values[1])
    if kind == DONE:
        return values[0]
    raise (WorkError if kind == BROKE else LimitError)(values[0])


def _ended(status: int, limits: WorkLimits) -> str:
    if status == -signal.SIGXCPU:
        return f"found no end within {limits.cpu_s:g} s of CPU time"
    if status == -signal.SIGALRM:
        return f"found no end within {limits.wall_s:g} s"
    # A library that gets no memory ends its process.
    return _memory(limits) if status == -signal.SIGABRT else f"found an end without an answer ({status})"


def _memory(limits: WorkLimits) -> str:
    return f"found a need for more than {limits.memory_bytes >> 20} MiB of memory"


def _place(error: Exception) -> str:
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return f" in {Path(trace.tb_frame.f_code.co_filename).name}:{trace.tb_lineno}" if trace is not None else ""
