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


@golden.each("commands that start nothing")
def test_what_cannot_be_is_refused_before_anything_starts(case, scpslab, in_this_process, tmp_path, monkeypatch):
    monkeypatch.setattr("scpslab.engine.appliance.native.may_trace", lambda: 0)
    (tmp_path / "b.yaml").write_text("kind: scenario\n")
    monkeypatch.chdir(tmp_path)
    found, _, err = scpslab(*case.split())
    case.hold(re.sub(r"the \d+ MiB of", "the MEMORY of", err) + f"exit code {found}", tmp_path)
