"""Damaged files of a run: running again mends them; every command that reads a run says in one line what to do."""

import json
import re
import shutil

import pytest

from scpslab.core.errors import ResultError, ScpslabError
from scpslab.running import runner
from scpslab.runs.archive import digests_of

pytestmark = pytest.mark.slow

DAMAGES = [
    b"",
    b"{",
    b"[]",
    b"\xff\xfe",
    b"[" * 100_000,
    b'{"format": 1}',
    b"null",
    b'{"status": 7, "format": "x", "cells": []}',
    b"- &a [*a]\n- 2001-99-99",
]
FILES = ["manifest.json", "status.json", "plan.json", "scenario.resolved.yaml", "results.csv"]
COMMANDS = ["results", "results --format csv", "plot", "report", "compare RUN", "claims", "export --out x.tar.gz"]
REMEDIES = ("again", "Delete the file", "use that one", "--figure NAME")


def contents(folder):
    """What a run has made, by path."""
    files = (
        path
        for path in folder.glob("runs/**/*")
        if path.is_file() and path.name not in ("manifest.json", ".lock", "manifest.json.damaged")
    )
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in files}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_run_is_mended_by_running_again(run_fake, tmp_path, damage):
    run_fake()
    before = contents(tmp_path)
    for name in FILES:
        for path in (*tmp_path.glob(f"runs/**/{name}"), *tmp_path.glob("cache/results/*/*.cell")):
            path.write_bytes(damage)

        result = run_fake()

        assert contents(tmp_path) == before
        assert result.incomplete == 3
        assert json.loads((result.folder / "manifest.json").read_text())["status"] == "completed"


def test_a_run_says_that_it_is_completed_when_it_has_its_table(run_fake, monkeypatch):
    """Killed before that, a run could be exported with the table of an earlier state."""
    said, collect = [], runner.results.collect

    def killed_here(folder, *rest):
        said.append(json.loads((folder / "manifest.json").read_text())["status"])
        return collect(folder, *rest)

    monkeypatch.setattr(runner.results, "collect", killed_here)
    run_fake()
    assert said == ["running"]


def test_a_file_among_the_cells_is_left_and_costs_nothing(run_fake, tmp_path):
    folder = run_fake().folder
    before = contents(tmp_path)
    # One that has the name of a cell is in the way.
    cell = next((folder / "cells").iterdir())
    shutil.rmtree(cell)
    cell.touch()
    (folder / "cells" / ".DS_Store").write_bytes(b"of a file manager")

    assert run_fake().folder == folder
    assert contents(tmp_path) == before | {
        f"{folder.relative_to(tmp_path).as_posix()}/cells/.DS_Store": b"of a file manager"
    }
    assert set(digests_of(folder)) == {name.partition(f"{folder.name}/")[2] for name in before if "/cells/" in name} | {
        "results.csv"
    }


def test_measurements_are_not_thrown_away_for_a_damaged_manifest(run_fake, tmp_path, told):
    folder = run_fake(repeats=False).folder
    (folder / "manifest.json").write_bytes(b"")
    before = contents(tmp_path)

    told("manifest of a run", "damaged, of measurements", run_fake, repeats=False, error=ResultError)
    assert contents(tmp_path) == before


def test_a_run_of_a_newer_program_is_left_alone(run_fake, tmp_path, told):
    folder = run_fake().folder
    (folder / "manifest.json").write_text('{"format": 99}')

    told("manifest of a run", "of a newer program", run_fake, error=ResultError)
    assert (folder / "manifest.json").read_text() == '{"format": 99}'


CASED = """
kind: scenario
version: 1
title: Two labels that differ in case alone
topology: point_to_point
workloads: [{kind: bulk, name: transfer, from: h1, to: h2, size: 1 kB}]
sweep: {delay: {cases: {Far: {links.hop.*.delay: 20 ms}, near: {links.hop.*.delay: 1 ms}, far: {}}}}
"""


def test_cells_whose_names_differ_in_case_need_a_file_system_that_tells(run_fake, tmp_path, told):
    (tmp_path / "cased.yaml").write_text(CASED)
    folder = run_fake(str(tmp_path / "cased.yaml")).folder
    assert len(list((folder / "cells").iterdir())) == 3
    before = (folder / "manifest.json").read_text()
    # As if the file system took .LOCK for .lock.
    (folder / ".LOCK").touch()
    told("manifest of a run", "of cells that differ in case", run_fake, str(tmp_path / "cased.yaml"))
    assert (folder / "manifest.json").read_text() == before


def test_cells_that_have_gone_are_told(run_fake, tmp_path, scpslab):
    """As in a copy on a file system that takes two of their names for one."""
    folder = run_fake().folder
    code, _, said = scpslab("results", folder)
    assert (code, said) == (0, "")
    gone = sorted((folder / "cells").iterdir())[1]
    shutil.rmtree(gone)
    for word, *options in (["results"], ["report"], ["claims"], ["export", "--out", tmp_path / "x.tar.gz"]):
        code, _, said = scpslab(word, folder, *options)
        assert (code, f"cells: found no folder of {gone.name}; expected every cell" in said) == (0, True), said


LAUGHS = "a0: &a0 [x, x]\n" + "".join(f"a{at}: &a{at} [{', '.join([f'*a{at - 1}'] * 9)}]\n" for at in range(1, 12))


@pytest.mark.parametrize("command", [["report"], ["studio", "--export", "x.html"]])
def test_a_title_of_aliases_is_not_written_out(scpslab, run_dir, tmp_path, monkeypatch, command):
    monkeypatch.chdir(tmp_path)
    (run_dir / "scenario.resolved.yaml").write_text(f"{LAUGHS}title: *a11\n")
    code, _, said = scpslab(command[0], run_dir, *command[1:])
    assert (code, "scenario.resolved.yaml:2: found an alias; expected the value itself" in said) == (5, True), said


def test_a_number_that_no_float_holds_is_none(run_fake, scpslab):
    """Python's whole numbers have no end; JSON has them in every place of a stranger's folder."""
    folder = run_fake().folder
    huge = "1" + "0" * 400
    for path in (folder / "manifest.json", *folder.glob("cells/*/status.json")):
        text = re.sub(r'("(?:stack|virtual_s|wall_s)[^"]*": )[0-9.]+', rf"\g<1>{huge}", path.read_text())
        path.write_text(text)
        assert huge in text
    for command in ("results", "report"):
        code, _, said = scpslab(command, folder)
        assert (code, "Error" in said) == (0, False), said


def test_a_folder_in_the_place_of_a_file_is_named(run_fake, scpslab):
    """The file that is written first has a name that nobody knows."""
    folder = run_fake().folder
    (folder / "results.csv").unlink()
    (folder / "results.csv").mkdir()
    _, _, said = scpslab("results", folder)
    assert said.startswith(f"error: {folder / 'results.csv'}: found Is a directory;"), said


@pytest.fixture(scope="module")
def whole(synthetic, tmp_path_factory):
    """A run with all its files."""
    run = synthetic.write_run(tmp_path_factory.mktemp("whole") / "fy97-fig04-kernel-0001", repeats=2)
    fields = {"format": 1, "status": "completed", "scenario": "fy97/fig04:kernel", "engine": "virtual"}
    (run / "manifest.json").write_text(json.dumps(fields | {"seed": 1, "cells": {}}))
    (run / "scenario.resolved.yaml").write_text("title: x\n")
    return run


@pytest.mark.parametrize("damage", [DAMAGES[0], DAMAGES[3], DAMAGES[4], DAMAGES[7], DAMAGES[8]])
@pytest.mark.parametrize("name", [*FILES, "campaign.json"])
def test_commands_say_in_one_line_what_is_damaged_and_what_to_do(scpslab, whole, tmp_path, monkeypatch, name, damage):
    run = tmp_path / "runs" / whole.name
    shutil.copytree(whole, run)
    path = next(run.glob(f"cells/*/{name}")) if name in ("plan.json", "status.json") else run / name
    path.write_bytes(damage)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("scpslab.analysis.figures.drawing.Found.applicable", lambda found, source: [source.run][1:])
    for command in COMMANDS:
        word, *options = command.replace("RUN", run.name).split()
        code, _, said = scpslab(word, run.name, *options)
        assert code in (0, ResultError.exit_code, ScpslabError.exit_code), (command, said)
        if code:
            assert said.count("\n") == 1, (command, said)
            assert said.startswith("error: "), (command, said)
            assert "expected" in said
            assert any(words in said for words in REMEDIES), (command, said)
