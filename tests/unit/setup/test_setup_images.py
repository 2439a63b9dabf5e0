"""The cache of what is built: by content, whole or not at all, once, and without a network the second time."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from scpslab.core.errors import CapabilityError
from scpslab.setup import images, silent


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


def test_two_at_once_build_once(recipes):
    _, built, _ = recipes
    with ThreadPoolExecutor(4) as threads:
        assert len(set(threads.map(images.ensure, [silent] * 4))) == 1
    assert sorted(built) == ["guest", "kernel", "tools"]


def test_a_cache_that_cannot_be_written_is_one_clear_error(recipes, monkeypatch):
    folder, _, _ = recipes
    (folder / "file").touch()
    monkeypatch.setenv("SCPSLAB_CACHE", str(folder / "file" / "cache"))
    with pytest.raises(CapabilityError, match=r"expected a writable folder.*SCPSLAB_CACHE"):
        images.ensure(silent)


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
