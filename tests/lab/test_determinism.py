"""The same scenario twice gives the same bytes: cells and results, with the machine idle and with every core busy."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from pathlib import Path

import pytest

from scpslab.running import RunOptions, run_scenario

pytestmark = pytest.mark.lab
BUSY = "while True: pass"


def digests(run: Path) -> dict[str, str]:
    """Digest of every file under cells/ and of results.csv."""
    files = [file for file in sorted((run / "cells").rglob("*")) if file.is_file()] + [run / "results.csv"]
    return {str(file.relative_to(run)): hashlib.sha256(file.read_bytes()).hexdigest() for file in files}


def run(out: Path) -> Path:
    """Runs the small FY97 scenario without any cache."""
    return run_scenario("fy97/fig04:kernel-test", RunOptions(use_cache=False, out=out)).folder


@pytest.mark.smoke
def test_two_runs_give_the_same_bytes(tmp_path):
    """Once alone and once with every core busy with other work."""
    first = digests(run(tmp_path / "idle"))
    load = [subprocess.Popen([sys.executable, "-c", BUSY]) for _ in os.sched_getaffinity(0)]
    try:
        second = digests(run(tmp_path / "busy"))
    finally:
        for process in load:
            process.kill()
            process.wait()

    assert any(name.endswith(".pcap") for name in first)
    assert first == second
