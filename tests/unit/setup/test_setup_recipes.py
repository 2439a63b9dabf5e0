"""Kernel, guest and package source: what the recipes say is what is asked for."""

import pytest

from scpslab.core.errors import CapabilityError
from scpslab.setup import images
from tests.cases import each, refusal
from tools.build import apt, guest, job, kernel

DEFAULT = "http://default.example/debian"


def test_an_option_that_is_not_taken_is_named_and_one_that_does_not_exist_counts_as_left_out(tmp_path):
    (tmp_path / "fragment").write_text("# CONFIG_D is not set\n")
    (tmp_path / "config").write_text("CONFIG_A=y\n# CONFIG_B is not set\nCONFIG_C=y\n")
    kernel.check_options(tmp_path / "fragment", tmp_path / "config")
    (tmp_path / "fragment").write_text("# why\nCONFIG_A=y\nCONFIG_B=y\n# CONFIG_C is not set\n# CONFIG_D is not set\n")
    with pytest.raises(CapabilityError, match=r"found that Linux \S+ did not accept CONFIG_B=y, CONFIG_C=n; expected"):
        kernel.check_options(tmp_path / "fragment", tmp_path / "config")


def test_no_option_is_said_twice():
    text = (images.PROJECT / "images" / "lab-kernel" / "config.fragment").read_text()
    names = [name for name, _ in map(kernel._option, text.splitlines()) if name]
    assert len(names) == len(set(names))


@each(
    "name text found",
    r"""
sources.list | deb http://m.example/debian bookworm main | http://m.example/debian
sources.list | # why\ndeb [arch=amd64 signed-by=/k.gpg] https://m.example/debian/ trixie main | https://m.example/debian
sources.list | deb http://archive.example/ubuntu noble main | http://default.example/debian
sources.list | deb http://m.example/debian-security bookworm-security main | http://default.example/debian
sources.list.d/debian.sources | Types: deb\nURIs: http://m.example/debian\nSuites: trixie | http://m.example/debian
sources.list.d/notes.txt | deb http://m.example/debian bookworm main | http://default.example/debian
""",
)
def test_the_mirror_is_the_one_the_machine_uses_for_debian(tmp_path, monkeypatch, name, text, found):
    monkeypatch.delenv("SCPSLAB_MIRROR", raising=False)
    (tmp_path / "sources.list.d").mkdir()
    (tmp_path / name).write_text(f"{text}\n")
    (tmp_path / "mmdebstrap").write_text(f"sub main() {{\n    my $mirror    = '{DEFAULT}';\n")
    assert apt.mirror(tmp_path, str(tmp_path / "mmdebstrap")) == found


def test_without_any_mirror_the_variable_is_named(tmp_path, monkeypatch):
    monkeypatch.delenv("SCPSLAB_MIRROR", raising=False)
    (tmp_path / "mmdebstrap").write_text("sub main() {\n")
    with pytest.raises(CapabilityError, match="found no mirror of Debian; .* Set SCPSLAB_MIRROR"):
        apt.mirror(tmp_path, str(tmp_path / "mmdebstrap"))


def test_the_installed_mmdebstrap_has_a_mirror_which_the_variable_overrides(tmp_path, monkeypatch):
    monkeypatch.delenv("SCPSLAB_MIRROR", raising=False)
    assert apt.mirror(tmp_path).endswith("/debian")
    monkeypatch.setenv("SCPSLAB_MIRROR", "http://here.example/debian/")
    assert apt.mirror(tmp_path) == "http://here.example/debian"


def test_lists_of_a_recipe_have_one_item_a_line():
    packages = guest.lines(images.PROJECT / "images" / "guest" / "packages.txt")
    assert "mininet" in packages
    assert packages == sorted(set(packages))
    assert not [name for name in packages if " " in name or name.startswith("#")]


def test_a_program_that_is_not_there_is_named_with_what_to_run(tmp_path):
    build = job.Job("x", tmp_path, tmp_path / "product", tmp_path / "log", print)
    said = refusal(build.run, ["no-such-program"], error=CapabilityError)
    assert "no-such-program: found no such program; expected it to be installed. To fix: make packages." in said


@each(
    "said advice",
    """
cc1: fatal error: error writing to /x: No space left on device | Free disk space
W: cannot mount because CAP_SYS_ADMIN is not in the effective set | docker run --cap-add SYS_ADMIN
W: Failed to fetch x  Temporary failure resolving 'deb.example' | Connect to the network
newuidmap: uid range not allowed | usermod --add-subuids
something else | Read
""",
)
def test_what_a_tool_says_becomes_advice(tmp_path, said, advice):
    assert advice in job.failure("tool", 1, said, tmp_path / "log")


def test_the_appliances_recipe_has_the_version_of_the_lab_kernels_source(tmp_path, monkeypatch):
    for name in ("appliance/config.fragment", "lab-kernel/versions.txt"):
        (tmp_path / "images" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "images" / name).write_text("one")
    monkeypatch.setattr(images, "PROJECT", tmp_path)
    before = images.recipe_hash(images.APPLIANCE)
    assert images.recipe_hash(images.APPLIANCE) == before
    (tmp_path / "images/lab-kernel/versions.txt").write_text("two")
    assert images.recipe_hash(images.APPLIANCE) != before
