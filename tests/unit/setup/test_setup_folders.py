"""Folders that several processes make at once: each whole, none in another's way."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from scpslab.core.folders import whole_folder


def test_two_that_make_it_at_once_both_get_it_whole(tmp_path):
    target = tmp_path / "cache" / "lab"
    both_inside = threading.Barrier(2, timeout=60)
    got: list[list[str]] = []

    def fill(folder: Path) -> None:
        (folder / "first").write_text("first")
        both_inside.wait()
        (folder / "second").write_text("second")

    def make() -> None:
        got.append(sorted(path.name for path in whole_folder(target, fill).iterdir()))

    threads = [threading.Thread(target=make) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert got == [["first", "second"]] * 2
    assert list(target.parent.iterdir()) == [target]


def test_one_that_is_there_is_not_made_again(tmp_path):
    target = whole_folder(tmp_path / "lab", lambda folder: (folder / "file").touch())
    assert whole_folder(target, lambda _: pytest.fail("made a second time")) == target


@pytest.mark.parametrize("trouble", [OSError("no room"), ValueError("did not compile"), KeyboardInterrupt()])
def test_trouble_is_told_and_leaves_nothing(tmp_path, trouble):
    def fill(folder: Path) -> None:
        (folder / "half").touch()
        raise trouble

    with pytest.raises(type(trouble)):
        whole_folder(tmp_path / "lab", fill)
    assert list(tmp_path.iterdir()) == []
