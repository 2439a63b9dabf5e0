"""Work on what strangers have written, in a child of its own: with limits of memory, CPU time and wall time, and an
answer that is JSON, never a pickle.
"""

from __future__ import annotations

import json
import math
import os
import resource
import signal
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from scpslab.core import errors
from scpslab.core.errors import LimitError

# Pages: all that are mapped, and those in memory (proc(5)).
STATM = Path("/proc/self/statm")
PAGE_BYTES = resource.getpagesize()
# A child can always do a little, however large its parent has grown.
LEAST_BYTES = 64 << 20
# Kinds of answers.
DONE, RAISED, FAILED = "done", "raised", "failed"


@dataclass(frozen=True)
class WorkLimits:
    """What the work may take: resident memory in bytes (with what this process has already), CPU time and wall time in
    seconds, bytes of the answer.
    """

    memory_bytes: int = 512 << 20
    cpu_s: float = 60
    wall_s: float = 600
    answer_bytes: int = 64 << 20


def limited(work: Callable[[], Any], limits: WorkLimits | None = None) -> Any:
    """Calls `work` in a forked child, and returns what it returned as JSON gives it back: tuples are lists, keys are
    text.

    What the child changes in memory is gone afterwards; what it writes to files stays. It sees this process as it is:
    what is to be imported within the memory of a limit that is tight is imported before.

    Raises:
        LimitError: it reached a limit, was ended by a signal, raised what is no ScpslabError, or returned what is no
            JSON.
        ScpslabError: the one that it raised, of the same class.
    """
    limits = limits or WorkLimits()
    # Before the fork: a child's count lacks the pages of files that it has not touched yet.
    room = max(limits.memory_bytes - int(STATM.read_text().split()[1]) * PAGE_BYTES, LEAST_BYTES)
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        _work(work, limits, room, writing)
    os.close(writing)
    content = None
    try:
        with os.fdopen(reading, "rb") as pipe:
            content = pipe.read(limits.answer_bytes + 1)
    finally:
        # Until it is waited for, its id belongs to no other process.
        if content is None or len(content) > limits.answer_bytes:
            os.kill(child, signal.SIGKILL)
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if len(content) > limits.answer_bytes:
        raise LimitError(f"found an answer of more than {limits.answer_bytes} bytes")
    return _answer(content, status, limits)


def _work(work: Callable[[], Any], limits: WorkLimits, room: int, writing: int) -> NoReturn:
    """The child: it says how the work ended, and leaves without what its parent does at its end."""
    try:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
        _limit(limits, room)
        try:
            message = json.dumps([DONE, work()])
        except errors.ScpslabError as error:
            kind = next(kind.__name__ for kind in type(error).__mro__ if kind.__module__ == errors.__name__)
            message = json.dumps([RAISED, kind, str(error)])
        except MemoryError:
            message = json.dumps([FAILED, _memory(limits)])
        except Exception as error:
            message = json.dumps([FAILED, f"found {type(error).__name__}{_place(error)}: {str(error)[:200]}"])
        with os.fdopen(writing, "wb") as pipe:
            pipe.write(message.encode())
    finally:
        os._exit(1)


def _limit(limits: WorkLimits, room: int) -> None:
    for ends in (signal.SIGINT, signal.SIGTERM, signal.SIGALRM, signal.SIGXCPU):
        signal.signal(ends, signal.SIG_DFL)
    _lower(resource.RLIMIT_AS, int(STATM.read_text().split()[0]) * PAGE_BYTES + room)
    _lower(resource.RLIMIT_CPU, math.ceil(limits.cpu_s))
    _lower(resource.RLIMIT_CORE, 0)
    signal.setitimer(signal.ITIMER_REAL, limits.wall_s)


def _lower(kind: int, value: int) -> None:
    soft, hard = resource.getrlimit(kind)
    resource.setrlimit(kind, (value if soft == resource.RLIM_INFINITY else min(value, soft), hard))


def _answer(content: bytes, status: int, limits: WorkLimits) -> Any:
    try:
        kind, *values = json.loads(content)
    except ValueError:
        raise LimitError(_ended(status, limits)) from None
    if kind == RAISED:
        raise getattr(errors, values[0])(values[1])
    if kind == FAILED:
        raise LimitError(values[0])
    return values[0]


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
