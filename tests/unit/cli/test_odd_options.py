"""Options and words that make no sense are answered in the words of all other errors."""

import re

import pytest

from tests import golden

AS_IT_COMES = "Leave the option out for one cell per core."


@pytest.mark.parametrize("value", ["0", "-1", "many", "1.5", "", "9" * 4000, "\u0663"])
@pytest.mark.parametrize("words", [["run", "fy97/fig04:kernel-demo"], ["verify", "last"]])
def test_a_number_of_jobs_that_is_none(scpslab, words, value):
    assert scpslab(*words, f"--jobs={value}") == (
        2,
        "",
        f'error: --jobs: found "{value}"; expected a whole number from 1 on. {AS_IT_COMES}\n',
    )


@pytest.mark.parametrize(("value", "seconds"), [("90", 90), ("2 min", 120), ("1.5 h", 5400)])
def test_a_limit_on_the_wall_clock_is_in_seconds_or_has_a_unit(scpslab, monkeypatch, tmp_path, value, seconds):
    asked = []
    monkeypatch.setattr("scpslab.cli.verify.run_again", lambda *options: asked.append(options[4]) or [])
    (archive := tmp_path / "run.scpslab.tar.gz").touch()
    assert scpslab("verify", archive, "--max-wall", value)[0] == 0
    assert asked == [seconds]


@golden.each("commands that start nothing")
def test_what_cannot_be_is_refused_before_anything_starts(case, scpslab, in_this_process, tmp_path, monkeypatch):
    monkeypatch.setattr("scpslab.engine.appliance.native.may_trace", lambda: 0)
    (tmp_path / "b.yaml").write_text("kind: scenario\n")
    monkeypatch.chdir(tmp_path)
    found, _, err = scpslab(*case.split())
    case.hold(re.sub(r"the \d+ MiB of", "the MEMORY of", err) + f"exit code {found}", tmp_path)
