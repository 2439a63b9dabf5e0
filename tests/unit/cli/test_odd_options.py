"""Options and words that make no sense are answered in the words of all other errors."""

import re

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


FOLDER = r"error: /proc/x: found a file system that keeps no files; expected at least "
GUEST = r"error: limits\.memory: found a guest of 921600 MiB; expected at most the .* Lower it, or run the scenario on "


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (
            ["rnu", "fy97/fig04:kernel-demo"],
            2,
            r'^error: scpslab: found no command "rnu"; expected one of doctor, .* Did you mean run\?\n$',
        ),
        (["run", "fy97/fig04:kernel-demo", "--out", "/proc/x"], 3, f"(^|\n){FOLDER}[^\n]*\n$"),
        (["verify", "b.yaml"], 5, "found a file that is not gzipped, or is damaged; expected an archive"),
        (["run", "fy97/fig04:kernel-demo", "--set", "limits.memory=900 GiB", "--out", "runs"], 3, GUEST),
    ],
    ids=["unknown command", "a folder where no files can be", "scenario for an archive", "guest above the machine"],
)
def test_what_cannot_be_is_refused_before_anything_starts(
    scpslab, in_this_process, tmp_path, monkeypatch, words, code, said
):
    monkeypatch.setattr("scpslab.engine.appliance.native.may_trace", lambda: 0)
    (tmp_path / "b.yaml").write_text("kind: scenario\n")
    monkeypatch.chdir(tmp_path)
    found, _, err = scpslab(*words)
    assert found == code
    assert re.search(said, err)
