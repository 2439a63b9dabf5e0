"""The cache of what is built: by content, whole or not at all, once, and without a network the second time."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from scpslab.core.folders import whole_folder
from scpslab.setup import images, silent


def test_two_that_make_a_folder_at_once_both_get_it_whole(tmp_path):
    target, both_inside = tmp_path / "cache" / "lab", threading.Barrier(2, timeout=60)

    def fill(folder):
        (folder / "first").touch()
        both_inside.wait()
        (folder / "second").touch()

    with ThreadPoolExecutor(2) as threads:
        for made in threads.map(whole_folder, [target] * 2, [fill] * 2):
            assert sorted(path.name for path in made.iterdir()) == ["first", "second"]
    assert list(target.parent.iterdir()) == [target]


@pytest.mark.parametrize("trouble", [OSError("no room"), KeyboardInterrupt()])
def test_trouble_is_told_and_leaves_nothing(tmp_path, trouble):
    def fill(folder):
        (folder / "half").touch()
        raise trouble

    with pytest.raises(type(trouble)):
        whole_folder(tmp_path / "lab", fill)
    assert list(tmp_path.iterdir()) == []


def test_everything_is_built_once_by_several_at_once_and_found_afterwards(recipes):
    _, built, _ = recipes
    with ThreadPoolExecutor(4) as threads:
        (found,) = set(threads.map(images.ensure, [silent] * 4))
    assert images.ensure(silent) == found
    assert built == ["tools", "guest", "kernel"]
    assert (found.boot_dir / "guest.erofs").read_text() == "guest"
    assert {path.name for path in found.boot_dir.iterdir()} == {
        "init",
        "guest.erofs",
        "lower",
        "docker",
        "pack",
        "programs",
        "mnt",
    }


def test_a_changed_recipe_is_built_anew_and_alone(recipes):
    folder, built, _ = recipes
    before = images.ensure(silent)
    (folder / "recipes" / "guest" / "list").write_text("another")
    after = images.ensure(silent)
    assert built == ["tools", "guest", "kernel", "guest"]
    assert (after.kernel, after.hash == before.hash) == (before.kernel, False)


def test_a_part_of_the_same_recipe_with_other_bytes_is_the_one_that_starts(recipes):
    """Another compiler made it, or `make images WHEEL=FILE.whl`."""
    before = images.ensure(silent)
    (file,) = images.place(images.PARTS[1], images.cache_dir()).glob("guest.erofs")
    for other in file.parent.iterdir():
        other.unlink()
    file.write_text("of another compiler")
    after = images.ensure(silent)
    assert after.hash != before.hash
    assert (after.boot_dir / "guest.erofs").read_text() == "of another compiler"


@pytest.mark.parametrize(("variable", "value"), [("SCPSLAB_CACHE", "file/cache"), ("SCPSLAB_SYSTEM_CACHE", "gone")])
def test_a_cache_that_cannot_be_is_one_clear_error(recipes, monkeypatch, told, variable, value):
    (recipes[0] / "file").touch()
    monkeypatch.setenv(variable, str(recipes[0] / value))
    told("cache of built parts", variable, images.ensure, silent)


def test_programs_of_another_machine_are_not_taken_for_its_own(recipes, monkeypatch):
    """A home that machines of two kinds share: guests need x86-64's everywhere, engine host needs this machine's."""
    folder, built, (tools, _, _) = recipes
    there = images.ensure(silent)
    monkeypatch.setattr(images.platform, "machine", lambda: "aarch64")
    monkeypatch.setattr(images, "TOOLS", tools)
    assert images.find(tools, folder / "cache") == there.tools_dir
    assert images.find(tools, folder / "cache", machine="aarch64") is None
    assert images.ensure(silent) == there
    assert images.ensure_tools(silent) != there.tools_dir
    assert built == ["tools", "guest", "kernel", "tools"]
