"""The cache of what is built: by content, whole or not at all, once, and without a network the second time. The images
of nodes: one list of packages each, shared with the guest image and the playbooks. Notices of copyright are taken
from what a part is made of, and leave nothing behind in the guest. Kernel, guest and package source: what the
recipes say is what is asked for. The versions of recipes: files that are read strictly. The system cache: its parts
are used where they are, compared with their digests, and never written.
"""

import json
import re
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from scpslab.core.errors import CapabilityError
from scpslab.core.folders import whole_folder
from scpslab.setup import apt, images, published, recipes, silent
from tests import golden
from tests.cases import refusal
from tools.build import kernel, notices, pin, stack, versions
from tools.build.guest import lines


def test_two_that_make_a_folder_at_once_both_get_it_whole_and_remove_what_a_killed_one_left(tmp_path):
    target, both_inside = tmp_path / "cache" / "lab", threading.Barrier(2, timeout=60)
    (target.parent / "scpslab-4194305-7-abcdefgh" / "lab").mkdir(parents=True)

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


IMAGES = Path(__file__).parents[3] / "images"
NODES = ("base", "tcp-host", "scps-host", "router", "gateway", "traffic", "monitor")
# The network around the nodes, which no container has: the machine's own, or the guest's.
AROUND = {"mininet", "openvswitch-switch"}


def test_nodes_and_guest_have_the_same_packages():
    files = (IMAGES / node / "packages.txt" for node in NODES)
    packages = {package for file in files if file.exists() for package in lines(file)}
    assert packages == set(lines(IMAGES / "guest" / "packages.txt")) - AROUND


def test_no_image_runs_as_root_and_the_base_is_pinned_by_digest():
    texts = {node: (IMAGES / node / "Dockerfile").read_text() for node in NODES}
    users = {node: re.findall(r"^USER (\S+)$", text, re.MULTILINE)[-1:] for node, text in texts.items()}
    assert [node for node, user in users.items() if user not in ([], ["1000"])] == []
    assert re.search(r"^ARG ROOT=debian:trixie-slim@sha256:[0-9a-f]{64}$", texts["base"], re.MULTILINE)


def test_the_notices_of_debians_packages_leave_the_image(tmp_path):
    folder = tmp_path / notices.DEBIAN
    for name in ("zlib1g", "bash", "linked"):
        (folder / name).mkdir(parents=True)
    (folder / "zlib1g" / "copyright").write_text("zlib's notice\n")
    (folder / "bash" / "copyright").write_text("GPL-3\n")
    (folder / "bash" / "changelog").write_text("not a notice")
    (folder / "zlib1g-dev").symlink_to("zlib1g")
    (folder / "linked" / "copyright").symlink_to("/etc/passwd")
    assert notices.take_from_debian(tmp_path) == "==== bash\n\nGPL-3\n\n==== zlib1g\n\nzlib's notice\n"
    assert not list(folder.iterdir())


def test_the_licences_of_the_libraries_that_cargo_compiled_are_gathered(tmp_path):
    said = ["   Compiling libc v0.2.1"]
    for folder, package, files in (
        ("libc-0.2.1", "registry+https://example.org#libc@0.2.1", ("LICENSE-MIT", "LICENSE-APACHE", "README.md")),
        ("scps-tp", "path+file:///x#scps-tp@0.2.0", ("LICENSE",)),
    ):
        (tmp_path / folder).mkdir()
        for file in files:
            (tmp_path / folder / file).write_text(f"{file} of {folder}")
        message = {"package_id": package, "manifest_path": str(tmp_path / folder / "Cargo.toml")}
        said += [json.dumps({"reason": "compiler-artifact"} | message, separators=(",", ":"))] * 2
    found = notices.of_crates(stack.libraries("\n".join(said)))
    assert found == "==== libc-0.2.1\n\nLICENSE-APACHE of libc-0.2.1\n\n==== libc-0.2.1\n\nLICENSE-MIT of libc-0.2.1\n"


def test_an_option_that_is_not_taken_is_named_and_one_that_does_not_exist_counts_as_left_out(tmp_path):
    (tmp_path / "fragment").write_text("# CONFIG_D is not set\n")
    (tmp_path / "config").write_text("CONFIG_A=y\n# CONFIG_B is not set\nCONFIG_C=y\n")
    kernel.check_options(tmp_path / "fragment", tmp_path / "config")
    (tmp_path / "fragment").write_text("# why\nCONFIG_A=y\nCONFIG_B=y\n# CONFIG_C is not set\n# CONFIG_D is not set\n")
    said = refusal(kernel.check_options, tmp_path / "fragment", tmp_path / "config", error=CapabilityError)
    assert "did not accept CONFIG_B=y, CONFIG_C=n; expected" in said


@golden.each("mirror of Debian", "case name text")
def test_the_mirror_is_the_one_the_machine_uses_for_debian(tmp_path, monkeypatch, case, name, text):
    monkeypatch.delenv("SCPSLAB_MIRROR", raising=False)
    (tmp_path / "sources.list.d").mkdir()
    (tmp_path / name).write_text(f"{text}\n")
    (tmp_path / "mmdebstrap").write_text("sub main() {\n    my $mirror    = 'http://default.example/debian';\n")
    case.hold(apt.mirror(tmp_path, str(tmp_path / "mmdebstrap")))


def test_the_appliances_recipe_has_the_version_of_the_lab_kernels_source(tmp_path, monkeypatch):
    for name in ("appliance/config.fragment", "lab-kernel/versions.txt"):
        (tmp_path / "images" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "images" / name).write_text("one")
    monkeypatch.setattr(images, "PROJECT", tmp_path)
    before = images.recipe_hash(images.APPLIANCE)
    (tmp_path / "images/lab-kernel/versions.txt").write_text("two")
    assert images.recipe_hash(images.APPLIANCE) != before


def test_the_stack_s_recipe_is_what_the_program_is_made_from():
    """Sources and the lock of dependencies, no tests: a changed test does not compile the program anew."""
    names = {str(path.relative_to(images.PROJECT / "stack")) for path in recipes.stack_files(images.PROJECT / "stack")}
    assert {"Cargo.toml", "Cargo.lock", "crates/scps-tp/src/lib.rs", "crates/scps-cli/Cargo.toml"} <= names
    assert not any("/tests/" in name or "/target/" in name for name in names)


MADE = published.Entry("kernel", "0" * 16, "a" * 64, "gcc 12")


@golden.each("versions.txt")
def test_anything_else_is_refused_with_its_line(case, tmp_path):
    file = tmp_path / "versions.txt"
    text = case.replace("DATE", "date 20261122T210000Z").replace(r"\n", "\n").replace("NOTHING", "")
    file.write_bytes(f"{text}\n".encode("latin-1"))
    case.hold(refusal(versions.read, file, error=CapabilityError), tmp_path)


def test_the_published_file_is_read_back_and_strict(tmp_path, told):
    file = tmp_path / "published.txt"
    assert published.read(file) == []
    file.write_text(pin.published_text([MADE]))
    assert published.read(file) == [MADE]
    file.write_text("kernel 0 a\n")
    told("published.txt", "kernel 0 a", published.read, file)


@golden.each("verdict on a built part", "case sha256 tools recipe differs")
def test_the_verdict_says_why_bytes_differ(case, sha256, tools, recipe, differs):
    made = published.Entry("kernel", recipe * 16, sha256 * 64, tools)
    verdict = published.judge("lab kernel", made, differs.split(), [MADE])
    case.hold(f"{verdict.same}: {verdict.text}")


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
