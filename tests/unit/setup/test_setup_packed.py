"""Parts that a wheel carries: packed to the same bytes everywhere, unpacked whole or not at all, and once."""

import errno
import json
import shutil
import zipfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace

import pytest

from scpslab.core import archive, project
from scpslab.core.errors import CapabilityError, UsageError
from scpslab.setup import images, packed, silent
from tools.build import pack
from tools.build.wheel import INSIDE, take


@pytest.fixture
def recipe(recipes, monkeypatch):
    """A part that is a folder with a program, one that is a file, a cache folder with both, and no wheel."""
    folder, built, (tools, guest, _) = recipes
    # Long enough to be packed smaller.
    (folder / "recipes" / "guest" / "list").write_text("guest" * 1000)
    monkeypatch.setattr(project, "PACKED_PARTS", folder / "no-wheel")
    monkeypatch.setattr(pack, "CARRIED", (tools, guest))
    monkeypatch.setattr(pack, "APPLIANCE", guest)
    monkeypatch.setattr(
        pack, "ensure", lambda say: [find(one) or images._build(one, images.cache_dir(), say) for one in (tools, guest)]
    )
    monkeypatch.setattr(pack, "ensure_stack", lambda say: None)
    monkeypatch.setattr(pack, "ensure_appliance", lambda say: None)
    packed.index.cache_clear()
    return folder, (tools, guest), built


@pytest.fixture
def wheel(recipe, monkeypatch):
    """The same, as an installation with an empty cache folder and a package that is read-only."""
    folder, parts, built = recipe
    pack.pack(folder / "wheel", silent)
    built.clear()
    monkeypatch.setenv("SCPSLAB_CACHE", str(folder / "empty"))
    monkeypatch.setattr(project, "PACKED_PARTS", folder / "wheel")
    (folder / "wheel").chmod(0o555)
    packed.index.cache_clear()
    yield folder, parts, built
    packed.index.cache_clear()


def find(part):
    return images.find(part, images.cache_dir())


def test_a_part_of_the_wheel_is_unpacked_and_not_built_and_the_second_time_not_even_unpacked(wheel):
    folder, (tools, guest), built = wheel
    first = find(tools)
    assert (first / "init").read_text() == "init"
    assert (first / "init").stat().st_mode & 0o777 == 0o755
    # The folder's name has the hash of its bytes.
    sha256 = images.made(tools, images.cache_dir())[0].sha256
    assert first.parent.name == f"{images.recipe_hash(tools)}-{sha256[:16]}"
    assert find(guest).read_text() == "guest" * 1000
    assert built == []
    (folder / "wheel").chmod(0o755)
    (folder / "wheel" / "tools.tar.xz").unlink()
    assert find(tools) == first


def test_several_at_once_unpack_once(wheel, monkeypatch):
    _, (_, guest), _ = wheel
    unpacked: list[str] = []
    real = packed.unpack
    monkeypatch.setattr(packed, "unpack", lambda *given: (unpacked.append("once"), real(*given))[1])
    with ThreadPoolExecutor(6) as threads:
        found = list(threads.map(find, [guest] * 6))
    assert unpacked == ["once"]
    assert len(set(found)) == 1


DAMAGES = {
    "cut": lambda file: file.write_bytes(file.read_bytes()[:-40]),
    "no archive": lambda file: file.write_bytes(b"no archive"),
    "gone": Path.unlink,
}


def assert_is_refused(wheel, told, case):
    """With the golden file's words, and nothing is left."""
    folder, (_, guest), _ = wheel
    told("parts of a wheel", case, find, guest, error=CapabilityError)
    assert {path.name for path in (folder / "empty").rglob("*") if path.is_file()} <= {"guest.lock"}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_archive_is_one_clear_error_and_leaves_nothing(wheel, told, damage):
    (wheel[0] / "wheel").chmod(0o755)
    DAMAGES[damage](wheel[0] / "wheel" / "guest.tar.xz")
    assert_is_refused(wheel, told, damage)


def test_other_bytes_than_the_wheel_was_made_with_are_refused(wheel, told):
    file = wheel[0] / "wheel" / packed.INDEX
    found = json.loads(file.read_text())
    for part in found["parts"]:
        part["sha256"] = "0" * 64
    file.write_text(json.dumps(found))
    packed.index.cache_clear()
    assert_is_refused(wheel, told, "other bytes")


def test_too_little_room_is_said_before_anything_is_unpacked(wheel, monkeypatch, told):
    monkeypatch.setattr(images, "ROOM_TO_RUN_BYTES", 10**18)
    monkeypatch.setattr(images.shutil, "disk_usage", lambda _: SimpleNamespace(free=10**9))
    assert_is_refused(wheel, told, "no room")
    assert not (wheel[0] / "empty" / "guest").exists()


def test_a_disk_that_becomes_full_leaves_nothing_half_unpacked(wheel, monkeypatch, told):
    blocks = iter([b"half"])

    def full(file: object) -> bytes:
        if block := next(blocks, b""):
            return block
        raise OSError(errno.ENOSPC, "No space left on device", str(wheel[0]))

    monkeypatch.setattr(archive, "_block", full)
    assert_is_refused(wheel, told, "a disk that becomes full")


def test_packing_elsewhere_and_later_gives_the_same_bytes(recipe, monkeypatch):
    folder, parts, _ = recipe
    pack.pack(folder / "one", silent)
    for file in (folder / "cache" / "tools").rglob("*"):
        file.touch()
    shutil.copytree(folder / "cache", folder / "other", ignore=shutil.ignore_patterns(pack.FOLDER))
    monkeypatch.setenv("SCPSLAB_CACHE", str(folder / "other"))
    pack.pack(folder / "two", silent)
    one, two = ({file.name: file.read_bytes() for file in (folder / name).iterdir()} for name in ("one", "two"))
    assert set(one) == {packed.INDEX, *(f"{part.name}.tar.xz" for part in parts)}
    assert one == two


@pytest.fixture
def clone(recipe, monkeypatch):
    """A clone with an empty cache folder, and a wheel file in a folder; the names of the wheel's parts."""
    folder, parts, built = recipe
    pack.pack(folder / "parts", silent)
    built.clear()
    (folder / "dist").mkdir()
    with zipfile.ZipFile(folder / "dist" / "scpslab-1-any.whl", "w") as wheel:
        for file in (folder / "parts").iterdir():
            wheel.write(file, str(INSIDE / file.name))
        wheel.writestr("scpslab/__init__.py", "")
        wheel.writestr("../outside", "never written")
    monkeypatch.setenv("SCPSLAB_CACHE", str(folder / "empty"))
    monkeypatch.setattr("tools.build.wheel.CARRIED", parts)
    packed.index.cache_clear()
    return folder, parts, built


@pytest.mark.parametrize("given", ["dist", "dist/scpslab-1-any.whl"])
def test_a_clone_takes_the_parts_of_a_wheel_of_the_same_recipes(clone, given):
    folder, parts, built = clone
    said: list[str] = []
    assert take(folder / given, said.append) == built == []
    assert find(parts[0]) is not None
    assert find(parts[1]).read_text() == "guest" * 1000
    assert not list(folder.rglob("outside"))
    said.clear()
    assert take(folder / given, said.append) == said == []


def test_parts_of_other_recipes_are_left_in_the_wheel(clone, told):
    folder, parts, _ = clone
    (folder / "recipes" / "guest" / "list").write_text("changed")
    assert take(folder / "dist", silent) == ["guest"]
    assert find(parts[1]) is None
    (folder / "recipes" / "tools" / "list").write_text("changed")
    told("parts of a wheel", "all of other recipes", take, folder / "dist", silent, error=UsageError)
