"""Parts that a wheel carries: packed to the same bytes everywhere, unpacked whole or not at all, and once."""

import errno
import json
import shutil
import zipfile
from concurrent.futures import ThreadPoolExecutor

import pytest

from scpslab.core import archive, project
from scpslab.core.errors import CapabilityError, UsageError
from scpslab.setup import images, packed, silent
from tests.cases import refusal
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
    monkeypatch.setattr(pack, "ensure", lambda say: [find(part) or built_now(part, say) for part in (tools, guest)])
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


def built_now(part, say):
    return images._build(part, images.cache_dir(), say)


def files_in(folder):
    return sorted(path.name for path in folder.rglob("*") if path.is_file())


def test_a_part_of_the_wheel_is_unpacked_and_not_built_and_the_second_time_not_even_unpacked(wheel):
    folder, (tools, guest), built = wheel
    first = find(tools)
    assert (first / "init").read_text() == "init"
    assert (first / "init").stat().st_mode & 0o777 == 0o755
    # The folder's name has the hash of its bytes.
    sha256 = images.made(tools, images.cache_dir())[0].sha256
    assert first.parent.name == f"{images.recipe_hash(tools)}-{sha256[:16]}"
    packed_from = folder / "cache" / "guest" / images.recipe_hash(guest) / "guest.erofs"
    assert find(guest).read_bytes() == packed_from.read_bytes()
    assert images.made(guest, images.cache_dir()) is not None
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


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (lambda file: file.write_bytes(file.read_bytes()[:-40]), "Compressed file ended"),
        (lambda file: file.write_bytes(b"no archive"), "Input format not supported"),
        (lambda file: file.unlink(), "no such file"),
    ],
)
def test_a_damaged_archive_is_one_clear_error_and_leaves_nothing(wheel, damage, said):
    folder, (_, guest), _ = wheel
    (folder / "wheel").chmod(0o755)
    damage(folder / "wheel" / "guest.tar.xz")
    with pytest.raises(
        CapabilityError, match=rf"guest\.tar\.xz: found {said}.*pip install --force-reinstall .scpslab-\S+\.whl"
    ):
        find(guest)
    assert files_in(folder / "empty") == ["guest.lock"]


def test_other_bytes_than_the_wheel_was_made_with_are_refused(wheel):
    folder, (_, guest), _ = wheel
    file = folder / "wheel" / packed.INDEX
    found = json.loads(file.read_text())
    for part in found["parts"]:
        part["sha256"] = "0" * 64
    (folder / "wheel").chmod(0o755)
    file.write_text(json.dumps(found))
    packed.index.cache_clear()
    with pytest.raises(CapabilityError, match=r"found a product of SHA-256 [0-9a-f]{64}, and 0{64} in parts\.json"):
        find(guest)
    assert files_in(folder / "empty") == ["guest.lock"]


def test_too_little_room_is_said_before_anything_is_unpacked(wheel, monkeypatch):
    folder, (_, guest), _ = wheel
    monkeypatch.setattr(images, "ROOM_TO_RUN_BYTES", 10**18)
    said = refusal(find, guest, error=CapabilityError)
    assert "expected 1000000000.1 GB for guest. Free disk space, or set SCPSLAB_CACHE" in said
    assert not (folder / "empty" / "guest").exists()


def test_a_disk_that_becomes_full_leaves_nothing_half_unpacked(wheel, monkeypatch):
    folder, (_, guest), _ = wheel
    blocks = iter([b"half"])

    def full(file: object) -> bytes:
        if block := next(blocks, b""):
            return block
        raise OSError(errno.ENOSPC, "No space left on device", str(folder))

    monkeypatch.setattr(archive, "_block", full)
    said = refusal(find, guest, error=CapabilityError)
    assert "found No space left on device; expected a writable folder with free space" in said
    assert files_in(folder / "empty") == ["guest.lock"]


def test_packing_elsewhere_and_later_gives_the_same_bytes(recipe, monkeypatch):
    folder, parts, _ = recipe
    pack.pack(folder / "one", silent)
    for file in (folder / "cache" / "tools").rglob("*"):
        file.touch()
    shutil.copytree(folder / "cache", folder / "other", ignore=shutil.ignore_patterns(pack.FOLDER))
    monkeypatch.setenv("SCPSLAB_CACHE", str(folder / "other"))
    pack.pack(folder / "two", silent)
    names = sorted(file.name for file in (folder / "one").iterdir())
    assert names == sorted([packed.INDEX, *(f"{part.name}.tar.xz" for part in parts)])
    assert [(folder / "one" / name).read_bytes() for name in names] == [
        (folder / "two" / name).read_bytes() for name in names
    ]


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
    assert take(folder / given, said.append) == []
    assert not built
    assert [find(part) is not None for part in parts] == [True, True]
    assert find(parts[1]).read_text() == "guest" * 1000
    assert not list(folder.rglob("outside"))
    count = len(said)
    assert take(folder / given, said.append) == []
    assert len(said) == count


def test_parts_of_other_recipes_are_left_in_the_wheel(clone):
    folder, parts, _ = clone
    (folder / "recipes" / "guest" / "list").write_text("changed")
    assert take(folder / "dist", silent) == ["guest"]
    assert find(parts[1]) is None
    (folder / "recipes" / "tools" / "list").write_text("changed")
    with pytest.raises(UsageError, match="of other recipes only; expected those of this clone"):
        take(folder / "dist", silent)


def test_a_damaged_part_of_a_wheel_leaves_nothing(clone):
    folder, parts, _ = clone
    wheel = folder / "dist" / "scpslab-1-any.whl"
    with zipfile.ZipFile(wheel) as archive:
        files = {name: archive.read(name) for name in archive.namelist()}
    name = str(INSIDE / "guest.tar.xz")
    files[name] = files[name][: len(files[name]) // 2]
    with zipfile.ZipFile(wheel, "w") as archive:
        for one, data in files.items():
            archive.writestr(one, data)
    with pytest.raises(CapabilityError):
        take(wheel, silent)
    assert find(parts[1]) is None
