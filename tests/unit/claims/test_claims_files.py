"""The files of claims: strictly read, complete, and bound to what exists."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from scpslab.analysis.claims import QUESTIONS, Evidence, evaluate, load_all
from scpslab.analysis.claims.contradictions import load_contradictions
from scpslab.analysis.claims.load import load
from scpslab.analysis.claims.numbers import NUMBERS
from scpslab.analysis.claims.relations import RELATIONS
from scpslab.analysis.figures.plots import MODELS
from scpslab.analysis.figures.recipe import load_all as load_recipes
from scpslab.analysis.metrics import FAMILIES, np
from scpslab.core.errors import ScenarioError
from scpslab.plan.links import LOSS_CAUSES
from scpslab.scenario import cells
from scpslab.scenario import load as load_scenario
from scpslab.scenario.planning import plan

CLAIM = """  - id: one
    weight: headline
    source: Fig 1
    says: Something is so.
"""
# How many findings the five papers were found to report.
FINDINGS = {"fy97": 98, "itc1999": 28, "smallsat2000": 24, "aerospace2001": 3, "jzus2005": 20}


def test_every_finding_is_there():
    assert {paper.name: len(paper.file.claims) for paper in load_all()} == FINDINGS


def test_without_runs_nothing_is_decided_but_arithmetic():
    verdicts = evaluate(load_all(), Evidence([]))

    found = {outcome: [item.claim.id for item in verdicts if item.outcome() == outcome] for outcome in ("reproduced", "not reproduced", "different")}
    assert found == {"reproduced": ["a6-token-bucket", "iw-3mss"], "not reproduced": [], "different": []}


def test_every_series_is_used():
    unused = []
    for paper in load_all():
        used = {operand.series for claim in paper.file.claims for check in claim.checks for operand in check.operands()}
        unused += [f"{paper.name}: {name}" for name in paper.file.series if name not in used]
    assert unused == []


def test_figures_of_claims_exist():
    recipes = load_recipes(MODELS)
    assert [claim.figure for paper in load_all() for claim in paper.file.claims if claim.figure and claim.figure not in recipes] == []


@pytest.mark.parametrize(
    ("text", "line", "says"),
    [
        ("    checks: [{kind: value, metric: x, of: tcp, because: Why not.}]\n", 14, "found no band"),
        ("    checks: [{kind: value, metric: x, of: udp, at_most: 1, because: Why not.}]\n", 14, 'found the series "udp"; expected one of tcp, tp'),
        ("    checks: [{kind: valve, metric: x, of: tcp, at_most: 1, because: Why not.}]\n", 14, 'found "valve"; expected one of value'),
        ("    checks: [{kind: value, metric: x, of: tcp, at_most: 1}]\n", 14, "because"),
        ("    checks: [{kind: value, metric: x, of: tcp, at_most: 1, becuase: Typing.}]\n", 14, 'unknown key "becuase"'),
        ("    checks: [{kind: value, metric: x, of: tcp, at_least: 2, at_most: 1, because: Why not.}]\n", 14, "found at_least 2 above at_most 1"),
        ("", 10, "found neither or both of checks and not_testable"),
        ("    not_testable: A hope.\n" + CLAIM + "    not_testable: A hope.\n", 15, 'found "one" a second time'),
    ],
)
def test_mistakes_are_said_with_their_line(tmp_path, head, text, line, says):
    path = tmp_path / "paper.yaml"
    path.write_text(head + CLAIM + text)

    with pytest.raises(ScenarioError) as caught:
        load(path)
    assert says in str(caught.value)
    assert f"{path}:{line}:" in str(caught.value)


def test_contradictions_name_claims_that_exist(tmp_path):
    papers = load_all()
    assert len(load_contradictions(papers)) == 10

    path = tmp_path / "contradictions.yaml"
    path.write_text("kind: contradictions\nversion: 1\ncontradictions:\n  - {title: Whoever, says: Both., likely: Chance., claims: [fy97/fig04-tp-1e6]}\n")
    with pytest.raises(ScenarioError, match=r"contradictions.yaml:4: .*Did you mean fy97/fig04-tp-1e5\?"):
        load_contradictions(papers, path)


def test_the_documented_counts_are_those_of_the_files():
    documented = (Path(__file__).parents[3] / "docs" / "claims.md").read_text()
    assert re.findall(r"^\| `(\w+)\.yaml` .*\| (\d+) \|$", documented, re.MULTILINE) == [(name, str(count)) for name, count in FINDINGS.items()]
    assert f"{sum(FINDINGS.values())} findings" in documented
    assert [kind for kind in (*NUMBERS, *RELATIONS) if f"| `{kind}` |" not in documented] == []


def test_questions_are_of_the_same_form_and_undecided_without_runs():
    verdicts = evaluate(load_all(QUESTIONS), Evidence([]))
    assert {paper.name: len(paper.file.claims) for paper in load_all(QUESTIONS)} == {"open": 14, "gateways": 8}
    assert {verdict.outcome() for verdict in verdicts} == {"no data yet"}


def test_every_metric_that_a_check_looks_at_is_a_column():
    """Of results.csv: of a family, or what the hop lost."""
    columns = {column.name for family in FAMILIES for column in family.columns}
    columns |= {f"hop_data_lost_{cause}_packets" for cause in LOSS_CAUSES}
    # Those of transfers over SCPS-NP have the names of their scenario's workloads.
    columns |= {column.name for name in ("np/signals", "np/precedence") for cell in cells(load_scenario(name)) for column in np.columns(plan(cell))}
    named = [
        (f"{paper.name}/{claim.id}", metric)
        for paper in (*load_all(), *load_all(QUESTIONS))
        for claim in paper.file.claims
        for check in claim.checks
        for metric in (getattr(check, "metric", None), *(operand.metric for operand in check.operands()))
        if metric
    ]
    assert [item for item in named if item[1] not in columns] == []
