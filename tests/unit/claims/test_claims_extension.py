"""The one extension of undecided claims: how many repeats, of which cells, by which of them, and how often it errs."""

import csv
import io
import json
import random
import shutil
import statistics as numbers
from functools import cache

import pytest

from scpslab import scenario
from scpslab.analysis import statistics
from scpslab.analysis.claims import Evidence, Outcome, evaluate, extension
from scpslab.analysis.claims.evaluate import extended, places
from scpslab.analysis.claims.extension import LARGEST, LEAST, MOST, SAFETY, alike, enough, needs, report
from scpslab.analysis.claims.load import load
from scpslab.scenario.campaign import load_campaign

CLEAN = {"ber": "0"}
BOUND = "kind: value, metric: transfer_s, of: {series: tcp, at: {ber: 0}}, at_least: 0, because: Why."
BAND = BOUND.replace("at_least: 0", "at_least: -1, at_most: 1")
EDGE = BOUND.replace("at_least: 0", "at_least: -2, at_most: 0")
ORDER = "kind: order, metric: transfer_s, rising: [tp, tcp]"
TRIALS = 400
EXACT = cache(statistics.t_quantile.__wrapped__)
DONE = "kind: completion, of: {series: tcp}, at_least: 90, because: Why."


@pytest.mark.parametrize("number", [2, 3, 4, 5, 100, 101])
@pytest.mark.parametrize("values", [[1.0, 2.0], [3.0, 3.0, 9.0], [5.0, 5.0, 5.0]])
def test_an_imagined_sample_has_the_mean_and_the_deviation_of_the_one_that_was_measured(values, number):
    imagined = alike(values, number)

    assert len(imagined) == number
    assert numbers.mean(imagined) == pytest.approx(numbers.mean(values))
    assert numbers.stdev(imagined) == pytest.approx(numbers.stdev(values))


def test_of_one_value_nothing_is_known_but_the_value():
    assert alike([7.0], 3) == (7.0, 7.0, 7.0)
    assert alike([7.0, 9.0], 1) == (8.0,)
    assert alike([], 0) == ()


@pytest.fixture
def judged(verdict, rows):
    """The verdict on a check, and how many repeats would just decide it: `judged(check, tcp=[1.0, None], tp=[2.0])`."""

    def judge(check, tcp, tp=()):
        cells = [*rows("reno", CLEAN, tcp), *rows("scps", CLEAN, tp)]
        found = verdict(cells, check)
        tested = found.results[0].check
        return found.outcome(), enough(tested, places(tested, found.paper.file, Evidence(cells)))

    return judge


@pytest.mark.parametrize(
    ("check", "tcp", "tp", "repeats"),
    [
        # Half widths t(n - 1) * s / sqrt(n) with s = 1: 1.241 of 5, 1.049 of 6 and 0.925 of 7 values.
        (BOUND, [0.0, 1.0, 2.0], (), 7),
        (BOUND, [0.05, 1.05, 2.05], (), 6),
        # Two repeats, s = 1.414: 1.183 of 8 and 1.087 of 9 values.
        (BOUND, [0.1, 2.1], (), 9),
        # The mean is 2, the edge at 1.
        (BAND, [1.0, 2.0, 3.0], (), 7),
        # On the edge, and beside it by less than 10,000 repeats can tell.
        (BOUND, [-1.0, 0.0, 1.0], (), LARGEST + 1),
        (BOUND, [-0.99, 0.01, 1.01], (), LARGEST + 1),
        # Two means 1 apart with s = 1: Welch's t of 9 and 9 is 2.121 against 2.120, of 8 and 8 it is 2 against 2.145.
        (ORDER, [1.0, 2.0, 3.0], [0.0, 1.0, 2.0], 9),
        # The same means without spread: no difference, however often.
        (ORDER, [1.0, 1.0], [1.0, 1.0], LARGEST + 1),
        # One repeat has no spread to judge by: two that are alike would do.
        (ORDER, [2.0], [1.0], 2),
        # The interval of 2 in 4 ends at 93.2 %, that of 2 in 5 at 85.3 %.
        (DONE, [1.0, None], (), 5),
    ],
)
def test_enough_is_the_least_number_that_decides_if_nothing_moves(judged, check, tcp, tp, repeats):
    assert judged(check, tcp, tp) == (Outcome.UNDECIDED, repeats)


def test_incomplete_cells_give_no_values(judged):
    """Of two repeats one completes: twice as many repeats for as many values."""
    assert judged(BOUND, [0.0, None, 1.0, None, 2.0, None]) == (Outcome.UNDECIDED, 14)


def test_repeats_of_which_none_would_complete_decide_nothing(judged):
    """Of ten one completes: of 14 it would be one value, which has no interval, of 15 two that are alike."""
    assert judged(BOUND, [0.0, *[None] * 9]) == (Outcome.UNDECIDED, 15)


RATIO = "kind: ratio, metric: transfer_s, of: tcp, to: tp, at_least: 1, because: Why."
DIFFERENCE = "kind: difference, metric: transfer_s, of: tcp, minus: tp, at_least: 0, because: Why."
SPREAD = "kind: spread, metric: transfer_s, of: {series: tcp}, at_least: 0.3, because: Why."


@pytest.mark.parametrize("check", [RATIO, DIFFERENCE, SPREAD])
def test_every_kind_of_check_is_decided_by_so_many_and_not_by_one_less(judged, rows, verdict, check):
    """So many values with the same mean and spread, as cells that were run."""
    tcp, tp = [19.0, 22.0, 25.0] if check != SPREAD else [10.0, 20.0, 26.0], [18.0, 20.0, 22.0]
    outcome, enough_ = judged(check, tcp, tp)

    assert outcome is Outcome.UNDECIDED
    for number, is_decided in ((enough_, True), (enough_ - 1, False)):
        cells = [*rows("reno", CLEAN, alike(tcp, number)), *rows("scps", CLEAN, alike(tp, number))]
        assert (verdict(cells, check).outcome() is not Outcome.UNDECIDED) is is_decided


@pytest.fixture
def paper(tmp_path, head):
    """Claims of a file with these checks, each the only one of its claim."""

    def written(*checks):
        path = tmp_path / "paper.yaml"
        entry = "  - {{id: c{}, weight: headline, source: Fig 1, says: It is so., checks: [{{{}}}]}}\n"
        path.write_text(head + "".join(entry.format(number, check) for number, check in enumerate(checks)))
        return load(path)

    return written


@pytest.fixture
def quick(monkeypatch):
    """A simulation asks for the same quantiles of t again and again, and never for more repeats than are run."""
    monkeypatch.setattr(statistics, "t_quantile", lambda degrees: EXACT(round(degrees, 1)))
    monkeypatch.setattr(extension, "LARGEST", MOST // SAFETY)


def whole_procedure(paper, rows, first, draw):
    """The outcome of runs with so many repeats and, where they leave it open, of the extension."""

    def cells(repeats, begin=1):
        return [
            *rows("reno", CLEAN, [draw() for _ in range(repeats)], first=begin),
            *rows("scps", CLEAN, [draw() for _ in range(repeats)], first=begin),
        ]

    before = Evidence(cells(first))
    verdicts = evaluate([paper], before)
    check = verdicts[0].results[0].check
    if verdicts[0].outcome() is not Outcome.UNDECIDED:
        return verdicts[0].outcome()
    repeats = max(LEAST, SAFETY * enough(check, places(check, paper.file, before)))
    if repeats > MOST:
        return Outcome.UNDECIDED
    later = Evidence([*before.rows, *cells(repeats, first + 1)]).beyond(before)
    return extended(verdicts, evaluate([paper], later), verdicts)[0].outcome()


@pytest.mark.slow
@pytest.mark.parametrize(("check", "first"), [(BOUND, 2), (BOUND, 3), (BOUND, 5), (ORDER, 3), (EDGE, 3)])
def test_the_whole_procedure_errs_in_at_most_five_of_a_hundred(paper, rows, quick, check, first):
    """The truth is on the edge: whatever is decided for certain is wrong, on either side. Without the extension it is
    2.5 % on a side.
    """
    normal = random.Random(1997)
    mine = paper(check)
    found = [whole_procedure(mine, rows, first, lambda: normal.gauss(0, 1)) for _ in range(TRIALS)]

    assert found.count(Outcome.NOT_REPRODUCED) <= 0.05 * TRIALS
    if check != EDGE:
        assert found.count(Outcome.REPRODUCED) <= 0.05 * TRIALS


@pytest.mark.slow
@pytest.mark.parametrize("check", [BOUND, ORDER])
def test_four_of_five_extensions_decide_if_mean_and_spread_are_those_measured(paper, rows, quick, judged, check):
    """The mean of the one is 0.5 above the bound, or above that of the other, with a deviation of 1."""
    normal, far, near = random.Random(1998), [-0.5, 0.5, 1.5], [-1.0, 0.0, 1.0]
    repeats = SAFETY * judged(check, far, near)[1]
    decided, mine = 0, paper(check)
    for _ in range(TRIALS):
        cells = rows("reno", CLEAN, [normal.gauss(0.5, 1) for _ in range(repeats)])
        cells += rows("scps", CLEAN, [normal.gauss(0, 1) for _ in range(repeats)])
        decided += evaluate([mine], Evidence(cells))[0].outcome() is Outcome.REPRODUCED

    assert 0.75 <= decided / TRIALS <= 0.9


def test_the_extension_decides_by_its_own_cells_and_only_what_was_undecided(paper, rows):
    """Of two claims one is certain already: it stays as it is. With the first repeats the other would stay open."""
    papers = [paper(BOUND, BOUND.replace("at_least: 0", "at_least: -9"))]
    before = Evidence(rows("reno", CLEAN, [0.0, -1.0, 3.0]))
    cells = rows("reno", CLEAN, [0.0, -1.0, 3.0, -9.0, -9.1, -9.2], run="run-2")
    later = Evidence(cells).beyond(before)
    verdicts = evaluate(papers, before)

    assert [row.values["repeat"] for row in later.rows] == ["4", "5", "6"]
    assert [one.outcome() for one in verdicts] == [Outcome.UNDECIDED, Outcome.REPRODUCED]
    assert evaluate(papers, Evidence(cells))[0].outcome() is Outcome.UNDECIDED
    found = extended(verdicts, evaluate(papers, later), verdicts[:1])
    assert [one.outcome() for one in found] == [Outcome.NOT_REPRODUCED, Outcome.REPRODUCED]
    assert found[0].results[0].deciding.text == "-9.1 [-9.348, -8.852], n = 3"


def test_a_claim_that_was_not_extended_stays_undecided(paper, rows):
    before = Evidence(rows("reno", CLEAN, [0.0, -1.0, 3.0]))
    other = Evidence(rows("reno", {"ber": "1e-05"}, [5.0, 5.0])).beyond(before)
    verdicts = evaluate([paper(BOUND)], before)

    (found,) = extended(verdicts, evaluate([paper(BOUND)], other), verdicts)
    assert (found.outcome(), found.results[0].deciding.text[-5:]) == (Outcome.UNDECIDED, "n = 3")


SCENARIO = "fy97/fig04"
AT = "at: {stack: STACK, errors: clustered, ber: 1e-5}"
OWN = f"""kind: claims
version: 1
title: A paper
year: 1998
reference: Somebody, 1998
series:
  all: {{scenarios: [{SCENARIO}]}}
claims:
  - id: near
    weight: headline
    source: Fig 1
    says: It is so.
    checks: [{{kind: value, metric: transfer_s, of: {{series: all, {AT.replace("STACK", "fy97-reno")}}}, at_least: 100, because: Why.}}]
  - id: far
    weight: headline
    source: Fig 1
    says: It is so.
    checks: [{{kind: value, metric: transfer_s, of: {{series: all, {AT.replace("STACK", "scps-rate")}}}, at_least: 100.9999, because: Why.}}]
"""


@pytest.fixture
def run(tmp_path):
    """A run of the demo of fy97/fig04: with --set, results of two stacks and three repeats."""
    folder = tmp_path / "runs" / "fy97-fig04-demo-0001"
    cell = folder / "cells" / "one"
    cell.mkdir(parents=True)
    (cell / "plan.json").write_text("{}")
    settings = ["repeats=3", "sweep.ber=[0, 1e-5]"]
    loaded = scenario.load(f"{SCENARIO}:demo", settings)
    (folder / "scenario.resolved.yaml").write_text(scenario.resolved_yaml(loaded))
    manifest = {"format": 1, "scenario": loaded.name, "status": "completed", "settings": settings}
    (folder / "manifest.json").write_text(json.dumps(manifest))
    head = "scenario,topology,cell,stack,errors,ber,repeat,seed,status,reason,transfer_s"
    lines = [
        f"{SCENARIO},fy97,,{stack},clustered,1e-05,{repeat},1997,completed,,{value}"
        for stack in ("fy97-reno", "scps-rate")
        for repeat, value in enumerate((100, 101, 102), 1)
    ]
    (folder / "results.csv").write_text("\n".join([head, *lines]) + "\n")
    (tmp_path / "mine.yaml").write_text(OWN)
    return folder


def test_the_extension_is_a_campaign_of_the_points_that_are_undecided(run, tmp_path, monkeypatch, scpslab):
    """One claim needs 14 repeats more, the other more than anybody runs."""
    monkeypatch.chdir(tmp_path)
    code, said, shown = scpslab("claims", run, "--file", "mine.yaml", "--extend")
    (tmp_path / "more.yaml").write_text(said)
    (member,) = load_campaign("more.yaml").members

    assert code == 0
    assert member.name == "fy97/fig04:demo"
    assert [cell.id for cell in scenario.cells(member.load())] == [
        f"stack=fy97-reno,errors=clustered,ber=1e-05,r{repeat}" for repeat in range(1, 18)
    ]
    words = " ".join(shown.split())
    assert "1 of 2 undecided claims are extended (at most 14 new cells, 0." in words
    assert "more than 10000" in words


def test_a_claim_that_needs_too_many_repeats_stays_undecided_where_some_were_run(run, tmp_path, monkeypatch, scpslab):
    """For another claim, perhaps: both have the same new cells here, which would decide both."""
    monkeypatch.chdir(tmp_path)
    more = run.with_name("fy97-fig04-demo-0002")
    shutil.copytree(run, more)
    head, *lines = (run / "results.csv").read_text().splitlines()
    later = [
        line.replace(f",{n},1997", f",{n + 3 * times},1997") for times in (1, 2) for n, line in enumerate(lines[:3], 1)
    ]
    later += [line.replace(",fy97-reno,", ",scps-rate,") for line in later]
    (more / "results.csv").write_text("\n".join([head, *later]).replace(",10", ",110.") + "\n")

    code, said, _ = scpslab("claims", run, "--file", "mine.yaml", "--extension", more, "--format", "csv")
    assert code == 0
    assert [line["outcome"] for line in csv.DictReader(io.StringIO(said))] == ["reproduced", "undecided"]


def test_where_nothing_is_to_be_repeated_there_is_no_campaign(run, tmp_path, monkeypatch, scpslab):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.yaml").write_text(OWN.replace("at_least: 100,", "at_least: 90,"))
    code, said, shown = scpslab("claims", run, "--file", "mine.yaml", "--extend")
    assert (code, said) == (0, "")
    assert "0 of 1 undecided claims are extended" in " ".join(shown.split())


def test_an_extension_without_a_new_cell_is_refused(run, tmp_path, monkeypatch, scpslab):
    monkeypatch.chdir(tmp_path)
    code, _, said = scpslab("claims", run, "--file", "mine.yaml", "--extension", run)
    assert code == 2
    assert "--extension: found no cell that the runs lack" in said


def test_runs_that_decide_everything_need_no_extension(rows, paper):
    verdicts = evaluate([paper(BOUND)], Evidence(rows("reno", CLEAN, [5.0, 5.1])))
    found = needs(verdicts, Evidence([]), lambda name, plan: 1.0)
    assert found == []
    assert report(found).rows == []
