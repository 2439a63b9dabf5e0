"""`scpslab docs`, and the pages that messages, help and handouts name. `scpslab clean` removes what scpslab has made,
and nothing else that lies there. What a shell completes: commands without loading any, options, and names of
scenarios, runs, topologies and pages. Engine host runs commands as root: it says so, and takes others' files only
when told to. `scpslab new` copies scenarios with comments; test_cli_text.py has what it refuses.
"""

import importlib
import io
import os
import re
import time

import pytest
from rich.console import Console

from scpslab import scenario
from scpslab.cli import app, docs, terminal
from scpslab.cli.machine import BUILT
from scpslab.cli.run import check_consent
from scpslab.cli.tables import plain_console
from scpslab.cli.terminal import for_readers
from scpslab.core import folders
from scpslab.core.errors import UsageError
from scpslab.core.project import ROOT
from scpslab.runs.store import Store
from scpslab.scenario import planning
from scpslab.scenario.load import FOLDER
from scpslab.setup.images import CARRIED, DOCKER

CLI = ROOT / "docs" / "cli.md"
NAMED = re.compile(r"(?<![\w./-])docs/([\w/-]+\.md)")
COMMAND = re.compile(r"scpslab docs ([\w/-]+)(?:#([\w-]+))?")


def test_without_a_page_all_pages_are_listed_with_their_titles(scpslab):
    code, out, _ = scpslab("docs")
    assert code == 0
    listed = dict(re.split(r"\s{2,}", line.strip(), maxsplit=1) for line in out.splitlines()[1:])
    assert listed["cli"] == "Command line and prompt"
    assert listed["protocol/scps-tp"].startswith("SCPS-TP")
    top = {path.stem for path in CLI.parent.glob("*.md")} - {"index"}
    assert top <= set(listed)


@pytest.mark.parametrize("page", ["cli", "cli.md"])
def test_a_page_is_markdown_where_no_terminal_is(scpslab, page):
    assert scpslab("docs", page) == (0, CLI.read_text(), "")


def test_a_heading_gives_the_part_below_it(scpslab):
    code, out, _ = scpslab("docs", "cli#exit-codes")
    assert code == 0
    assert out.startswith("## Exit codes\n")
    assert "## Error messages" not in out
    assert "| 130 | interrupted" in out


def test_the_last_heading_goes_to_the_end(scpslab):
    assert CLI.read_text().endswith(scpslab("docs", "cli#error-messages")[1])


def test_the_path_is_that_of_the_file(scpslab):
    assert scpslab("docs", "protocol/scps-tp", "--path") == (0, f"{ROOT / 'docs/protocol/scps-tp.md'}\n", "")


def test_a_terminal_gets_no_markdown(scpslab, monkeypatch):
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    _, out, _ = scpslab("docs", "cli", "--print")
    assert "Exit codes" in out
    assert "\n## Exit codes\n" not in out


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("see docs/platforms.md", "see scpslab docs platforms"),
        ("(docs/scale.md#certificates).", "(scpslab docs scale#certificates)."),
        ("docs/mine.md:3: found", "docs/mine.md:3: found"),
        ("/home/me/docs/cli.md: found", "/home/me/docs/cli.md: found"),
    ],
)
def test_messages_name_the_command_that_shows_a_page(capsys, text, shown):
    assert for_readers(text) == shown
    terminal.warn(text)
    plain_console(width=100).print(text)
    said = capsys.readouterr()
    assert said.err == f"warning: {shown}\n"
    assert said.out == f"{shown}\n"


def test_pages_that_messages_help_and_handouts_name_are_there():
    sources = [
        path
        for folder in ("src", "assignments", "tools/build", "tools/reference")
        for path in (ROOT / folder).rglob("*.*")
        if path.suffix in {".py", ".md", ".yaml"}
    ]
    named = [(path, name) for path in sources for name in NAMED.findall(path.read_text())]
    assert len(named) > 50
    assert [(path, name) for path, name in named if not (ROOT / "docs" / name).is_file()] == []
    pages = dict(docs._pages())
    commands = [
        (path, *found) for path in [*sources, *CLI.parent.glob("*.md")] for found in COMMAND.findall(path.read_text())
    ]
    assert len(commands) > 10
    for path, page, heading in commands:
        assert page in pages, path
        assert not heading or docs._part(pages[page].read_text(), heading, page)


KEY = "0123456789abcdef"


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("SCPSLAB_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def test_a_cache_in_a_folder_of_the_user_s_takes_nothing_with_it(scpslab, cache, tmp_path):
    (tmp_path / "cell").mkdir()
    Store(cache / "results").keep(KEY * 2, tmp_path / "cell")
    mine = [cache / "results" / "thesis" / "data.csv", *(cache / part / "mine.sh" for part in BUILT)]
    made = [cache / part / f"{KEY}-1" / "product" for part in BUILT]
    made.append(cache / BUILT[0] / "scpslab-4194305-7-abcdefgh" / "half")
    for path in (*mine, *made):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("x")

    code, said, _ = scpslab("clean", "--results", "--images")

    assert (code, said.count("removed")) == (0, 1 + len(made))
    assert all(path.exists() for path in mine)
    assert not any(path.exists() for path in made)
    assert list(Store(cache / "results").entries()) == []
    assert "found no results to remove in" in scpslab("clean", "--results")[1]


def test_every_part_is_known(cache):
    assert {part.name for part in (*CARRIED, DOCKER)} <= set(BUILT)


def test_results_behind_a_link_are_removed(scpslab, cache, tmp_path):
    (tmp_path / "large").mkdir()
    cache.mkdir()
    (cache / "results").symlink_to(tmp_path / "large")
    Store(cache / "results").keep(KEY * 2, cache)

    assert scpslab("clean", "--results")[0] == 0
    assert list(Store(tmp_path / "large").entries()) == []


def test_a_shared_folder_keeps_files_of_others(scpslab, cache):
    writing = cache / "results" / "writing"
    writing.mkdir(parents=True)
    ours, theirs = writing / f"lab-a-1-{KEY * 2}", writing / "novel.txt"
    for path in (ours, theirs):
        path.write_text("x")
        os.utime(path, (time.time() - 10**6,) * 2)

    assert scpslab("clean", "--results")[0] == 0
    assert [path.name for path in writing.iterdir()] == ["novel.txt"]


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


SCENARIO = "kind: scenario\nversion: 1\ntitle: one\ntopology: point_to_point\n"
CAMPAIGN = "kind: campaign\nversion: 1\ntitle: two\nruns:\n- {scenario: one.yaml}\n"


@pytest.fixture
def console():
    return Console(file=io.StringIO())


@pytest.fixture
def files(tmp_path):
    """A scenario that others may write, and a campaign of it that they may not."""
    one, two = tmp_path / "one.yaml", tmp_path / "two.yaml"
    for path, text, mode in ((one, SCENARIO, 0o666), (two, CAMPAIGN, 0o644)):
        path.write_text(text)
        path.chmod(mode)
    return one, two


def test_it_says_what_commands_may_do(console):
    check_consent("host", "fy97/fig04:test", False, console)
    assert "as root" in console.file.getvalue()


def test_a_file_that_others_may_write_is_refused_unless_it_is_trusted_also_of_a_campaign(console, files):
    one, two = files
    for path in files:
        with pytest.raises(UsageError, match=r"one\.yaml: found a file that others may write; expected .*--trust"):
            check_consent("host", str(path), False, console)
    check_consent("host", str(one), True, console)
    one.chmod(0o644)
    check_consent("host", str(one), False, console)
    check_consent("host", str(two), False, console)


def test_the_owner_counts_and_by_sudo_the_caller(monkeypatch, files):
    _, path = files
    owner = path.stat().st_uid
    monkeypatch.setattr(os, "geteuid", lambda: owner + 1)
    monkeypatch.setattr(folders, "ROOT", owner + 2)
    monkeypatch.delenv("SUDO_UID", raising=False)
    assert folders.somebody_elses(path) == f"a file of user {owner}"
    monkeypatch.setenv("SUDO_UID", str(owner))
    assert folders.somebody_elses(path) == ""


STARTS = sorted(f"start/{file.stem}" for file in (FOLDER / "start").glob("*.yaml"))


@pytest.mark.parametrize("name", STARTS)
def test_a_copy_is_planned_as_its_source_without_a_warning(tmp_path, scpslab, name):
    path = tmp_path / "mine.yaml"
    code, said, explained = scpslab("new", str(path), "--from", name)

    assert (code, said) == (0, f"{path}\n")
    for command in ("validate", "run", "results", "plot"):
        assert f"scpslab {command} " in explained
    source = scenario.cells(scenario.load(name))
    cells = scenario.cells(scenario.load(str(path)))
    assert [cell.id for cell in cells] == [cell.id for cell in source]
    plans = planning.plans(cells)
    assert [*planning.warnings(plans, ""), *planning.doubts(cells, plans)] == []


def test_the_first_lines_are_a_person_s_to_read(tmp_path, scpslab):
    """The schema for editors is not beside the copy."""
    path = tmp_path / "mine.yaml"
    scpslab("new", str(path))
    assert path.read_text().startswith("kind: scenario\n")


def test_columns_of_comments_exist():
    columns = (ROOT / "docs" / "columns.md").read_text()
    for name in STARTS:
        for named in re.findall(r"--metric ([\w,]+)", (FOLDER / f"{name}.yaml").read_text()):
            assert all(f"`{column}`" in columns for column in named.split(","))


def test_the_help_names_all_commented_ones(scpslab):
    _, said, _ = scpslab("new", "--help")
    assert all(name in said for name in STARTS)
