"""The files of claims: strictly read, complete, and bound to what exists. A run under other conditions than its
scenario's decides no claim, and says which they are.
"""

import re
from pathlib import Path

import pytest

from scpslab import scenario
from scpslab.analysis.claims import QUESTIONS, Evidence, evaluate, load_all
from scpslab.analysis.claims.load import load, load_contradictions, strange_words
from scpslab.analysis.claims.measured import KINDS
from scpslab.analysis.claims.model import Series
from scpslab.analysis.collect import BEFORE_AXES
from scpslab.core.errors import ScenarioError
from tests import golden
from tests.cases import refusal
from tests.runs import write_manifest

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


@golden.each("axis of a claim")
def test_an_axis_that_runs_do_not_have_or_that_has_words_is_named(tmp_path, head, rows, case):
    """Both were "no data yet"."""
    path = tmp_path / "paper.yaml"
    checks = f"    checks: [{{kind: trend, metric: transfer_s, of: tcp, along: {case}, direction: rising}}]\n"
    path.write_text(head + CLAIM + checks)
    evidence = Evidence([row for stack in ("reno", "scps") for row in rows(stack, {"delay": "25 ms"}, [1.0, 2.0])])
    case.hold("\n".join(map(str, strange_words(load(path), evidence))) or "no problem", tmp_path)


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
        "resume": 3,
        "published": 56,
        "bbr-draft": 20,
    }
    assert {verdict.outcome() for verdict in verdicts} == {"no data yet", "not testable"}


def run_of(folder: Path, name: str, *overrides: str) -> Path:
    """A run folder of a scenario: its resolved scenario, manifest and one row."""
    folder.mkdir()
    loaded = scenario.load(name, overrides)
    (folder / "scenario.resolved.yaml").write_text(scenario.resolved_yaml(loaded))
    write_manifest(folder, loaded.name, settings=overrides)
    row = dict.fromkeys((*BEFORE_AXES, "repeat", "seed", "status", "reason", "transfer_s"), "")
    row |= {"scenario": loaded.base_name, "repeat": "1", "seed": "1", "status": "completed", "transfer_s": "20"}
    (folder / "results.csv").write_text(",".join(row) + "\n" + ",".join(row.values()) + "\n")
    return folder


@pytest.mark.parametrize(
    ("name", "free", "changing"),
    [
        ("fy97/fig14", (), ()),
        ("fy97/fig14:demo", (), ()),
        ("fy97/fig14", ("repeats=7", "seed=3", "sweep.level=[100, 130]", "sweep.stack=[cubic]", "title=Mine"), ()),
        ("fy97/fig14", ("limits.wall_time=10 s", "probes=[]"), ()),
        ("fy97/fig14", ("repeats=7",), ("workloads.transfer.size=200 kB",)),
        ("fy97/fig14:demo", (), ("links.hop.forward.rate=1 Mbit/s",)),
        ("fy97/fig14", (), ("links.hop.forward.errors={model: independent, ber: 1e-6}",)),
        ("fy97/fig14", (), ("sweep.segment={set: [workloads.transfer.segment], values: [512 B]}",)),
    ],
)
def test_settings_that_change_conditions_are_named(tmp_path, name, free, changing):
    run = run_of(tmp_path / "run", name, *free, *changing)
    evidence = Evidence.of_runs([run])
    assert evidence.changed == ({run: changing} if changing else {})
    assert len(evidence.select(Series(scenarios=(name.partition(":")[0],)), {})) == (0 if changing else 1)


def test_a_small_variant_decides_nothing_although_its_cells_carry_the_scenario_s_name(tmp_path):
    """Plans name the scenario without the variant."""
    runs = [run_of(tmp_path / variant, f"fy97/fig14:{variant}") for variant in ("test", "demo")]
    rows = Evidence.of_runs(runs).select(Series(scenarios=("fy97/fig14",)), {})
    assert [row.run.name for row in rows] == ["demo"]
