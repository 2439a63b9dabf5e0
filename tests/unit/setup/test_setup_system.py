"""The system cache: its parts are used where they are, compared with their digests, and never written."""

from pathlib import Path

import pytest

from scpslab.core.errors import CapabilityError
from scpslab.setup import images, silent


@pytest.fixture
def shared(recipes, monkeypatch):
    """A system cache with three parts, and this user's own cache, in which nothing may be built."""
    folder, built, parts = recipes
    monkeypatch.setenv("SCPSLAB_CACHE", str(folder / "system"))
    images.ensure(silent)
    built.clear()
    monkeypatch.setenv("SCPSLAB_SYSTEM_CACHE", str(folder / "system"))
    monkeypatch.setenv("SCPSLAB_CACHE", str(folder / "own"))
    yield folder / "system", parts
    assert built == []


def everything(folder: Path) -> dict[str, tuple[int, bytes]]:
    """All files of a folder, with their times."""
    return {
        str(path): (path.stat().st_mtime_ns, path.read_bytes()) for path in sorted(folder.rglob("*")) if path.is_file()
    }


def test_parts_are_used_where_they_are(shared):
    folder, parts = shared
    before, found = everything(folder), images.ensure(silent)
    assert found.kernel.is_relative_to(folder)
    assert found.boot_dir.is_relative_to(folder)
    assert everything(folder) == before
    own = images.cache_dir()
    assert sorted(path.name for path in own.iterdir()) == ["checked"]
    assert images.timings(parts[0], own) == images.timings(parts[0], folder)
    assert images.made(parts[0], own) == images.made(parts[0], folder)


@pytest.mark.parametrize("name", ["kernel/*/product", "guest/*/guest.erofs", "tools/*/product/init"])
def test_damage_is_named_and_nothing_is_built(shared, told, name):
    folder, _ = shared
    images.ensure(silent)
    path = next(folder.glob(name))
    path.write_bytes(path.read_bytes()[::-1])
    told("system cache", name, images.ensure, silent, error=CapabilityError)


def test_a_part_without_its_digest_is_not_used(shared, told):
    folder, _ = shared
    next(folder.glob("kernel/*/product.sha256")).unlink()
    told("system cache", "no digest", images.ensure, silent, error=CapabilityError)


def test_a_copied_boot_folder_is_compared(shared, told):
    folder, _ = shared
    image = next(folder.glob("boot/*/guest.erofs"))
    image.unlink()
    image.write_text("guest")
    assert images.ensure(silent).boot_dir.is_relative_to(folder)
    image.write_text("other")
    told("system cache", "boot folder", images.ensure, silent, error=CapabilityError)
