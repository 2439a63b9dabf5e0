"""`scpslab clean` removes what scpslab has made, and nothing else that lies there."""

import os
import time

import pytest

from scpslab.cli.clean import BUILT
from scpslab.runs.store import Store
from scpslab.setup.images import CARRIED, DOCKER

KEY = "0123456789abcdef"


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("SCPSLAB_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def test_a_cache_in_a_folder_of_the_user_s_takes_nothing_with_it(scpslab, cache, tmp_path):
    (tmp_path / "cell").mkdir()
    Store(cache / "results").keep(KEY * 2, tmp_path / "cell")
    mine = [cache / "results" / "thesis" / "data.csv", *(cache / part / "mine.sh" for part in BUILT)]
    made = [cache / part / f"{KEY}-1" / "product" for part in BUILT]
    for path in (*mine, *made):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("x")

    code, said, _ = scpslab("clean", "--results", "--images")

    assert (code, said.count("removed")) == (0, 1 + len(BUILT))
    assert all(path.exists() for path in mine)
    assert not any(path.exists() for path in made)
    assert list(Store(cache / "results").entries()) == []
    assert "found no results to remove in" in scpslab("clean", "--results")[1]


def test_every_part_is_known(cache):
    assert {part.name for part in (*CARRIED, DOCKER)} <= set(BUILT)


def test_results_behind_a_link_are_removed(scpslab, cache, tmp_path):
    (tmp_path / "large").mkdir()
    cache.mkdir()
    (cache / "results").symlink_to(tmp_path / "large")
    Store(cache / "results").keep(KEY * 2, cache)

    assert scpslab("clean", "--results")[0] == 0
    assert list(Store(tmp_path / "large").entries()) == []


def test_a_shared_folder_keeps_files_of_others(scpslab, tmp_path):
    writing = tmp_path / "writing"
    writing.mkdir()
    ours, theirs = writing / f"lab-a-1-{KEY * 2}", writing / "novel.txt"
    for path in (ours, theirs):
        path.write_text("x")
        os.utime(path, (time.time() - 10**6,) * 2)

    assert scpslab("clean", "--results", "--store", tmp_path)[0] == 0
    assert [path.name for path in writing.iterdir()] == ["novel.txt"]
