"""Files of every kind complain alike: line, key, what was found, what was expected, what to do; all that is wrong with
a file at once. Complaints that name the words which would have been right.
"""

import os
import re
from dataclasses import dataclass
from pathlib import Path

import pytest

from scpslab import scenario
from scpslab.analysis.claims.load import load as load_claims
from scpslab.analysis.figures.plots import load as load_recipe
from scpslab.core.choices import one_of
from scpslab.core.problems import Problem
from scpslab.documents.document import Places, load
from scpslab.documents.yaml_lines import read_value
from scpslab.scenario.campaign import load_campaign
from scpslab_course.course.assignment import FORM as ASSIGNMENT_FORM
from scpslab_course.course.assignment import MARKING_FORM
from scpslab_course.course.folder import FORM as COURSE_FORM
from scpslab_course.course.folder import CourseFile
from scpslab_course.course.model import AssignmentFile, MarkingFile
from tests import golden
from tests.cases import changed, document, refusal

LINE = re.compile(r"[^ ]+\.yaml(:\d+)?: [\w.\[\]-]+: found .+; expected .+[.?]")


@dataclass(frozen=True)
class Kind:
    """A kind of file: how it is loaded, a right one, and a line of it at which a key is spoilt."""

    load: object
    right: str
    key: str
    wrong_key: str
    wrong_type: tuple[str, str]
    type_said: str


KINDS = {
    "scenario": Kind(
        lambda path: scenario.load(str(path)),
        (Path(__file__).parents[2] / "data" / "small-scenario.yaml").read_text(),
        "title",
        "titel",
        ("version: 1", "version: [1]"),
        "2: version: found a list; expected 1",
    ),
    "campaign": Kind(
        lambda path: load_campaign(str(path)),
        document("campaign"),
        "variant",
        "variants",
        ("variant: [test]", "variant: test"),
        '6: runs[1].variant: found "test"; expected a list',
    ),
    "claims": Kind(
        load_claims,
        document("claims"),
        "weight",
        "wieght",
        ("year: 1998", 'year: "1998"'),
        '4: year: found "1998"; expected a whole number',
    ),
    "figure": Kind(
        load_recipe,
        document("figure"),
        "axis",
        "axes",
        ("max: 5", 'max: "5"'),
        '11: y.max: found "5"; expected a number',
    ),
    "assignment": Kind(
        lambda path: load(path, ASSIGNMENT_FORM, AssignmentFile),
        document("assignment"),
        "question",
        "qustion",
        ("points: 2", 'points: "2"'),
        '15: answers.bdp.points: found "2"; expected a number',
    ),
    "marking": Kind(
        lambda path: load(path, MARKING_FORM, MarkingFile),
        document("marking"),
        "comment",
        "coment",
        ("share: 0.25", "share: 1.25"),
        "11: answers.bdp.wrong[1].share: found 1.25; expected at most 1",
    ),
    "course": Kind(
        lambda path: load(path, COURSE_FORM, CourseFile),
        document("course"),
        "assignments",
        "asignments",
        ("term: 2026w", "term: 2026"),
        "5: term: found 2026; expected text",
    ),
}
# Words of a table for others.
SHORT = {
    "ORDER": "checks: [{kind: order, metric: transfer_s, rising: [near]}]",
    "COUNT": "checks: [{kind: completion, of: near, paper_count: [1], at_least: 1, because: So it is.}]",
    "SERIES": "axis: ber\npaper: [{label: TCP, source: Fig 1, points:",
    "CHOICE": 'unit: s}\n  which: {kind: choice, question: "Which one?", choices: {a: The first.}}',
    "TOO-LONG": "A" * 500,
}
each_kind = pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)


def complaints(kind, path):
    lines = refusal(kind.load, path).splitlines()
    assert [line for line in lines if not LINE.fullmatch(line)] == []
    return [line.removeprefix(f"{path}:") for line in lines]


@pytest.fixture
def path(tmp_path):
    return tmp_path / "some.yaml"


@each_kind
def test_a_right_file_loads(kind, path):
    path.write_text(kind.right)
    kind.load(path)


@each_kind
def test_an_unknown_key_has_its_line_and_its_neighbour(kind, path):
    path.write_text(text := kind.right.replace(f"{kind.key}:", f"{kind.wrong_key}:", 1))
    number = 1 + text[: text.index(f"{kind.wrong_key}:")].count("\n")
    (said,) = [line for line in complaints(kind, path) if "unknown key" in line]
    assert re.match(rf'{number}: \S*{kind.wrong_key}: found the unknown key "{kind.wrong_key}"; expected one of ', said)
    assert said.endswith(f"Did you mean {kind.key}?")


@each_kind
@pytest.mark.parametrize("value", ["true", "1.0", '"1"', "0"])
def test_only_the_number_1_is_version_1(kind, path, value):
    path.write_text(changed(kind.right, ("version: 1", f"version: {value}")))
    assert complaints(kind, path) == [f"2: version: found {value}; expected 1. Correct the value."]


@each_kind
def test_a_newer_version_says_which_one_is_known_and_nothing_of_keys_that_it_may_have(kind, path):
    path.write_text(changed(kind.right, ("version: 1", "version: 2")) + "colour: red\n")
    known = "2: version: found 2; expected at most 1, what this scpslab knows."
    assert complaints(kind, path) == [f"{known} It is for a newer scpslab: use that one."]


@golden.each("documents of all kinds", "case of old new")
def test_what_has_another_length_or_pattern_is_told_which_one_is_expected(case, of, old, new, path, tmp_path):
    for short, whole in SHORT.items():
        new = new.replace(short, whole)
    path.write_text(changed(KINDS[of].right, (old, new)))
    complaints(KINDS[of], path)
    case.hold(refusal(KINDS[of].load, path), tmp_path)


@each_kind
def test_a_wrong_type_has_its_line_and_what_is_meant_and_several_mistakes_are_said_at_once(kind, path):
    path.write_text(changed(kind.right, kind.wrong_type) + "colour: red\n")
    wrong_type, unknown = complaints(kind, path)
    assert wrong_type.startswith(kind.type_said)
    assert unknown.startswith(f'{len(path.read_text().splitlines())}: colour: found the unknown key "colour"')


# Numbers that are too long to be shown or held, and a tag that is not what it says.
NOT_HELD = ["!!null x", f"0x{'f' * 6000}", f"-0b1{'0' * 2000}", f"1{':1' * 3000}", "9" * 5000, f"0.{'0' * 400}1"]


@each_kind
@pytest.mark.parametrize("value", NOT_HELD)
def test_numbers_that_no_computer_holds_are_refused(kind, path, value):
    path.write_text(f"{kind.right}more: {value}\n")
    assert re.search(
        "found (a whole number of hundreds of digits|0.0+1?…?, so small|the unknown key)", refusal(kind.load, path)
    )


@each_kind
@golden.each("no plain YAML", "case more")
def test_what_is_no_plain_yaml_is_refused_with_its_line(kind, path, case, more):
    path.write_text(f"{kind.right}{more}\n")
    first = kind.right.count("\n") + 1
    at, line, said = refusal(kind.load, path).split(":", 2)
    assert (at, int(line) - first in (0, 1)) == (str(path), True)
    case.hold(said.strip())


def test_plain_numbers_are_numbers():
    values = [read_value(text) for text in ("0", "-5", "+7", "10", "1.50", "1e-5", "-.5", "12:3x", "08", "'010'")]
    assert values == [0, -5, 7, 10, 1.5, 1e-5, -0.5, "12:3x", "08", "010"]


@each_kind
def test_a_file_that_is_no_mapping_is_told_what_it_is_meant_to_be_and_where_that_is_described(kind, path):
    path.write_text("- a\n")
    said = refusal(kind.load, path)
    assert re.search(r"some\.yaml: found no mapping; expected keys such as kind, \w+.*\. See docs/", said)
    page = said.rpartition("See ")[2].removesuffix(".").partition("#")[0]
    assert (Path(__file__).parents[3] / page).is_file()


@each_kind
@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda path: path.write_bytes(b"kind: \xff\n"), r"found .*not UTF-8; expected text"),
        (os.mkfifo, r"found (no ordinary file|no such file); expected "),
        (lambda path: path.symlink_to("/dev/zero"), r"found (no ordinary file|no such file); expected "),
        (
            lambda path: (path.touch(), os.truncate(path, (64 << 20) + 1)),
            r"found 67108865 bytes, more than 67108864 bytes; expected ",
        ),
        # Of nothing but comments: each character takes microseconds.
        (lambda path: path.write_text("#\n" * (5 << 20)), r"found 10485760 characters; expected at most 8388608\."),
    ],
    ids=["no text", "a pipe", "a device", "too large", "too long"],
)
def test_what_is_no_text_or_may_never_end_is_not_read(kind, path, make, said):
    make(path)
    assert re.search(rf'some\.yaml"?: {said}', refusal(kind.load, path))


FIGURES = ["fy97/fig14", "fy97/fig04", "fy97/fig24"]


@pytest.mark.parametrize(
    ("word", "choices", "meant"),
    [
        pytest.param("fy97/fig4", FIGURES, "fy97/fig04", id="a missing zero"),
        pytest.param("fy97/fig004", FIGURES, "fy97/fig04", id="a zero too many"),
        pytest.param("fy97/fig05", FIGURES, "fy97/fig04", id="another digit: the most similar"),
        pytest.param("1e-6", ["1e-16", "1e-06"], "1e-06", id="an exponent"),
        pytest.param("1.5", ["1.05", "1.55"], "1.55", id="zeros behind a point count"),
    ],
)
def test_the_nearest_choice_is_suggested(word, choices, meant):
    assert one_of(word, choices).endswith(f"Did you mean {meant}?")


def test_nothing_is_suggested_where_nothing_is_near():
    assert one_of("zebra", FIGURES) == "expected one of fy97/fig14, fy97/fig04, fy97/fig24. Choose one of these."
    assert one_of("zebra", []) == "expected none here. Remove it."


def test_complaints_come_in_the_order_of_the_file():
    places = Places(Path("mine.yaml"), {("a",): 7, ("b",): 2, ("c",): 4}).set_from("--set c=1", [("c",)])
    found = ((("c",), "set"), (("a",), "late"), (("d",), "missing"), (("b", "x"), "early"))
    said = str(places.error(Problem(at, what, "another") for at, what in found))
    assert said.splitlines() == [
        "mine.yaml: d: found missing; expected another",
        "mine.yaml:2: b.x: found early; expected another",
        "mine.yaml:7: a: found late; expected another",
        "--set c=1: c: found set; expected another",
    ]


def test_an_error_without_a_problem_is_a_mistake_of_the_program():
    with pytest.raises(AssertionError, match="without a problem"):
        Places(Path("mine.yaml"), {}).error([])
