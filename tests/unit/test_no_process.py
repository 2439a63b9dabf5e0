"""Unit tests start no process (conftest.py)."""

import multiprocessing
import os
import pty
import subprocess

import pytest

WAYS = {
    "fork": os.fork,
    "forkpty": pty.fork,
    "Popen": lambda: subprocess.Popen(["true"]),
    "system": lambda: os.system("true"),  # noqa: S605 (refused before a shell starts)
    "posix_spawn": lambda: os.posix_spawn("/bin/true", ["true"], {}),
    **{way: multiprocessing.get_context(way).Process().start for way in ("forkserver", "spawn")},
}


@pytest.mark.parametrize("start", WAYS.values(), ids=WAYS)
def test_every_way_to_start_one_is_refused(start):
    with pytest.raises(pytest.fail.Exception, match=r"found a process; expected none in tests/unit\. Move the test"):
        start()
