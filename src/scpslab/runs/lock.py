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
            raise UsageError(f"{folder}: found {_holder(descriptor)}, or choose another folder with --out.") from error
        os.ftruncate(descriptor, 0)
        os.pwrite(
            descriptor,
            (json.dumps({"pid": os.getpid(), "since": time.strftime("%Y-%m-%d %H:%M:%S")}) + "\n").encode(),
            0,
        )
        yield
    finally:
        os.close(descriptor)


def _holder(descriptor: int) -> str:
    """Who holds the lock, as they wrote it, and what to do; they may be writing at this moment."""
    expected = "expected one run at a time in a folder. Wait until it ends"
    try:
        fields = strict_json.loads(os.pread(descriptor, 4096, 0))
    except strict_json.JsonError:
        fields = None
    pid, since = (fields.get("pid"), fields.get("since")) if isinstance(fields, dict) else (None, None)
    if not isinstance(pid, int) or not isinstance(since, str) or not since.isprintable():
        return f"another run at work in it; {expected}"
    return f'process {pid}, which has run in it since {since}; {expected}, end it with "kill {pid}"'
