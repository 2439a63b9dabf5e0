"""Options and words that make no sense are answered in the words of all other errors."""

from __future__ import annotations

import pytest

AS_IT_COMES = "Leave the option out for one cell per core."


@pytest.mark.parametrize("value", ["0", "-1", "many", "1.5", "", "9" * 4000, "\u0663"])
@pytest.mark.parametrize("words", [["run", "fy97/fig04:kernel-demo"], ["verify", "last"]])
def test_a_number_of_jobs_that_is_none(scpslab, words, value):
    assert scpslab(*words, f"--jobs={value}") == (
        2,
        "",
        f'error: --jobs: found "{value}"; expected a whole number from 1 on. {AS_IT_COMES}\n',
    )


def test_an_unknown_command_gets_the_nearest_one(scpslab):
    code, _, err = scpslab("rnu", "fy97/fig04:kernel-demo")
    assert (code, err.startswith('error: scpslab: found no command "rnu"; expected one of doctor, ')) == (2, True)
    assert err.endswith("Did you mean run?\n")


def test_a_folder_where_no_files_can_be(scpslab):
    code, _, err = scpslab("run", "fy97/fig04:kernel-demo", "--out", "/proc/x")
    assert code == 3
    assert err.splitlines()[-1].startswith(
        "error: /proc/x: found a file system that keeps no files; expected at least "
    )


def test_a_scenario_in_place_of_an_archive(scpslab, tmp_path):
    (tmp_path / "b.yaml").write_text("kind: scenario\n")
    code, _, err = scpslab("verify", str(tmp_path / "b.yaml"))
    assert code == 5
    assert "found a file that is not gzipped, or is damaged; expected an archive" in err


def test_a_guest_larger_than_the_machine_is_refused_before_it_starts(scpslab, tmp_path):
    code, _, err = scpslab(
        "run", "fy97/fig04:kernel-demo", "--set", "limits.memory=900 GiB", "--out", str(tmp_path / "runs")
    )
    assert code == 3
    assert "error: limits.memory: found a guest of 921600 MiB; expected at most the " in err
    assert "Lower it, or run the scenario on a larger machine." in err
