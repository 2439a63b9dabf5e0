"""A cache that others may change, and a mask that makes one: both are told."""

import os

import pytest

from scpslab.engine.rights import rights


@pytest.fixture
def cache(tmp_path, monkeypatch):
    folder = tmp_path / "cache"
    (folder / "lab").mkdir(parents=True, mode=0o755)
    folder.chmod(0o755)
    monkeypatch.setenv("SCPSLAB_CACHE", str(folder))
    return folder


@pytest.mark.parametrize("place", [".", "lab"])
@pytest.mark.parametrize(("mode", "state"), [(0o755, "ok"), (0o700, "ok"), (0o757, "warning"), (0o777, "warning")])
def test_what_others_may_write_is_told(cache, place, mode, state):
    (cache / place).chmod(mode)
    found = rights()
    assert (found.state, str(cache) in found.found) == (state, True)
    assert ("chmod -R go-w" in found.fix) == (state == "warning")


@pytest.mark.parametrize(("mask", "state"), [(0o000, "warning"), (0o022, "ok"), (0o020, "warning"), (0o077, "ok")])
def test_the_mask_of_new_files_is_told(cache, mask, state):
    before = os.umask(mask)
    try:
        found = rights()
    finally:
        os.umask(before)
    assert (found.state, f"umask {mask:03o}" in found.found) == (state, state == "warning")


def test_no_cache_is_one_that_nobody_changes(tmp_path, monkeypatch):
    monkeypatch.setenv("SCPSLAB_CACHE", str(tmp_path / "none"))
    assert rights().state == "ok"
