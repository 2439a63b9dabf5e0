"""Parts that a wheel carries: packed to the same bytes everywhere, unpacked whole or not at all, once, and from a
package that nobody can write to.
"""

from __future__ import annotations

import errno
import json
import shutil
import threading
import zipfile
from pathlib import Path

import pytest

from scpslab.core import archive, project
from scpslab.core.errors import CapabilityError, UsageError
from scpslab.setup import __main__ as program
from scpslab.setup import images, packed, silent
from tools.build import pack
from tools.build.job import Job


@pytest.fixture
def recipe(tmp_path, monkeypatch):
    """A part that is a folder with a program, one that is a file, a cache folder with both, and no wheel."""
    built: list[str] = []

    def build(job: Job) -> None:
        built.append(job.title)
        if job.title == "tools":
            job.target.mkdir()
            (job.target / "init").write_text("init")
            (job.target / "init").chmod(0o755)
        else:
            job.target.write_text("guest" * 1000)

    for name in ("tools", "guest"):
        (tmp_path / "recipes" / name).mkdir(parents=True)
        (tmp_path / "recipes" / name / "list").write_text(name)
    parts = tuple(
        images.Built(name, name, name, build, product, images.files_of)
        for name, product in (("tools", "bin"), ("guest", "guest.erofs"))
    )
    monkeypatch.setattr(images, "PROJECT", tmp_path / "recipes")
    monkeypatch.setattr(images, "NEEDED_BYTES", 1)
    monkeypatch.setattr(images, "ROOM_TO_RUN_BYTES", 1)
    monkeypatch.setenv("SCPSLAB_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(project, "PACKED_PARTS", tmp_path / "no-wheel")
    monkeypatch.setattr(pack, "CARRIED", parts)
    monkeypatch.setattr(pack, "APPLIANCE", parts[1])
    monkeypatch.setattr(
        pack,
        "ensure",
        lambda say: [
            images.find(part, images.cache_dir()) or images._build(part, images.cache_dir(), say) for part in parts
        ],
    )
    monkeypatch.setattr(pack, "ensure_stack", lambda say: None)
    monkeypatch.setattr(pack, "ensure_appliance", lambda say: None)
    packed.index.cache_clear()
    return tmp_path, parts, built


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


def files_in(folder):
    return sorted(path.name for path in folder.rglob("*") if path.is_file())


def test_a_part_of_the_wheel_is_unpacked_and_not_built(wheel):
    folder, (tools, guest), built = wheel
    assert (find(tools) / "init").read_text() == "init"
    assert (find(tools) / "init").stat().st_mode & 0o777 == 0o755
    assert (
        find(guest).read_bytes()
        == (folder / "cache" / "guest" / images.recipe_hash(guest) / "guest.erofs").read_bytes()
    )
    assert images.made(guest, images.cache_dir()) is not None
    assert built == []


def test_the_folder_of_an_unpacked_part_has_the_hash_of_its_bytes(wheel):
    _, (tools, _), _ = wheel
    assert (
        find(tools).parent.name
        == f"{images.recipe_hash(tools)}-{images.made(tools, images.cache_dir())[0].sha256[:16]}"
    )


def test_the_second_time_nothing_is_unpacked(wheel):
    folder, (tools, _), _ = wheel
    first = find(tools)
    (folder / "wheel").chmod(0o755)
    (folder / "wheel" / "tools.tar.xz").unlink()
    assert find(tools) == first


def test_several_at_once_unpack_once(wheel, monkeypatch):
    _, (_, guest), _ = wheel
    unpacked: list[str] = []
    real = packed.unpack
    monkeypatch.setattr(packed, "unpack", lambda *given: (unpacked.append("once"), real(*given))[1])
    found: list[Path | None] = []
    threads = [threading.Thread(target=lambda: found.append(find(guest))) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
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
    with pytest.raises(
        CapabilityError, match=r"expected 1000000000\.1 GB for guest\. Free disk space, or set SCPSLAB_CACHE"
    ):
        find(guest)
    assert not (folder / "empty" / "guest").exists()


def test_a_disk_that_becomes_full_leaves_nothing_half_unpacked(wheel, monkeypatch):
    folder, (_, guest), _ = wheel

    blocks = iter([b"half"])

    def full(file: object) -> bytes:
        if block := next(blocks, b""):
            return block
        raise OSError(errno.ENOSPC, "No space left on device", str(folder))

    monkeypatch.setattr(archive, "_block", full)
    with pytest.raises(
        CapabilityError, match=r"found No space left on device; expected a writable folder with free space"
    ):
        find(guest)
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


def test_a_wheel_without_the_appliance_is_made_without_building_it_and_the_minutes_are_said_before(recipe, monkeypatch):
    folder, (tools, guest), built = recipe
    monkeypatch.setattr(pack, "ensure", lambda say: images._build(tools, images.cache_dir(), say))
    monkeypatch.setattr(pack, "ensure_appliance", lambda say: images._build(guest, images.cache_dir(), say))
    said: list[str] = []
    pack.pack(folder / "wheel", lambda text, is_under_way=False: said.append(text), with_appliance=False)
    assert built == ["tools"]
    assert files_in(folder / "wheel") == [packed.INDEX, "tools.tar.xz"]
    assert not any("appliance" in line.lower() for line in said)
    monkeypatch.setattr(pack, "ensure", lambda say: None)
    pack.pack(folder / "wheel", lambda text, is_under_way=False: said.append(text))
    assert built == ["tools", "guest"]
    before = said[: said.index(next(line for line in said if "guest: building" in line))]
    assert [line for line in before if "10 to 30 minutes" in line and "APPLIANCE=no" in line]


def test_a_clone_has_no_packed_parts():
    assert packed.index(project.PACKED_PARTS) == {}


@pytest.fixture
def clone(recipe, monkeypatch):
    """A clone with an empty cache folder, and a wheel file in a folder; the names of the wheel's parts."""
    folder, parts, built = recipe
    pack.pack(folder / "parts", silent)
    built.clear()
    (folder / "dist").mkdir()
    with zipfile.ZipFile(folder / "dist" / "scpslab-1-any.whl", "w") as wheel:
        for file in (folder / "parts").iterdir():
            wheel.write(file, str(program.INSIDE / file.name))
        wheel.writestr("scpslab/__init__.py", "")
        wheel.writestr("../outside", "never written")
    monkeypatch.setenv("SCPSLAB_CACHE", str(folder / "empty"))
    monkeypatch.setattr(program, "CARRIED", parts)
    packed.index.cache_clear()
    return folder, parts, built


@pytest.mark.parametrize("given", ["dist", "dist/scpslab-1-any.whl"])
def test_a_clone_takes_the_parts_of_a_wheel_of_the_same_recipes(clone, given):
    folder, parts, built = clone
    said: list[str] = []
    assert program.take(folder / given, said.append) == []
    assert not built
    assert [images.find(part, images.cache_dir()) is not None for part in parts] == [True, True]
    assert (images.find(parts[1], images.cache_dir())).read_text() == "guest" * 1000
    assert not list(folder.rglob("outside"))
    count = len(said)
    assert program.take(folder / given, said.append) == []
    assert len(said) == count


def test_parts_of_other_recipes_are_left_in_the_wheel(clone):
    folder, parts, _ = clone
    (folder / "recipes" / "guest" / "list").write_text("changed")
    assert program.take(folder / "dist", silent) == ["guest"]
    assert images.find(parts[1], images.cache_dir()) is None
    (folder / "recipes" / "tools" / "list").write_text("changed")
    with pytest.raises(UsageError, match="of other recipes only; expected those of this clone"):
        program.take(folder / "dist", silent)


def test_what_is_no_wheel_with_parts_is_named(clone):
    folder, _, _ = clone
    empty = folder / "empty-folder"
    empty.mkdir()
    with pytest.raises(UsageError, match="found 0 wheels; expected a wheel of scpslab"):
        program.take(empty, silent)
    (empty / "scpslab-1.whl").write_text("no archive")
    with pytest.raises(UsageError, match="not a zip file; expected a wheel"):
        program.take(empty, silent)
    with zipfile.ZipFile(empty / "scpslab-1.whl", "w") as wheel:
        wheel.writestr("scpslab/__init__.py", "")
    with pytest.raises(UsageError, match="no built parts; expected a wheel"):
        program.take(empty, silent)


def test_a_damaged_part_of_a_wheel_leaves_nothing(clone):
    folder, parts, _ = clone
    wheel = folder / "dist" / "scpslab-1-any.whl"
    with zipfile.ZipFile(wheel) as archive:
        files = {name: archive.read(name) for name in archive.namelist()}
    name = str(program.INSIDE / "guest.tar.xz")
    files[name] = files[name][: len(files[name]) // 2]
    with zipfile.ZipFile(wheel, "w") as archive:
        for one, data in files.items():
            archive.writestr(one, data)
    with pytest.raises(CapabilityError):
        program.take(wheel, silent)
    assert images.find(parts[1], images.cache_dir()) is None
