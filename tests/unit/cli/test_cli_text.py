"""Text of scenarios, reasons and cells is printed and drawn as it stands, whatever it looks like. Names of what a
command makes: characters that cannot be printed are refused before anything is made. Options and words that make no
sense are answered in the words of all other errors. Builds say when a step begins, and how long it took.
"""

import io
import re
import shlex

import pytest
from rich.table import Table

from scpslab.analysis.figures.canvas import new_panels, save
from scpslab.analysis.figures.recipe import Words
from scpslab.cli.app import complain
from scpslab.cli.plan import validate
from scpslab.cli.progress import ConsoleProgress
from scpslab.cli.tables import plain_console, table_console
from scpslab.core.errors import ScenarioError
from scpslab.lab.records import Status
from scpslab.running.events import CampaignStarted, CellDone, RunInterrupted, RunStarted
from scpslab.setup.job import Job
from tests import golden
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
    with new_panels(Words(title, title, title)) as (figure, (axes,)):
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


COMMANDS = {
    "export": ("export", "last", "--out"),
    "grade": ("grade", "a.submission.tar.gz", "--out"),
    "leaderboard": ("grade", "a.submission.tar.gz", "--leaderboard"),
    "texts": ("grade", "a.submission.tar.gz", "--texts"),
    "review": ("grade", "a.submission.tar.gz", "--review"),
    "gradescope": ("course", "gradescope", "first-steps", "--wheel", "a.whl", "--roster", "r.csv", "--out"),
    "submit": ("assignment", "submit", "--out"),
    "course": ("course", "new"),
    "new": ("new",),
    "run": ("run", "links/transfer", "--out"),
    "keep": ("verify", "a.tar.gz", "--keep"),
}


@pytest.mark.parametrize("command", COMMANDS.values(), ids=COMMANDS)
@pytest.mark.parametrize("name", ["a\nb", "a\x1b[31m", "a\u202eb"], ids=["line feed", "escape", "direction"])
def test_a_name_that_cannot_be_printed_is_refused(scpslab, tmp_path, monkeypatch, command, name):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.tar.gz").write_text("")
    code, _, said = scpslab(*command, name)

    assert code != 0
    assert "found characters that cannot be printed; expected" in said
    assert [path.name for path in tmp_path.iterdir()] == ["a.tar.gz"]


@pytest.mark.parametrize(("value", "seconds"), [("90", 90), ("2 min", 120), ("1.5 h", 5400)])
def test_a_limit_on_the_wall_clock_is_in_seconds_or_has_a_unit(scpslab, monkeypatch, tmp_path, value, seconds):
    asked = []
    monkeypatch.setattr("scpslab.cli.run.run_again", lambda *options: asked.append(options[4]) or [])
    (archive := tmp_path / "run.scpslab.tar.gz").touch()
    assert scpslab("verify", archive, "--max-wall", value)[0] == 0
    assert asked == [seconds]


@golden.each("commands that start nothing")
def test_what_cannot_be_is_refused_before_anything_starts(case, scpslab, in_this_process, tmp_path, monkeypatch):
    monkeypatch.setattr("scpslab.engine.appliance.may_trace", lambda: 0)
    (tmp_path / "b.yaml").write_text("kind: scenario\n")
    (tmp_path / "link.yaml").symlink_to("nowhere.yaml")
    monkeypatch.chdir(tmp_path)
    found, out, err = scpslab(*shlex.split(case.replace("HUGE", "9" * 4000)))
    assert out == ""
    case.hold(
        re.sub(r"the \d+ MiB of", "the MEMORY of", err).replace("9" * 4000, "HUGE") + f"exit code {found}", tmp_path
    )
    assert sorted(path.name for path in tmp_path.iterdir()) == ["b.yaml", "link.yaml"]
    assert (tmp_path / "b.yaml").read_text() == "kind: scenario\n"


@pytest.mark.parametrize("is_broken", [False, True])
def test_a_step_says_that_it_begins_and_how_long_it_took(tmp_path, is_broken):
    said = []
    job = Job("kernel", tmp_path, tmp_path / "target", tmp_path / "log", said.append)

    def work():
        with job.step("compile"):
            assert said == ["kernel: compile …"]
            if is_broken:
                raise OSError("full")

    if is_broken:
        with pytest.raises(OSError, match="full"):
            work()
    else:
        work()
    assert said[1].startswith(f"kernel: compile: {'ended after ' if is_broken else ''}0.")
