"""Options of earlier versions do what they did, and say what is typed today."""

import pytest
from typer.main import get_command

from scpslab.cli import app
from scpslab.cli.renamed import RENAMED, todays_words


@pytest.mark.parametrize(
    ("typed", "today"),
    [
        ("list --what topologies", "list topologies"),
        ("list --what=presets", "list presets"),
        ("doctor --json --engine host", "doctor --format=json --engine host"),
        ("verify last --wall 7200", "verify last --max-wall 7200"),
        ("clean --results --most=10GB", "clean --results --max-size=10GB"),
        ("assignment start first-steps --into mine", "assignment start first-steps --out mine"),
    ],
)
def test_an_old_option_is_todays_and_said_once(capsys, typed, today):
    assert todays_words(typed.split()) == today.split()
    assert capsys.readouterr().err == f"today this is: scpslab {today}\n"


def test_todays_words_and_those_of_other_commands_stay(capsys):
    for words in ([], ["list", "topologies"], ["run", "x", "--what", "--json"], ["list", ""]):
        assert todays_words(words) == words
    assert capsys.readouterr().err == ""


def test_an_old_option_does_what_todays_does(scpslab):
    code, out, err = scpslab("list", "--what", "presets")
    assert (code, out, "") == scpslab("list", "presets")
    assert err == "today this is: scpslab list presets\n"


@pytest.mark.parametrize("command", RENAMED)
def test_an_option_is_renamed_into_one_that_there_is(command):
    made = get_command(app.program([command])).commands[command]
    parts = [made, *getattr(made, "commands", {}).values()]
    known = {option for part in parts for parameter in part.params for option in parameter.opts}
    for old, today in RENAMED[command].items():
        assert not today or today.partition("=")[0] in known
        assert old not in known


@pytest.mark.parametrize(("value", "seconds"), [("90", 90), ("2 min", 120), ("1.5 h", 5400)])
def test_a_limit_on_the_wall_clock_is_in_seconds_or_has_a_unit(scpslab, monkeypatch, tmp_path, value, seconds):
    asked = []
    monkeypatch.setattr("scpslab.cli.verify.run_again", lambda *options: asked.append(options[4]) or [])
    (archive := tmp_path / "run.scpslab.tar.gz").touch()
    assert scpslab("verify", archive, "--max-wall", value)[0] == 0
    assert asked == [seconds]
