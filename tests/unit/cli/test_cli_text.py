"""Text of scenarios, reasons and cells is printed and drawn as it stands, whatever it looks like."""

import io

import pytest
from rich.table import Table

from scpslab.analysis.figures.canvas import Words, new_figure, save
from scpslab.cli.app import complain
from scpslab.cli.progress import ConsoleProgress
from scpslab.cli.tables import plain_console, table_console
from scpslab.cli.validate import validate
from scpslab.core.errors import ScenarioError
from scpslab.lab.records import Status
from scpslab.running.events import CampaignStarted, CellDone, RunInterrupted, RunStarted
from tests.cases import document

EVIL = ["[/b] closes nothing", "[red]not red[/red]", ":smile:", "a [link=x] b"]
# A title for the window, a bell, an erased screen by one octet, and text that runs from right to left.
OBEYED, HARMLESS = "a\x1b]0;b\x07c\x9b2J\u202ed", "a\\x1b]0;b\\x07c\\x9b2J\\u202ed"
SCENARIO = document("scenario with an escape")


@pytest.fixture
def shown():
    """What a console prints, and how progress shows events there."""

    def show(make, work) -> str:
        console = make()
        console.file = io.StringIO()
        work(console)
        return console.file.getvalue()

    return show


def progress(*events):
    """Shows events."""

    def work(console):
        show = ConsoleProgress(console)
        for event in events:
            show(event)

    return work


@pytest.mark.parametrize("make", [plain_console, table_console])
@pytest.mark.parametrize(("text", "expected"), [*((evil, evil) for evil in EVIL), (OBEYED, HARMLESS)])
def test_consoles_print_text_as_it_is_and_show_what_a_terminal_would_obey(shown, make, text, expected):
    table = Table(text, title=text)
    table.add_row(text)
    found = shown(make, lambda console: (console.print(text), console.print(table)))

    assert found.count(expected) == 4
    assert "\x1b" not in found


@pytest.mark.parametrize("evil", EVIL)
def test_progress_shows_names_and_reasons_as_they_are(shown, evil, tmp_path):
    done = CellDone("r1", Status("failed", evil, virtual_s=1.0), cached=False)
    begun = (CampaignStarted("two", tmp_path, (evil,), 2), RunStarted(evil, tmp_path, "virtual", ("r1",)))

    assert evil in shown(plain_console, progress(*begun, done))


def test_an_interrupted_run_says_what_is_kept_and_where(shown, tmp_path):
    done = CellDone("r1", Status("completed", virtual_s=1.0), cached=False)
    begun = RunStarted("small", tmp_path, "virtual", ("r1", "r2", "r3"))
    found = shown(plain_console, progress(begun, done, RunInterrupted("small", tmp_path)))

    assert found.splitlines()[-1] == f"interrupted: 1 of 3 cells are finished, and kept in {tmp_path}"


@pytest.mark.parametrize("title", ["$", "$\\nothing$", "5 $ and 6 $"])
def test_pictures_show_a_dollar_as_a_dollar(tmp_path, title):
    with new_figure(Words(title, title, title)) as (figure, axes):
        axes.plot([0, 1], [0, 1], label=title)
    (path,) = save(figure, tmp_path, "picture", ("png",))

    assert path.stat().st_size > 0


def test_errors_and_validate_show_what_a_terminal_would_obey(tmp_path, capsys):
    complain(ScenarioError(f"a.yaml:1: {OBEYED}"))
    (path := tmp_path / "one.yaml").write_text(SCENARIO)
    validate(str(path))
    said = capsys.readouterr()
    assert said.err == f"error: a.yaml:1: {HARMLESS}\n"
    assert "one: a\\x1b[31mb: 1 cell" in said.out
