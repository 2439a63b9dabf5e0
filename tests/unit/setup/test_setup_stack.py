"""Where the compiler of the SCPS program comes from."""

import pytest

from scpslab.setup import images, recipes
from tools.build import stack


class Recorder:
    """A job that only notes what it would run."""

    def __init__(self, folder):
        self.recipe, self.work, self.target = folder / "stack", folder, folder / "scps"
        self.recipe.mkdir()
        self.commands = []

    def step(self, _title):
        from contextlib import nullcontext

        return nullcontext()

    def run(self, argv, **_options):
        self.commands.append([str(word) for word in argv])
        if argv[0] == "cargo":
            product = self.work / "target" / stack.TARGET / "release" / "scps"
            product.parent.mkdir(parents=True)
            product.write_text("program")
        elif argv[0] == "tar":
            (self.work / "stack.tar").write_text("sources")
        else:
            self.target.write_text("program")

    def output(self, argv, **_options):
        self.run(argv)
        return "   Compiling scps-cli"


@pytest.mark.parametrize(
    ("version", "tool"), [((1, 95), "cargo"), ((1, 85), "cargo"), ((1, 63), "mmdebstrap"), (None, "mmdebstrap")]
)
def test_an_old_or_missing_cargo_is_replaced_by_debians(version, tool, tmp_path, monkeypatch):
    monkeypatch.setattr(stack, "cargo_version", lambda: version)
    monkeypatch.setattr(stack, "sources_line", lambda: "deb http://example.org/debian trixie main")
    job = Recorder(tmp_path)
    stack.build(job)
    assert job.commands[-1][0] == tool
    assert job.target.read_text() == "program"
    assert not (tmp_path / "target").exists()
    assert not (tmp_path / "stack.tar").exists()


def test_the_recipe_is_what_the_program_is_made_from():
    """Sources and the lock of dependencies, no tests: a changed test does not compile the program anew."""
    names = {str(path.relative_to(images.PROJECT / "stack")) for path in recipes.stack_files(images.PROJECT / "stack")}
    assert {"Cargo.toml", "Cargo.lock", "crates/scps-tp/src/lib.rs", "crates/scps-cli/Cargo.toml"} <= names
    assert not any("/tests/" in name or "/target/" in name for name in names)
