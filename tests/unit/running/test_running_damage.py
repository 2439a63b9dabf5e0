"""Damaged files of a run: running again mends them; every command that reads a run says in one line what to do."""

import json
import shutil

import pytest

from scpslab.core.errors import ResultError, ScpslabError
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


def test_a_file_among_the_cells_is_left_and_costs_nothing(run_fake, tmp_path):
    folder = run_fake().folder
    before = contents(tmp_path)
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
