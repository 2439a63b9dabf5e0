"""The files of claims: strictly read, complete, and bound to what exists."""

import re
from pathlib import Path

import pytest

from scpslab.analysis.claims import QUESTIONS, Evidence, evaluate, load_all
from scpslab.analysis.claims.load import load, load_contradictions, strange_words
from scpslab.analysis.claims.measured import KINDS
from scpslab.core.errors import ScenarioError
from tests import golden
from tests.cases import refusal

CLAIM = """  - id: one
    weight: headline
    source: Fig 1
    says: Something is so.
"""
# 20 values of each of five columns.
MANY = "{" + ", ".join(f"column{number}: {[*range(20)]}" for number in range(5)) + "}"
# How many findings the five papers were found to report.
FINDINGS = {"fy97": 98, "itc1999": 28, "smallsat2000": 24, "aerospace2001": 3, "jzus2005": 20}


def test_every_finding_is_there():
    assert {paper.name: len(paper.file.claims) for paper in load_all()} == FINDINGS


def test_without_runs_nothing_is_decided_but_arithmetic():
    verdicts = evaluate(load_all(), Evidence([]))

    found = {
        outcome: [item.claim.id for item in verdicts if item.outcome() == outcome]
        for outcome in ("reproduced", "not reproduced", "different")
    }
    assert found == {"reproduced": ["a6-token-bucket", "iw-3mss"], "not reproduced": [], "different": []}


def test_every_series_is_used():
    unused = []
    for paper in load_all():
        used = {operand.series for claim in paper.file.claims for check in claim.checks for operand in check.operands()}
        unused += [f"{paper.name}: {name}" for name in paper.file.series if name not in used]
    assert unused == []


@pytest.fixture
def refused(tmp_path, head):
    """The errors of a file with one claim, whose end is this text, after changes of the whole."""

    def of(end, *change):
        (path := tmp_path / "paper.yaml").write_text(f"{head}{CLAIM}    {end}\n".replace(*(change or ("", ""))))
        return refusal(load, path)

    return of


@golden.each("check of a claim")
def test_mistakes_of_a_check_are_said_with_its_line(refused, case, tmp_path):
    said = refused(f"checks: [{{{case.replace('MANY', MANY)}, because: Why not.}}]")
    assert "paper.yaml:14: " in case.hold(said, tmp_path)


@golden.each("claims file", "case old new")
def test_other_mistakes_are_said_with_their_line(refused, case, old, new, tmp_path):
    said = case.hold(refused("not_testable: A hope.", old, new), tmp_path)
    assert re.match(r"paper\.yaml:\d+: ", said)


def test_a_figure_of_the_user_s_own_may_show_a_claim(tmp_path, head):
    path = tmp_path / "claims" / "paper.yaml"
    path.parent.mkdir()
    path.write_text(head + CLAIM + "    figure: mine\n    not_testable: A hope.\n")
    (tmp_path / "figures").mkdir()
    (tmp_path / "figures" / "mine.yaml").touch()
    assert load(path).file.claims[0].figure == "mine"


@pytest.mark.parametrize(
    ("along", "says"),
    [
        ("dealy", 'found "dealy"; expected one of'),
        ("stack", 'found the axis "stack", whose values are words such as "reno"; expected numbers'),
        ("delay", None),
    ],
)
def test_an_axis_that_runs_do_not_have_or_that_has_words_is_named(tmp_path, head, rows, along, says):
    """Both were "no data yet"."""
    path = tmp_path / "paper.yaml"
    checks = "    checks: [{{kind: trend, metric: transfer_s, of: tcp, along: {along}, direction: rising}}]\n"
    path.write_text(head + CLAIM + checks.format(along=along))
    evidence = Evidence([row for stack in ("reno", "scps") for row in rows(stack, {"delay": "25 ms"}, [1.0, 2.0])])

    found = [str(problem) for problem in strange_words(load(path), evidence)]
    assert says in found[0] if says else found == []


def test_contradictions_name_claims_that_exist(tmp_path):
    papers = load_all()
    assert len(load_contradictions(papers)) == 10

    path = tmp_path / "contradictions.yaml"
    path.write_text(
        "kind: contradictions\nversion: 1\ncontradictions:\n  - {title: Whoever, says: Both., likely: "
        "Chance., claims: [fy97/fig04-tp-1e6]}\n"
    )
    with pytest.raises(ScenarioError, match=r"contradictions.yaml:4: .*Did you mean fy97/fig04-tp-1e5\?"):
        load_contradictions(papers, path)


def test_the_documented_counts_are_those_of_the_files():
    documented = (Path(__file__).parents[3] / "docs" / "claims.md").read_text()
    assert re.findall(r"^\| `(\w+)\.yaml` .*\| (\d+) \|$", documented, re.MULTILINE) == [
        (name, str(count)) for name, count in FINDINGS.items()
    ]
    assert f"{sum(FINDINGS.values())} findings" in documented
    assert [kind for kind in KINDS if f"| `{kind}` |" not in documented] == []


def test_questions_are_of_the_same_form_and_undecided_without_runs():
    verdicts = evaluate(load_all(QUESTIONS), Evidence([]))
    assert {paper.name: len(paper.file.claims) for paper in load_all(QUESTIONS)} == {
        "open": 14,
        "gateways": 8,
        "access": 4,
        "moving": 13,
    }
    assert {verdict.outcome() for verdict in verdicts} == {"no data yet"}
