"""A student's folder: nothing of the instructor's is in it, and its log is a chain."""

import os
import shutil
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from scpslab.core.errors import UsageError
from scpslab_course.cli import assignment as command
from scpslab_course.course import check
from scpslab_course.course import workspace as log
from scpslab_course.course.answers import Expected, blank, read_answers, read_practice, write_practice
from scpslab_course.course.assignment import find, load_assignment, names
from scpslab_course.course.folder import practice_variant
from scpslab_course.course.workspace import (
    LogError,
    RunState,
    find_workspace,
    late,
    open_workspace,
    plan_start,
    write_start,
)
from tests import golden
from tests.cases import changed, refusal

AT = "2026-11-22T21:00:00Z"


@pytest.mark.parametrize("name", names())
def test_no_file_of_the_instructor_is_handed_out(name):
    folder = find(name)
    assignment = load_assignment(folder)
    started = plan_start(assignment, read_practice(assignment).variant)
    secret = {path.read_bytes() for path in (folder / "instructor").rglob("*") if path.is_file()}
    assert secret
    assert secret & set(started.values()) == set()
    assert [file for file in started if "instructor" in file or "solution" in file or "marking" in file] == []


def test_a_folder_without_the_instructor_s_part_is_enough_for_students(folder, assignment, marking, no_runs, tmp_path):
    variant = practice_variant(assignment, marking, no_runs)
    shutil.rmtree(folder / "instructor")
    mine = write_start(plan_start(assignment, variant), assignment, variant, tmp_path / "my folder", AT)
    files = (
        "answers.yaml assignment.yaml begin.py handout.html handout.md log.jsonl transfer.yaml variant.json write-up.md"
    )
    assert sorted(path.name for path in mine.folder.iterdir()) == files.split()
    mine.add(AT, "predict", "time", "3 s")
    lines = [(line.event, line.name, line.value) for line in open_workspace(mine.folder).log()]
    assert lines == [("start", "small", ""), ("predict", "time", "3 s")]


def test_an_existing_folder_is_not_touched(started, assignment):
    with pytest.raises(UsageError, match="found something already"):
        write_start(plan_start(assignment, started.variant), assignment, started.variant, started.folder, AT)


def test_links_are_not_handed_out(folder, assignment, marking, no_runs, tmp_path):
    (folder / "notes.md").symlink_to("/etc/passwd")
    with pytest.raises(UsageError, match="found a symbolic link"):
        plan_start(assignment, practice_variant(assignment, marking, no_runs))


def test_changed_scenarios_and_variants_are_told(started):
    for name, change, says in (
        ("transfer.yaml", ("100 kB", "1 kB"), "experiment with copies"),
        ("variant.json", ('"attempt": ', '"attempt": 1'), "changed after it was signed"),
    ):
        path = started.folder / name
        path.write_text(changed(path.read_text(), change))
        assert says in refusal(open_workspace, started.folder)
    assert "that you have started" in refusal(open_workspace, started.folder / "nothing")


@pytest.mark.parametrize("name", ["variant.json", "log.jsonl", "assignment.yaml", "practice.json"])
def test_a_pipe_among_the_files_is_refused(started, assignment, name):
    path = (assignment.folder if name == "practice.json" else started.folder) / name
    path.unlink(missing_ok=True)
    os.mkfifo(path)
    read = (
        (lambda: read_practice(assignment)) if name == "practice.json" else lambda: open_workspace(started.folder).log()
    )
    assert "found no ordinary file; expected" in refusal(read)


@pytest.mark.parametrize(("name", "state"), [("answers.yaml", check._answers), ("write-up.md", check._write_up)])
def test_a_pipe_in_the_place_of_an_answer_is_no_answer(started, name, state):
    (started.folder / name).unlink()
    os.mkfifo(started.folder / name)
    (found,) = state(started)
    assert (found.what, found.state) == (name, check.State.MISSING)
    assert found.says.startswith("found no ordinary file;")


@pytest.mark.parametrize(
    ("name", "state", "content"),
    [
        ("answers.yaml", check._answers, b"limit: @window\n"),
        ("write-up.md", check._write_up, "größer".encode("latin-1")),
    ],
)
def test_what_the_grader_cannot_read_is_not_handed_in_by_mistake(started, name, state, content):
    (started.folder / name).write_bytes(content)
    assert [finding.what for finding in state(started) if finding.holds] == [name]


def test_the_only_folder_below_is_found(started, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    assert str(find_workspace(None)) == "mine"
    shutil.copytree(started.folder, tmp_path / "other")
    with pytest.raises(UsageError, match="found 2 assignments: mine, other"):
        find_workspace(None)
    monkeypatch.chdir(started.folder)
    assert str(find_workspace(None)) == "."


def test_a_log_that_was_changed_is_found():
    content = b""
    for number in range(4):
        states = [RunState(scenario="transfer", finished=0, results="")]
        content = log.appended(content, "v", AT, "predict", f"p{number}", "1\n2", states)
    lines = content.splitlines(keepends=True)
    assert [line.number for line in log.read_log(content, "v")] == [1, 2, 3, 4]
    a_word, another_key = content.replace(b"p2", b"px"), content.replace(b'"number": 3', b'"number": 3, "more": 1')
    removed, moved = lines[:1] + lines[2:], [lines[0], lines[2], lines[1], lines[3]]
    joined = [b"".join(changed) for changed in (removed, moved, [*lines, lines[3]], lines[1:])]
    for spoilt in (a_word, another_key, *joined, content[:-5], content + b"x\n"):
        with pytest.raises(LogError):
            log.read_log(spoilt, "v")
    assert "found another digest" in refusal(log.read_log, content, "another variant", error=LogError)
    said = refusal(log.read_log, b"[]\n", "v", error=LogError)
    assert said == "line 1: found list"
    # What a chain cannot show: its last lines are gone.
    assert len(log.read_log(b"".join(lines[:2]), "v")) == 2


def test_two_commands_at_once_add_two_lines(started, monkeypatch):
    def slowly(*words):
        time.sleep(0.05)
        return replace_bytes(*words)

    replace_bytes = log.replace_bytes
    monkeypatch.setattr(log, "replace_bytes", slowly)
    with ThreadPoolExecutor(3) as pool:
        list(pool.map(lambda name: started.add(AT, "predict", name, "3 s"), ("time", "rates", "fastest")))
    assert sorted(line.name for line in started.log()[1:]) == ["fastest", "rates", "time"]


def test_a_full_disk_leaves_the_earlier_submission_whole(started, scpslab, monkeypatch, tmp_path):
    def half(path, content):
        with path.open("wb") as file:
            file.write(content[:2])
        raise OSError(28, "No space left on device")

    out = tmp_path / "mine.tar.gz"
    out.write_bytes(b"earlier")
    monkeypatch.setattr(command, "check", lambda _: [])
    monkeypatch.setattr(command.submission, "pack", lambda _: b"later")
    monkeypatch.setattr(Path, "write_bytes", half)
    code, _, said = scpslab("assignment", "submit", "--in", started.folder, "--out", out)
    assert (code != 0, "No space left" in said, out.read_bytes()) == (True, True, b"earlier")
    assert list(tmp_path.glob(".mine*")) == []


def test_a_log_without_the_line_of_the_start_is_told(started):
    def said() -> list[str]:
        found = [one for one in check.check(started) if one.what == "log.jsonl" and one.state is check.State.LOOK]
        return [one.says.partition(";")[0] for one in found]

    practice = write_practice(started.variant, Expected(predictions={}, answers={}))
    (started.folder / "practice.json").write_text(practice)
    assert said() == []
    (started.folder / "log.jsonl").write_bytes(b"")
    assert said() == ["found no line"]
    started.add(AT, "predict", "time", "3 s")
    assert said() == ['found a first line of "predict"']


def test_a_prediction_may_be_corrected_until_its_run_begins(started):
    for value in ("3 s", "4 s"):
        started.add(AT, "predict", "time", value)
    started.add(AT, "begin", started.assignment.before("time")[0])
    for name, value in (("time", "5 s"), ("nothing", "1")):
        started.add(AT, "predict", name, value)
    given = log.given_predictions(started.log(), started.assignment)
    assert {name: line.value for name, line in given.items()} == {"time": "4 s"}


def test_a_prediction_after_a_result_or_a_run_is_late():
    none, some = (RunState(scenario="transfer", finished=number, results="") for number in (0, 1))
    content = log.appended(b"", "v", AT, "predict", "a", "1", [none])
    content = log.appended(content, "v", AT, "predict", "b", "1", [some])
    content = log.appended(content, "v", AT, "run", "transfer", "", [some])
    content = log.appended(content, "v", AT, "predict", "c", "1", [none])
    lines = log.read_log(content, "v")
    assert [late(lines, number, ["transfer"]) for number in (1, 2, 4)] == [False, True, True]
    assert not late(lines, 4, ["other"])


def test_blank_answers_are_answers(assignment, started, tmp_path):
    file, path = assignment.file, tmp_path / "answers.yaml"
    found = read_answers(blank(file, started.variant.parameters).encode(), path)
    assert list(found.given) == list(file.answers)
    assert all("found no answer" in line for line in found.complaints(file))
    # Words of several lines stay comments.
    rate = file.variant["rate"].model_copy(update={"says": "The rate:\nof the link"})
    told = file.model_copy(update={"title": "A small\none", "variant": {**file.variant, "rate": rate}})
    assert list(read_answers(blank(told, {"rate": "1 Mbit/s"}).encode(), path).given) == list(file.answers)


@golden.each("answers.yaml")
def test_answers_of_another_form_are_told_with_their_line(case, assignment, tmp_path):
    found = list(read_answers(f"{case}\n".encode(), tmp_path / "answers.yaml").complaints(assignment.file))
    assert any(said.startswith(f"{tmp_path}/answers.yaml:1: ") for said in found)
    case.hold("\n".join(found), tmp_path)


def logged(*events):
    """A log with these events of the scenario `transfer`, and the digest of its results at each."""
    content = b""
    for event, results in events:
        state = RunState(scenario="transfer", finished=2, results=results)
        content = log.appended(content, "v", AT, event, "transfer", "", [state])
    return log.read_log(content, "v")


BEGUN, RUN, AGAIN, BEGUN_AGAIN = ("begin", ""), ("run", "a" * 64), ("run", "b" * 64), ("begin", "b" * 64)


@pytest.mark.parametrize(
    ("events", "is_interrupted", "results"),
    [
        ([BEGUN], True, None),
        ([BEGUN, RUN, BEGUN_AGAIN], True, "a" * 64),
        ([BEGUN, RUN], False, "a" * 64),
        ([("start", "")], False, None),
        ([RUN, AGAIN, BEGUN_AGAIN], True, "b" * 64),
    ],
)
def test_the_last_run_is_the_recorded_one_and_a_begin_without_it_was_interrupted(events, is_interrupted, results):
    assert log.was_interrupted(logged(*events), "transfer") == is_interrupted
    assert log.recorded_results(logged(*events), "transfer") == results
    assert not log.was_interrupted(logged(*events), "other")


def test_a_student_is_told_what_each_prediction_asks_and_which_words_there_are(started, scpslab):
    code, out, _ = scpslab("assignment", "predict", "--in", started.folder)
    assert code == 0
    for name, asked in started.assignment.file.predictions.items():
        assert f"{name}\n  {asked.question}\n" in out
    assert "one of " in out
    assert scpslab("assignment", "predict", "time", "--in", started.folder)[1].startswith("time\n")
    # Nothing of it is a prediction.
    assert [line.event for line in started.log()] == ["start"]
    for words in (("tiem",), ("", "5 s")):
        assert "found no prediction" in scpslab("assignment", "predict", *words, "--in", started.folder)[2]
