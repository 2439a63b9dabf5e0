"""Kernel, guest and package source: what the recipes say is what is asked for."""

from scpslab.core.errors import CapabilityError
from scpslab.setup import apt, images, recipes
from tests import golden
from tests.cases import refusal
from tools.build import kernel


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
