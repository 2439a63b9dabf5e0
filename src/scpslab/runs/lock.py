"""One run at a time in a folder: a process holds a lock, and the kernel releases the lock however the process ends."""

from __future__ import annotations

import fcntl
import json
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from scpslab.core import strict_json
from scpslab.core.errors import UsageError

FILE_NAME = ".lock"


@contextmanager
def held(folder: Path) -> Iterator[None]:
    """Holds the lock of a run or campaign folder. A missing folder is made.

    Raises:
        UsageError: another process holds it; the message says which.
    """
    folder.mkdir(parents=True, exist_ok=True)
    # Programs that the run starts do not inherit the lock: it ends with this process, not with theirs.
    descriptor = os.open(folder / FILE_NAME, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o644)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise UsageError(f"{folder}: found {_holder(descriptor)}; expected one run at a time in a folder. {_advice(descriptor)}") from error
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, (json.dumps({"pid": os.getpid(), "since": time.strftime("%Y-%m-%d %H:%M:%S")}) + "\n").encode(), 0)
        yield
    finally:
        os.close(descriptor)


def _holder(descriptor: int) -> str:
    pid, since = _written(descriptor)
    return f"process {pid}, which has run in it since {since}" if pid else "another run at work in it"


def _advice(descriptor: int) -> str:
    pid, _ = _written(descriptor)
    ending = f', end it with "kill {pid}"' if pid else ""
    return f"Wait until it ends{ending}, or choose another folder with --out."


def _written(descriptor: int) -> tuple[int | None, str]:
    """Process and time as the holder wrote them; the holder may be writing at this moment."""
    try:
        fields = strict_json.loads(os.pread(descriptor, 4096, 0))
    except strict_json.JsonError:
        return None, ""
    pid, since = (fields.get("pid"), fields.get("since")) if isinstance(fields, dict) else (None, None)
    return (pid, since) if isinstance(pid, int) and isinstance(since, str) and since.isprintable() else (None, "")
