"""Options and words that make no sense are answered in the words of all other errors."""

import re
import shlex

import pytest

from tests import golden


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
    (tmp_path / "link.yaml").symlink_to("nowhere.yaml")
    monkeypatch.chdir(tmp_path)
    found, out, err = scpslab(*shlex.split(case.replace("HUGE", "9" * 4000)))
    assert out == ""
    case.hold(
        re.sub(r"the \d+ MiB of", "the MEMORY of", err).replace("9" * 4000, "HUGE") + f"exit code {found}", tmp_path
    )
    assert sorted(path.name for path in tmp_path.iterdir()) == ["b.yaml", "link.yaml"]
    assert (tmp_path / "b.yaml").read_text() == "kind: scenario\n"
