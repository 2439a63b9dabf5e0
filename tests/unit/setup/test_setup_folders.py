"""Folders that several processes make at once: each whole, none in another's way."""

import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from scpslab.core.folders import whole_folder


def test_two_that_make_it_at_once_both_get_it_whole(tmp_path):
    target = tmp_path / "cache" / "lab"
    both_inside = threading.Barrier(2, timeout=60)

    def fill(folder: Path) -> None:
        (folder / "first").write_text("first")
        both_inside.wait()
        (folder / "second").write_text("second")

    with ThreadPoolExecutor(2) as threads:
        for made in threads.map(whole_folder, [target] * 2, [fill] * 2):
            assert sorted(path.name for path in made.iterdir()) == ["first", "second"]
    assert list(target.parent.iterdir()) == [target]
    # One that is there is not made again.
    assert whole_folder(target, lambda _: pytest.fail("made a second time")) == target


@pytest.mark.parametrize("trouble", [OSError("no room"), ValueError("did not compile"), KeyboardInterrupt()])
def test_trouble_is_told_and_leaves_nothing(tmp_path, trouble):
    def fill(folder: Path) -> None:
        (folder / "half").touch()
        raise trouble

    with pytest.raises(type(trouble)):
        whole_folder(tmp_path / "lab", fill)
    assert list(tmp_path.iterdir()) == []
