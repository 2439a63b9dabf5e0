"""A submission that cannot be graded says why, has no score, and does nothing. An interrupted run is told from a
replayed log; before bytes are said to be edited, the machine gives them twice; what no run gives is named, and
accuses nobody else.
"""

import dataclasses
import gzip
import json
import os
import pickle
import tarfile
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from scpslab.core.errors import LabError
from scpslab.runs.run import Manifest
from scpslab_course.cli.grade import _submitters
from scpslab_course.course import model, variant
from scpslab_course.course.answers import Expected
from scpslab_course.course.assignment import load_marking
from scpslab_course.course.folder import practice_variant
from scpslab_course.course.runs import ENDLESS, Outcome
from scpslab_course.course.variant import Secret
from scpslab_course.grading import compare, grader, submission
from scpslab_course.grading.compare import Rerun, against_plans, against_rerun, against_runs, rerun_alike
from scpslab_course.grading.formats import FORMATS, Facts, comment
from scpslab_course.grading.grade import REMARKS, Code, Grade, Status
from tests.unit.course.test_workspaces import logged
from tests.unit.grading.conftest import entry

FACTS = Facts("Satellite networks", "2026w")


@pytest.fixture(autouse=True)
def in_this_process(monkeypatch):
    """Submissions are read here: tests/processes tests the child in which they are."""

    @contextmanager
    def here(work, _limits):
        answers = work()
        yield lambda value: json.loads(json.dumps(answers.send(value)))

    monkeypatch.setattr(grader, "in_child", here)


@pytest.fixture
def without_runs(monkeypatch):
    """Submissions whose archive of runs is not looked at."""
    monkeypatch.setattr(submission.Submission, "runs", lambda _: {})
    monkeypatch.setattr(grader.compare, "results_of", lambda *_: {})


def graded(path, settings):
    """The grade of one file; the grader itself must not have broken."""
    (found,) = grader.grade([path], settings)
    assert grader.BROKEN not in found.reason
    return found


# Reading says no to each of them in test_submissions.py.
RAW = {
    "path traversal": entry("../../evil"),
    "hard link": entry("files/hard", type=tarfile.LNKTYPE, linkname="../secret"),
    "unknown member": entry("pickle.bin", 1),
    "one large member": entry("files/large", 65 << 20),
}


@pytest.mark.parametrize("what", RAW)
def test_a_hostile_archive_is_refused_and_leaves_nothing(what, settings, members, hand_in, tmp_path):
    path = hand_in(members, raw=[RAW[what]])
    before = sorted(tmp_path.rglob("*"))
    found = graded(path, settings)
    assert found.status is Status.UNGRADED
    assert str(path) in found.reason
    assert "expected" in found.reason
    assert sorted(tmp_path.rglob("*")) == before


def test_bombs_are_refused_before_they_are_unpacked(settings, members, hand_in):
    """A gzip of zeros, and an archive of runs that is one: 20 kB each for 20 MB and more."""
    inner = gzip.compress(b"\0" * (100 << 20), 9)
    bomb = hand_in({}, "bomb.submission.tar.gz")
    bomb.write_bytes(gzip.compress(b"\0" * (80 << 20), 9))

    assert graded(bomb, settings).status is Status.UNGRADED
    assert graded(hand_in(members | {submission.ARCHIVE: inner}), settings).status is Status.UNGRADED


class Evil:
    """Whoever unpickles it writes a file."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return (open, (str(self.path), "w"))


@pytest.mark.parametrize("member", ["variant.json", "log.jsonl", "answers.yaml", "runs.scpslab.tar.gz"])
def test_a_pickle_is_never_opened(member, settings, members, hand_in, tmp_path):
    evil = tmp_path / "opened"
    assert graded(hand_in(members | {member: pickle.dumps(Evil(evil))}), settings).status is Status.UNGRADED
    assert not evil.exists()


def test_a_missing_file_a_folder_and_a_pipe_end_nothing(settings, tmp_path):
    os.mkfifo(tmp_path / "pipe")
    found = grader.grade([tmp_path / "none", tmp_path, tmp_path / "pipe"], settings)
    assert [one.status for one in found] == [Status.UNGRADED] * 3


def test_a_variant_that_is_not_the_issued_one_is_not_graded(settings, members, hand_in, issued, assignment, course):
    mine = issued("anna")
    other = dataclasses.replace(mine, parameters=dict(mine.parameters) | {"seed": 1})
    made = {
        "signed with the key": variant.signed(mine, Secret(bytes(32))),
        "practice": practice_variant(assignment, load_marking(assignment), None),
        "changed after it was signed": other,
        "the secret does not give": variant.signed(other, course.secret()),
    }
    for says, one in made.items():
        assert says in graded(hand_in(members | {"variant.json": variant.write(one)}), settings).reason


def test_without_a_grade_no_format_has_a_zero(settings, members, hand_in):
    """Every format says why, or leaves the student out; a score of 0 would look like one."""
    found = graded(hand_in(members), settings)
    for name, kind in FORMATS.items():
        text = kind.write([found], FACTS)
        assert '"score": 0' not in text, name
        assert "Grade :=>>" not in text, name
    assert found.reason in json.loads(FORMATS["gradescope"].write([found], FACTS))["output"]


def test_an_error_of_the_grader_costs_nobody_a_grade(settings, members, hand_in, without_runs, monkeypatch):
    monkeypatch.setattr(grader, "runs_of", lambda *_: 1 // 0)
    (found,) = grader.grade([hand_in(members)], settings)
    assert found.status is Status.UNGRADED
    assert grader.BROKEN in found.reason


def test_yaml_that_grows_is_refused(settings, members, hand_in, without_runs):
    doubled = (b"%c: &%c [*%c, *%c]\n" % (letter, letter, letter - 1, letter - 1) for letter in range(98, 122))
    bombs = [b"a: &a [x, x]\n" + b"".join(doubled), b"[" * 5000, b"x" * (300 << 10), b"bdp: " + b"9" * 100_000 + b"\n"]
    bombs += [b"bdp: !!python/object/apply:os.system [echo]\n", b"bdp: 1\nbdp: 2\n"]
    bombs += [b'bdp: "\\ud800"\n', b'bdp: "\\ud83d\\ude00"\n', b'"\\ud800": 1\n']
    for bomb in bombs:
        found = graded(hand_in(members | {"answers.yaml": bomb}), settings)
        assert found.status is Status.UNGRADED, bomb[:40]
        assert "answers.yaml" in found.reason


@pytest.mark.parametrize(
    ("known", "held"),
    [({}, ["a", "b"]), ({"a": "anna"}, ["b"]), ({"b": "anna"}, ["a"]), ({"a": "anna", "b": "anna"}, [])],
)
def test_of_two_with_one_variant_those_of_nobody_known_are_held(issued, known, held):
    paths = [Path("a"), Path("b")]
    submitters = {Path(file): student for file, student in known.items()}
    grades = [Grade(path, sha256=path.name * 64) for path in paths]

    found = grader._compared(grades, dict.fromkeys(paths, issued("anna")), submitters)

    assert [one.path.name for one in found if one.status is Status.HELD] == held
    assert {finding.code for one in found for finding in one.findings} <= {Code.OTHER_VARIANT}
    # Who marks reads of the other file, and the student does not.
    assert ["found the same variant in " in " ".join(one.said) for one in found] == [file in held for file in "ab"]
    assert [comment(one) for one in found] == ["", ""]


def test_a_variant_of_a_group_before_and_after_its_members_changed_is_one(issued):
    paths = [Path("a"), Path("b")]
    before, after = (dataclasses.replace(issued("g1"), members=ids) for ids in (("bo", "di"), ("bo", "di", "eva")))
    grades = [Grade(path, sha256=path.name * 64) for path in paths]

    found = grader._compared(grades, {paths[0]: before, paths[1]: after}, dict(zip(paths, ("bo", "eva"), strict=True)))

    assert [one.status for one in found] == [Status.HELD] * 2


def test_a_file_without_a_line_among_the_submitters_is_named(tmp_path, capsys):
    who = tmp_path / "who.csv"
    who.write_text("file,student\na.tar.gz,anna\n")
    anna, nobody = tmp_path / "a.tar.gz", tmp_path / "b.tar.gz"

    assert _submitters([anna, nobody], None, who) == ({anna: "anna"}, {})

    said = capsys.readouterr().err
    assert f"warning: {who}: found no line of {nobody}; expected one" in said
    assert str(anna) not in said


@pytest.mark.parametrize(("before", "shares"), [(0.0, [0.0, 0.0, 0.0, 0.0]), (0.5, [2 * 0.5, 0.0, None, None])])
def test_a_program_that_does_not_answer_costs_one_trial_s_limit(monkeypatch, settings, before, shares):
    outcomes = [Outcome(before, "50%"), Outcome(0.0, f"0%, {ENDLESS}")]
    trial = model.Trial(scenario="small", file="policy.py", says="A path.", share="1 + 0", points=2)
    trials = [SimpleNamespace(name=f"t{number}", trial=trial) for number in range(4)]
    monkeypatch.setattr(grader, "planned", lambda *_: trials)
    monkeypatch.setattr(grader, "planned_hidden", lambda *_: [])
    monkeypatch.setattr(grader, "carry_out", lambda *_: outcomes.pop(0))
    variant = SimpleNamespace(parameters={}, digest="d" * 64)
    bound = SimpleNamespace(assignment=None, marking=None, variant=variant)

    found = list(grader._trials(bound, {"policy.py": b""}, settings, []))

    assert [part.earned for part in found] == shares
    assert outcomes == []
    assert found[-1].comment.endswith("in trial t1")


MINE, OTHER = "a" * 64, "b" * 64
RUNS = {"transfer": SimpleNamespace(digest=SimpleNamespace(files={"results.csv": MINE}))}


def said(*events):
    return [finding.code for finding in against_runs(logged(*events), RUNS, {})]


@pytest.mark.parametrize(
    ("events", "codes"),
    [
        ([("begin", ""), ("run", MINE)], []),
        ([("run", MINE)], []),
        # Begun once more when all cells were there, and ended by the student.
        ([("begin", ""), ("run", MINE), ("begin", MINE)], []),
        ([("begin", "")], [Code.INTERRUPTED_RUN]),
        ([("begin", ""), ("run", OTHER), ("begin", OTHER)], [Code.INTERRUPTED_RUN]),
        ([("start", "")], [Code.REPLAYED_LOG]),
        ([("begin", ""), ("run", OTHER)], [Code.REPLAYED_LOG]),
    ],
)
def test_only_a_run_without_its_end_was_interrupted(events, codes):
    assert said(*events) == codes
    # The one is remarked upon, the other holds the grade.
    assert REMARKS & {Code.INTERRUPTED_RUN, Code.REPLAYED_LOG} == {Code.INTERRUPTED_RUN}


ONE = Rerun({"cells/r1/status.json": "a" * 64, "results.csv": "b" * 64}, (), (), ("r1",), manifest=Manifest())


@pytest.mark.parametrize("digests", [{}, {"cells/r1/status.json": "c" * 64, "results.csv": "b" * 64}])
def test_two_runs_that_differ_are_this_machine_s_fault(digests):
    rerun_alike({"large": ONE}, {"large": replace(ONE, manifest=Manifest(seed=1))})
    with pytest.raises(LabError, match="not at fault"):
        rerun_alike({"large": ONE}, {"large": replace(ONE, digests=digests)})


ROW = {"cell": "r1", "goodput_bps": "5000", "note": ""}
OF_ANOTHER_CELL = {"cell": "r2", "goodput_bps": "", "note": "", "rtt_ms": "7"}


@pytest.mark.parametrize(
    ("rows", "says"),
    [
        ([ROW | {"rtt_ms": ""}, OF_ANOTHER_CELL], None),
        ([OF_ANOTHER_CELL, ROW], None),
        ([ROW], None),
        ([ROW | {"mine": "81.37"}], "mine = 81.37 in cell r1 (a run gives no such column)"),
        ([ROW | {"goodput_bps": "4"}], "goodput_bps = 4 in cell r1 (a run gives 5000)"),
        ([{"cell": "r1", "goodput_bps": "5000"}], "note =  in cell r1 (a run gives )"),
        ([OF_ANOTHER_CELL], "no line of cell r1"),
        ([{"cell": "r1", "goodput_bps": "81"}, ROW], "2 lines for 1 cells"),
        ([ROW, {"cell": "mine", "goodput_bps": "81"}], "2 lines for 1 cells"),
    ],
)
def test_what_no_run_gives_is_named_in_a_table(monkeypatch, rows, says):
    """The grader has run one of two cells."""
    monkeypatch.setattr(compare, "other_rules", lambda *_: "")
    mine = Rerun({}, [ROW], [], ("r1",), Manifest())
    run = SimpleNamespace(digest=SimpleNamespace(files={}), plans={"r1": 1, "r2": 2}, manifest=Manifest())
    found = list(against_rerun({"transfer": run}, {"transfer": rows}, {"transfer": mine}))
    assert [(one.code, says in one.says) for one in found] == ([(Code.EDITED_RESULTS, True)] if says else [])


def test_a_run_of_a_scenario_that_the_assignment_does_not_have_is_named():
    (found,) = against_plans({"answer bdp": None}, {})
    assert (found.code, found.holds) == (Code.SWAPPED_PLAN, True)
    assert 'found a run of "answer bdp"' in found.says


def test_what_a_student_writes_into_a_table_accuses_nobody(settings, members, hand_in, monkeypatch):
    path = hand_in(members | {"write-up.md": b"It was 62.504 kB.\n"})
    handed_in = submission.read(path)
    right = Expected(predictions={"time": 7.8125, "rates": 501.73}, answers={})
    monkeypatch.setattr(grader.written, "expected", lambda *_: right)
    table = {"answer bdp": [{"cell": "r1", "goodput_bps": "62.504"}]}
    opened = grader._Opened(handed_in, settings.bind(path, handed_in.variant), {}, table, {}, [])

    found = grader._graded(opened, {}, [])

    assert found.numbers == {"prediction time": 7.8125, "prediction rates": 501.73}
    # It is the student's own number all the same.
    assert found.foreign == ()
