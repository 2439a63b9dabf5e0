"""Starts processes of Dask that have their imports behind them: most of a second each, and the tests start hundreds.

Reads a line of JSON for each, {"words": [...], "environment": {...}, "log": file}, runs `dask WORDS` in a child, and
answers with the child's process id. The children end with it.
"""

from __future__ import annotations

import ctypes
import json
import os
import random
import signal
import sys
import traceback

import dask
from distributed.cli.dask_scheduler import main as scheduler
from distributed.cli.dask_worker import main as worker

import scpslab.cli.app  # noqa: F401  # what a worker needs besides

PROGRAMS = {"scheduler": scheduler, "worker": worker}
DIES_WITH_PARENT = 1


def child(words: list[str], environment: dict[str, str], log: str) -> None:
    """Is the program, with the environment and the output that it would have if it were started alone."""
    ctypes.CDLL(None).prctl(DIES_WITH_PARENT, signal.SIGKILL)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    os.setsid()
    output = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(output, 1)
    os.dup2(output, 2)
    os.environ.clear()
    os.environ.update(environment)
    dask.config.refresh()
    random.seed()
    PROGRAMS[words[0]](words[1:])


if __name__ == "__main__":
    # Nobody waits for them.
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    for line in sys.stdin:
        if pid := os.fork():
            print(pid, flush=True)
            continue
        try:
            child(**json.loads(line))
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(0)
