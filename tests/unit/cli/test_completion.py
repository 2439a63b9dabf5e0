"""What a shell completes: commands without loading any, options, and names of scenarios, runs, topologies and pages."""

import importlib

import pytest

from scpslab import scenario
from scpslab.cli import app


@pytest.fixture
def completed(scpslab, monkeypatch):
    """What bash gets for a line whose last word is completed."""

    def complete(line):
        monkeypatch.setenv("_SCPSLAB_COMPLETE", "complete_bash")
        monkeypatch.setenv("COMP_WORDS", line)
        monkeypatch.setenv("COMP_CWORD", str(len(line.split(" ")) - 1))
        code, out, _ = scpslab()
        assert code == 0
        return out.split()

    return complete


def test_a_command_is_completed_without_loading_one(completed, monkeypatch):
    monkeypatch.setattr(importlib, "import_module", None)
    assert completed("scpslab ") == [*app.COMMANDS]
    assert completed("scpslab ve") == ["verify"]
    assert completed("scpslab nonsense") == []


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("scpslab verify --max", ["--max-wall"]),
        ("scpslab assignment s", ["start", "submit"]),
        ("scpslab run --engine v", ["virtual"]),
        ("scpslab run fy97/fig04", ["fy97/fig04"]),
        ("scpslab validate campaigns/pap", ["campaigns/papers"]),
        ("scpslab shell point", ["point_to_point"]),
        ("scpslab docs protocol/scps-t", ["protocol/scps-tp"]),
        ("scpslab list to", ["topologies"]),
    ],
)
def test_options_and_names_are_completed(completed, line, found):
    assert completed(line) == found


def test_all_scenarios_are_offered(completed):
    assert set(scenario.names()) <= set(completed("scpslab run "))


def test_runs_are_those_of_this_folder(completed, tmp_path, monkeypatch):
    (tmp_path / "runs" / "mine-0123abcd").mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    assert completed("scpslab results ") == ["last", "mine-0123abcd"]


def test_other_shells_have_their_own_words(scpslab, monkeypatch):
    monkeypatch.setenv("_SCPSLAB_COMPLETE", "complete_zsh")
    monkeypatch.setenv("_TYPER_COMPLETE_ARGS", "scpslab results --met")
    assert "--metric" in scpslab()[1]


def test_a_command_is_run_where_no_shell_asks(scpslab, monkeypatch):
    monkeypatch.setenv("COMP_WORDS", "scpslab doctor")
    assert scpslab("docs", "cli", "--path")[1].endswith("cli.md\n")
