"""Files of a stranger's run that are larger than any run has: refused by name before they are read."""

import os
from pathlib import Path

import pytest

from scpslab.core.contents import check_sizes, content_of
from scpslab.core.errors import ResultError

HUGE = 20 << 30


def swell(path):
    """Makes a sparse file: nothing of it is on the disk."""
    path.parent.mkdir(exist_ok=True)
    path.touch()
    os.truncate(path, HUGE)


@pytest.mark.parametrize(
    ("place", "command"),
    [
        ("results.csv", ["results"]),
        ("manifest.json", ["report"]),
        ("cells/*/environment.json", ["export", "--whole"]),
        ("cells/*/captures/h1.pcap", ["plot"]),
    ],
)
def test_a_file_of_20_gib_is_told_by_its_name(run_dir, scpslab, place, command):
    at = run_dir / place if "*" not in place else next((run_dir / "cells").iterdir()) / place.partition("*/")[2]
    swell(at)
    code, _, err = scpslab(command[0], run_dir, *command[1:])
    assert (code, str(at) in err, str(HUGE) in err) == (5, True, True)


def test_a_scenario_of_20_gib(tmp_path, scpslab):
    swell(tmp_path / "mine.yaml")
    code, _, err = scpslab("validate", tmp_path / "mine.yaml")
    assert (code, str(HUGE) in err) == (2, True)


def test_the_border(tmp_path):
    """A file of the largest size is read, one byte more is not; a file that says that it is empty is read to its end."""
    (tmp_path / "a").write_bytes(b"1234")
    assert content_of(tmp_path / "a", 4) == b"1234"
    with pytest.raises(OSError, match="4 bytes, more than 3 bytes"):
        content_of(tmp_path / "a", 3)
    (tmp_path / "b").write_bytes(b"")
    assert content_of(tmp_path / "b", 0) == b""
    assert content_of(Path("/proc/self/stat")).startswith(b"%d " % os.getpid())
    check_sizes(tmp_path)
    swell(tmp_path / "c")
    with pytest.raises(ResultError, match="c: found"):
        check_sizes(tmp_path)
