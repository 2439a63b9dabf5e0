"""Users of a wheel are told its file, never a name that a stranger may take, and no `make`, which they lack."""

import re
from importlib import metadata, util
from pathlib import Path
from types import SimpleNamespace

import pytest

from scpslab.core import installation
from scpslab.engine import findings as machine

ROOT = Path(__file__).parents[2]
# A command that asks an index for scpslab: the name, without a folder, a version or an ending.
BY_NAME = re.compile(r"""pip install(?! [^`\n]*--no-index)[^`\n|#]*[ "']scpslab(?:\[[a-z,]+\])?["'`.\s]""")


@pytest.mark.parametrize("found", [True, False])
def test_an_extra_is_added_to_the_wheel_that_was_installed(monkeypatch, tmp_path, found):
    wheel = tmp_path / "with blanks" / "scpslab-1.0-py3-none-any.whl"
    wheel.parent.mkdir()
    if found:
        wheel.touch()
    noted = f'{{"url": "{wheel.as_uri()}", "archive_info": {{}}}}'
    monkeypatch.setattr(metadata, "distribution", lambda name: SimpleNamespace(read_text=lambda file: noted))
    monkeypatch.setattr(installation, "IS_INSTALLED", True)
    said = installation.add_extra("dask")
    assert said.endswith(f'-m pip install "{wheel}[dask]"' if found else '….whl[dask]"')


def test_no_page_and_no_message_asks_an_index_for_the_name():
    assert BY_NAME.search('pip install "scpslab[dask]"')
    files = [
        *(ROOT / "src").rglob("*.py"),
        *(ROOT / "docs").rglob("*.md"),
        *(ROOT / "assignments").rglob("*.md"),
        ROOT / "README.md",
    ]
    assert [f"{file}: {found[0]}" for file in files if (found := BY_NAME.search(file.read_text()))] == []


def test_doctor_says_where_nobody_may_write(monkeypatch, tmp_path):
    monkeypatch.setenv("SCPSLAB_CACHE", str(tmp_path / "home" / ".cache"))
    assert machine.disk().state == "ok"
    monkeypatch.setattr(machine.os, "access", lambda path, mode: path != tmp_path)
    found = machine.disk()
    assert (found.state, found.fix) == ("missing", "set SCPSLAB_CACHE to a folder that you may write to")
    assert str(tmp_path) in found.found


def test_modules_that_users_are_told_to_run_are_installed():
    files = (path for path in (ROOT / "src").rglob("*") if path.suffix in (".py", ".sh"))
    named = {name for path in files for name in re.findall(r"-m (scpslab[\w.]*)", path.read_text())}
    assert "scpslab.setup" in named
    assert [name for name in named if util.find_spec(f"{name}.__main__") is None] == []
