"""Links in a stranger's scenario and run folders: none is read into a run, written through, or emptied."""

import shutil

import pytest
from matplotlib.figure import Figure

from scpslab.analysis.figures.canvas import save
from scpslab.core.errors import ScenarioError, UsageError
from scpslab.core.project import ROOT

PRIVATE = "of this machine"


@pytest.fixture
def secret(tmp_path):
    """A folder of the user's own, with a file in it."""
    folder = tmp_path / "private"
    folder.mkdir()
    (folder / "private.yaml").write_text(PRIVATE)
    return folder / "private.yaml"


@pytest.fixture
def foreign(tmp_path):
    """A scenario in a folder of its own."""
    folder = tmp_path / "foreign"
    folder.mkdir()
    shutil.copyfile(ROOT / "scenarios" / "links" / "transfer.yaml", folder / "transfer.yaml")
    return folder / "transfer.yaml"


def carried(run):
    """The files of a run, links followed, that have the secret."""
    return [
        str(path.relative_to(run))
        for path in run.rglob("*")
        if path.is_file() and PRIVATE.encode() in path.read_bytes()
    ]


@pytest.mark.parametrize("linked", ["file", "folder"])
def test_a_run_takes_no_file_along_to_which_a_link_leads(run_fake, foreign, secret, linked):
    for kind in ("figures", "claims"):
        if linked == "folder":
            (foreign.parent / kind).symlink_to(secret.parent)
        else:
            (foreign.parent / kind).mkdir()
            (foreign.parent / kind / "planted.yaml").symlink_to(secret)
            (foreign.parent / kind / "own.yaml").write_text("a: 1\n")

    run = run_fake(str(foreign)).folder

    assert carried(run) == []
    assert (run / "figures" / "own.yaml").exists() == (linked == "file")


def test_names_that_cannot_be_printed_are_taken_nowhere(run_fake, foreign, tmp_path, told):
    (foreign.parent / "figures").mkdir()
    (foreign.parent / "figures" / "a\nb.yaml").write_text("a: 1\n")
    named = foreign.rename(foreign.with_name("a\nb.yaml"))

    told("names that cannot be printed", "scenario", run_fake, str(named), error=ScenarioError)
    told("names that cannot be printed", "--out", run_fake, out=tmp_path / "a\nb", error=UsageError)

    run = run_fake(str(named.rename(foreign))).folder
    assert not (run / "figures").exists()


@pytest.mark.parametrize("kind", ["cells", "figures", "claims"])
def test_a_run_folder_with_a_link_for_a_folder_is_refused(run_fake, foreign, secret, kind, told):
    run = run_fake(str(foreign)).folder
    shutil.rmtree(run / kind, ignore_errors=True)
    (secret.parent / "kept").mkdir()
    (run / kind).symlink_to(secret.parent)

    told("links for folders", kind, run_fake, str(foreign), error=UsageError)

    assert [path.name for path in sorted(secret.parent.iterdir())] == ["kept", "private.yaml"]


def test_resuming_writes_through_no_link(run_fake, foreign, secret):
    for kind in ("figures", "claims"):
        (foreign.parent / kind).mkdir()
        (foreign.parent / kind / "own.yaml").write_text("a: 1\n")
    run = run_fake(str(foreign)).folder
    planted = [
        path
        for path in run.rglob("*")
        if path.is_file() and path.parent.parent != run / "cells" and path.name != ".lock"
    ]
    for path in planted:
        if path.name != "manifest.json":
            path.unlink()
            path.symlink_to(secret)
    (run / "cells" / "planted").symlink_to(secret.parent)

    run_fake(str(foreign))

    assert secret.read_text() == PRIVATE
    assert carried(run) == []
    assert not (run / "cells" / "planted").is_symlink()


def test_a_picture_is_drawn_through_no_link(secret, tmp_path):
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "one.svg").symlink_to(secret)
    (tmp_path / "linked").symlink_to(secret.parent)
    figure = Figure()

    save(figure, tmp_path / "run", "one", ("svg",))

    assert secret.read_text() == PRIVATE
    assert (tmp_path / "run" / "one.svg").read_bytes().startswith(b"<?xml")
    for name, what in (("linked", "a link"), ("run/one.svg", "a file")):
        with pytest.raises(UsageError, match=f"found {what}; expected a folder"):
            save(figure, tmp_path / name, "one", ("svg",))
