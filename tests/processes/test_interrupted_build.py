"""Builds that end early: one that fails leaves its log alone, one that is interrupted takes its programs with it."""

import os
import select
import signal
import subprocess
import sys

import pytest

from scpslab.core.errors import CapabilityError
from scpslab.setup import images, silent
from scpslab.setup.job import Job

pytestmark = pytest.mark.slow

# A part whose build starts a program in the background; both hold the pipe's end, so the pipe is at its end when both
# have gone.
PROGRAM = """
import runpy, sys
from scpslab.setup import images
BUILD = ["sh", "-c", f"exec 3>{sys.argv[1]}; sleep 600 & echo ready >&3; wait"]
images.PARTS = (images.Built("tools", "tools", "images/guest/tools", lambda job: job.run(BUILD), "bin", images.files_of),)
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


def test_a_failed_build_leaves_its_log_and_nothing_else(recipes, monkeypatch):
    folder, _, parts = recipes

    def build(job: Job) -> None:
        job.target.write_text("half")
        (job.work / "read-only").mkdir()
        (job.work / "read-only" / "file").touch()
        (job.work / "read-only").chmod(0o500)
        job.run(["sh", "-c", "echo cannot do it; exit 7"])

    monkeypatch.setattr(
        images, "PARTS", (*parts[:2], images.Built("kernel", "kernel", "kernel", build, "product", images.files_of))
    )
    with pytest.raises(CapabilityError, match=r"sh: found exit code 7, last lines .cannot do it.; expected 0"):
        images.ensure(silent)
    assert list((folder / "cache" / "kernel").iterdir()) == []
    assert "cannot do it" in (folder / "cache" / "kernel.log").read_text()
