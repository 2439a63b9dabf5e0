"""The cache of what is built: by content, whole or not at all, once, and without a network the second time."""

import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from scpslab.core.errors import CapabilityError
from scpslab.setup import images, silent
from tests.cases import refusal


def test_everything_is_built_once_and_found_the_second_time(recipes):
    _, built, _ = recipes
    first = images.ensure(silent)
    second = images.ensure(silent)
    assert built == ["tools", "guest", "kernel"]
    assert first == second
    assert (first.boot_dir / "guest.erofs").read_text() == "guest"
    assert (first.boot_dir / "init").exists()
    assert {path.name for path in first.boot_dir.iterdir()} == {"init", "guest.erofs", "lower", "docker", "mnt"}


def test_a_changed_recipe_is_built_anew_and_alone(recipes):
    folder, built, _ = recipes
    before = images.ensure(silent)
    (folder / "recipes" / "guest" / "list").write_text("another")
    after = images.ensure(silent)
    assert built == ["tools", "guest", "kernel", "guest"]
    assert after.kernel == before.kernel
    assert after.hash != before.hash


def test_a_part_of_the_same_recipe_with_other_bytes_is_the_one_that_starts(recipes):
    """Another compiler made it, or `make images WHEEL=FILE.whl`."""
    before = images.ensure(silent)
    place = images.place(images.PARTS[1], images.cache_dir())
    for file in place.iterdir():
        file.unlink()
    (place / "guest.erofs").write_text("of another compiler")
    after = images.ensure(silent)
    assert after.hash != before.hash
    assert (after.boot_dir / "guest.erofs").read_text() == "of another compiler"


def test_without_a_home_the_error_says_what_to_set(monkeypatch):
    """As in a container that runs as a user of no name."""
    for name in ("HOME", "XDG_CACHE_HOME", "SCPSLAB_CACHE"):
        monkeypatch.delenv(name, raising=False)

    def nobody(_uid):
        raise KeyError

    monkeypatch.setattr("pwd.getpwuid", nobody)
    with pytest.raises(CapabilityError, match=r"^HOME: found none; expected .*\. Set HOME or SCPSLAB_CACHE\.$"):
        images.cache_dir()


def test_two_at_once_build_once(recipes):
    _, built, _ = recipes
    with ThreadPoolExecutor(4) as threads:
        assert len(set(threads.map(images.ensure, [silent] * 4))) == 1
    assert sorted(built) == ["guest", "kernel", "tools"]


def test_every_step_is_said_in_one_line_with_its_time_which_is_kept_beside_the_product(recipes):
    said: list[str] = []
    images.ensure(lambda text, is_under_way=False: said.append(text))
    assert "guest: copy: 0.0 s" in said
    for part in images.PARTS:
        assert [title for title, _ in images.timings(part, images.cache_dir())] == ["copy"]


def test_a_cache_that_cannot_be_written_is_one_clear_error(recipes, monkeypatch):
    folder, _, _ = recipes
    (folder / "file").touch()
    monkeypatch.setenv("SCPSLAB_CACHE", str(folder / "file" / "cache"))
    with pytest.raises(CapabilityError, match=r"expected a writable folder.*SCPSLAB_CACHE"):
        images.ensure(silent)


def test_too_little_room_is_said_before_anything_is_built(recipes, monkeypatch):
    _, built, _ = recipes
    monkeypatch.setattr(images, "NEEDED_BYTES", 10**18)
    with pytest.raises(CapabilityError, match=r"expected 1000000000 GB for the build\. Free disk space"):
        images.ensure(silent)
    assert built == []


def test_the_cache_folder_follows_the_documented_variables(monkeypatch):
    monkeypatch.delenv("SCPSLAB_CACHE", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", "/x")
    assert images.cache_dir() == Path("/x/scpslab")
    monkeypatch.setenv("SCPSLAB_CACHE", "/y")
    assert images.cache_dir() == Path("/y")


def test_programs_of_another_machine_are_not_taken_for_its_own(recipes, monkeypatch):
    """A home that machines of two kinds share: guests need x86-64's everywhere, engine host needs this machine's."""
    folder, built, (tools, _, _) = recipes
    there = images.ensure(silent)
    monkeypatch.setattr(images.platform, "machine", lambda: "aarch64")
    assert images.find(tools, folder / "cache") == there.tools_dir
    assert images.find(tools, folder / "cache", machine="aarch64") is None
    monkeypatch.setattr(images, "TOOLS", tools)
    before = len(built)
    assert images.ensure(silent) == there
    assert len(built) == before
    assert images.ensure_tools(silent) != there.tools_dir
    assert len(built) == before + 1


def test_another_machine_is_told_of_engine_host(recipes, monkeypatch):
    """Before anything is downloaded for a kernel that it cannot run."""
    _, built, _ = recipes
    monkeypatch.setattr(images.platform, "machine", lambda: "aarch64")
    said = refusal(images.ensure, silent, error=CapabilityError)
    assert re.search(
        r"a machine of type aarch64 cannot build it; expected one from a machine of type x86_64.*--engine host", said
    )
    assert built == []
