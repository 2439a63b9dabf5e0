"""A build that somebody ends takes its programs with it, in whatever way it is ended."""

import os
import select
import signal
import subprocess
import sys

import pytest

pytestmark = pytest.mark.slow

# A part whose build starts a program in the background; both hold the pipe's end, so the pipe is at its end when both
# have gone.
PROGRAM = """
import runpy, sys
from scpslab.setup import images
BUILD = ["sh", "-c", f"exec 3>{sys.argv[1]}; sleep 600 & echo ready >&3; wait"]
images.PARTS = (images.Part("tools", "tools", "images/guest/tools", lambda job: job.run(BUILD), "bin", images.files_of),)
images.NEEDED_BYTES = 1
sys.argv = ["scpslab.setup"]
runpy.run_module("scpslab.setup", run_name="__main__")
"""
LIMIT_S = 60


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_an_interrupted_build_leaves_no_process(tmp_path, number):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    environment = os.environ | {"SCPSLAB_CACHE": str(tmp_path / "cache")}
    with (
        subprocess.Popen(
            [sys.executable, "-c", PROGRAM, str(pipe)], env=environment, stderr=subprocess.PIPE, text=True
        ) as build,
        pipe.open("rb", 0) as end,
    ):
        assert end.read(6) == b"ready\n"
        build.send_signal(number)
        assert build.wait(LIMIT_S) == 130
        said = build.stderr.read()
        assert select.select([end], [], [], LIMIT_S)[0], "a program of the build is still there"
        assert end.read(1) == b""
    assert said == "interrupted: finished parts are kept; repeat the command to build the others\n"
    assert list((tmp_path / "cache" / "tools").iterdir()) == []
