"""Runs beside each other, and the values of one axis of a run."""

import csv
import dataclasses
import io
import itertools
import json
import random
from pathlib import Path

import pytest
from scipy import stats

from scpslab import scenario
from scpslab.analysis import compare as comparing
from scpslab.analysis import effects
from scpslab.analysis.claims import Evidence, evaluate, load
from scpslab.analysis.compare import Options, compare_axis, compare_runs
from scpslab.analysis.compare_texts import report
from scpslab.analysis.effects import Method
from scpslab.analysis.output import csv_text
from scpslab.analysis.statistics import ResultRow
from scpslab.analysis.table import Results, read_results, summarise
from scpslab.analysis.table import report as table
from scpslab.scenario import planning
from tests.runs import write_cell, write_manifest

STACKS = ("cubic", "fy97-reno")
IDENTITY = {"scenario": "s", "topology": "t", "seed": "", "reason": ""}


def results(name, cells, metric="transfer_s", axis="ber"):
    """A run's rows: `{"0": [1.0, 2.0, None]}` are three repeats at ber 0, the last incomplete."""
    rows = [
        IDENTITY
        | {"cell": f"{axis}={value},r{repeat}", axis: value, "stack": "kernel", "repeat": str(repeat)}
        | {"status": "incomplete", metric: ""}
        | ({} if number is None else {"status": "completed", metric: str(number)})
        for value, numbers in cells.items()
        for repeat, number in enumerate(numbers, 1)
    ]
    return Results(Path(name), tuple(rows[0]), (axis,), (metric,), tuple(map(ResultRow, rows)))


def demo_cells(*settings):
    """Cells of a real scenario: two stacks, no errors and errors at 1e-6, five repeats."""
    sweep = ["sweep.stack=[cubic, fy97-reno]", "sweep.ber=[0, 1e-6]", "sweep.errors=[clustered]", "repeats=5"]
    return scenario.cells(scenario.load("fy97/fig04", [*sweep, *settings]))


@pytest.fixture
def written(tmp_path):
    """A function: a run folder of these cells, with the transfer times of `transfer_s`; None is an incomplete one."""

    def write(cells, transfer_s, name="run"):
        axes = list(cells[0].axes)
        rows = [["scenario", "topology", "cell", *axes, "repeat", "seed", "status", "reason", "transfer_s"]]
        for cell in cells:
            plan, value = planning.plan(cell), transfer_s(cell)
            status = "incomplete" if value is None else "completed"
            write_cell(tmp_path / name / "cells" / cell.id, plan, status=status)
            rows.append(["s", "t", cell.id, *map(str, cell.axes.values()), str(cell.repeat), plan.cell.kernel_seed])
            rows[-1] += [status, "", "" if value is None else repr(value)]
        ran = {"engine": "virtual", "engine_hashes": ["aa"], "seed": cells[0].scenario.seed, "cells": {}}
        write_manifest(tmp_path / name, "s", **ran)
        (tmp_path / name / "results.csv").write_text(csv_text(rows))
        return read_results(tmp_path / name)

    return write


@pytest.fixture
def drawn(written):
    """A run of random times, and these by cell."""
    draws = random.Random(5)
    values = {cell.id: 10 + draws.random() for cell in demo_cells()}
    return written(demo_cells(), lambda cell: values[cell.id])


def by_repeat(cell):
    """Repeats differ much, stacks by 1 s; without errors the two stacks have one time each."""
    if cell.axes["ber"] == 0:
        return 20.0 if cell.axes["stack"] == "cubic" else 22.0
    return 10.0 * cell.repeat + (1.0 + cell.repeat / 100 if cell.axes["stack"] == "fy97-reno" else 0.0)


def test_differences_have_welchs_interval_and_corrected_p():
    """Of two differences one is 20 standard errors, the other none; t(4) = 24.5 has p = 1.6e-5, doubled for two
    comparisons.
    """
    found = compare_runs(
        [results("a", {"0": [20, 21, 22], "1e-6": [5, 6, 7]}), results("b", {"0": [40, 41, 42], "1e-6": [5, 6, 7]})]
    )

    first, second = found.pairs
    assert (first.key, first.effect.difference.number) == (("0",), 20)
    assert first.effect.difference.high - 20 == pytest.approx(2.776445 * (2 / 3) ** 0.5)
    assert first.effect.ratio.number == pytest.approx(41 / 21)
    assert first.p_holm == pytest.approx(2 * first.effect.p)
    assert (first.is_certain, second.is_certain) == (True, False)
    assert report(found).notes[0].startswith("1 of 2 differences are certain")
    assert any("the cells are not there" in line for line in report(found).notes)


def test_completion_is_compared_where_something_did_not_complete():
    found = compare_runs(
        [results("a", {"0": [1, 1, None, None, None, None, None, None]}), results("b", {"0": [1] * 8})]
    )

    completion = next(pair for pair in found.pairs if pair.metric == "completion_pct")
    assert (completion.first.mean, completion.second.mean) == (25, 100)
    # Fisher's exact test of 2 of 8 against 8 of 8.
    assert completion.effect.p == pytest.approx(0.006993, abs=1e-5)


def test_points_of_one_run_only_are_named():
    found = compare_runs([results("a", {"0": [1], "1e-6": [1]}), results("b", {"0": [1], "1e-5": [1]})])

    assert found.not_shared == {"a": (("1e-6",),), "b": (("1e-5",),)}
    assert any("only in a: ber 1e-6" in line for line in report(found).notes)
    assert any("one value on a side and no p" in line for line in report(found).notes)


def test_a_run_compared_with_itself_is_the_same():
    mine = results("a", {"0": [20, 21, 22]})

    found = compare_runs([mine, mine])
    assert found.is_same
    assert not any(pair.is_certain for pair in found.pairs)
    assert "Both runs have the same rows." in report(found).notes


def test_it_is_written_as_table_csv_and_json():
    found = compare_runs([results("a", {"0": [20, 21, 22]}), results("b", {"0": [40, 41, 42]})])

    row = next(csv.DictReader(io.StringIO(report(found).csv)))
    assert (row["ber"], row["metric"], float(row["difference"]), row["paired"]) == ("0", "transfer_s", 20, "false")
    said = json.loads(report(found).json)
    assert (said["format"], said["sides"], said["pairs"][0]["axes"]) == (2, ["a", "b"], {"ber": "0"})
    assert said["notes"] == report(found).notes
    assert len(report(found).rows) == 1
    assert report(found).notes[0].startswith("1 of 1 differences are certain")


RUN = results("a", {"0": [1], "1e-6": [1]})


CLAIM = """kind: claims
version: 1
title: A question
year: 2026
reference: Nobody
series: {first: {scenarios: [s], where: {stack: cubic}}, second: {scenarios: [s], where: {stack: fy97-reno}}}
claims:
  - id: one
    weight: headline
    source: Fig 1
    says: One is slower.
    paper: Slower.
    checks: [{kind: order, metric: transfer_s, rising: [{series: first}, {series: second}]}]
"""


@pytest.mark.parametrize(
    ("setting", "outcome", "says"),
    [
        ("sweep.ber=[0]", "reproduced", "20 < 21, n 1, nothing is drawn, exact"),
        ("workloads.transfer.congestion_control=bbr", "undecided", "20 < 21, n = 1, one repeat has no spread"),
        ("sweep.ber=[1e-6]", "undecided", "20 < 21, n = 1, one repeat has no spread"),
    ],
)
def test_one_repeat_decides_where_no_chance_is_in_it(written, tmp_path, setting, outcome, says):
    cells = demo_cells("repeats=1", "sweep.ber=[0]", setting)
    run = written(cells, lambda cell: 20.0 if cell.axes["stack"] == "cubic" else 21.0)
    write_manifest(run.run_dir, "s", engine="virtual", evidence=True)
    (tmp_path / "own.yaml").write_text(CLAIM)
    (verdict,) = evaluate([load(tmp_path / "own.yaml")], Evidence.of_runs([run.run_dir]))
    (pair,) = compare_axis(run, "stack").pairs

    assert (str(verdict.outcome()), verdict.results[0].deciding.text) == (outcome, says)
    assert pair.is_exact is (outcome == "reproduced")
    assert ("bbr, which may draw" in pair.pairing.why) is ("bbr" in setting)


def test_what_cannot_be_compared_is_said(told):
    told("comparison", "no point in common", compare_runs, [RUN, results("b", {"1e-5": [1]})])
    told("comparison", "one value", compare_axis, results("a", {"0": [1]}), "ber")
    told("comparison", "no axis", compare_axis, dataclasses.replace(RUN, axes=()), "size")


@pytest.mark.parametrize(("stacks", "by"), [("ab", ()), ("aa", ("stack",)), ("bbaa", ("stack",))])
def test_what_the_compared_axis_decides_keeps_no_points_apart(stacks, by):
    """A stack for each value goes; one stack for all, and stacks that a value has both of, stay."""
    rows = [
        IDENTITY
        | {"cell": f"c{place}", "tcp": "xy"[place % 2], "stack": stack, "repeat": str(place // 2 + 1)}
        | {"status": "completed", "transfer_s": str(place + 1)}
        for place, stack in enumerate(stacks)
    ]
    run = Results(Path("a"), tuple(rows[0]), ("tcp", "stack"), ("transfer_s",), tuple(map(ResultRow, rows)))
    assert compare_axis(run, "tcp").by == by


def test_stacks_that_met_the_same_errors_are_compared_in_pairs(written):
    """Repeats differ by 10 s, the stacks by 1.03 s at each: Welch sees nothing, Student on pairs everything.

    At BER 0 no errors are shared.
    """
    run = written(demo_cells(), by_repeat)
    found = compare_axis(run, "stack")
    shown = table(summarise(run))
    assert [row.cells[-1] for row in shown.rows] == ["1", "5", "1", "5"]
    assert "n 1, nothing is drawn: all repeats are the same cell, which runs once." in shown.notes
    (pooled, _) = summarise(run, ["ber"]).groups
    assert (pooled.means["transfer_s"].n, pooled.means["transfer_s"].ci95_half) == (10, None)

    clean, noisy = found.pairs
    assert (clean.pairing.is_paired, clean.pairing.why) == (False, "nothing is drawn: no random errors or traffic")
    # Nothing is drawn, nothing varies: no chance is in the difference, and it has no p.
    assert (clean.effect.difference.number, clean.effect.p, clean.is_exact, clean.is_certain) == (2, None, True, False)
    assert (clean.first.n, "exact") == (1, report(found).rows[0].cells[-2])
    assert any(line.startswith("1 comparison exact: n 1, nothing is drawn") for line in report(found).notes)
    assert noisy.pairing.is_paired
    differences = [1.01, 1.02, 1.03, 1.04, 1.05]
    assert noisy.effect.p == pytest.approx(stats.ttest_1samp(differences, 0).pvalue, rel=1e-6)
    low, high = stats.ttest_1samp(differences, 0).confidence_interval()
    assert (noisy.effect.difference.low, noisy.effect.difference.high) == (pytest.approx(low), pytest.approx(high))
    assert noisy.is_certain
    assert "in pairs of one repeat (clustered, ber 1e-06): same errors and traffic." in report(found).notes


def test_a_value_of_the_axis_that_changes_the_errors_is_not_paired(written):
    found = compare_axis(written(demo_cells("sweep.ber=[1e-7, 1e-6]"), by_repeat), "ber")

    assert {pair.pairing.is_paired for pair in found.pairs} == {False}
    assert {pair.pairing.why for pair in found.pairs} == {"errors of hop forward, errors of hop return differ"}


def test_runs_with_the_same_seed_are_paired_and_with_another_not(written):
    mine = written(demo_cells(), by_repeat, "a")
    bigger = written(demo_cells("workloads.transfer.size=500 kB"), by_repeat, "b")
    other_seed = written(demo_cells("seed=99"), by_repeat, "c")

    found = compare_runs([mine, bigger, other_seed])

    assert [
        (pair.sides[1], pair.pairing.is_paired) for pair in found.pairs if pair.key[-1] != "0" and "1e-06" in pair.key
    ] == [("b", True), ("c", False)] * 2
    said = "\n".join(report(found).notes)
    assert (
        "conditions that differ between a and b:\n  workloads.transfer.bytes: 4000000 -> 500000 (at 4 points)\n" in said
    )
    assert "conditions that differ between a and c:\n  seed: 1997 -> 99" in said
    assert "errors of hop forward, errors of hop return differ" in said


def test_of_a_pair_both_must_have_completed(written):
    """Repeat 2 gave up with one stack, repeat 5 with both: three pairs are left; of five pairs one has two ends."""

    def with_losses(cell):
        gave_up = cell.repeat == 5 or (cell.repeat == 2 and cell.axes["stack"] == "cubic")
        return None if gave_up and cell.axes["ber"] else by_repeat(cell)

    found = compare_axis(written(demo_cells(), with_losses), "stack")

    noisy = [pair for pair in found.pairs if pair.pairing.is_paired]
    assert [(pair.metric, pair.first.n) for pair in noisy] == [("transfer_s", 3), ("completion_pct", 5)]
    assert [part.mean for part in (noisy[1].first, noisy[1].second)] == [60, 80]
    # One of one pair that differs: McNemar's exact p is 1.
    assert noisy[1].effect.p == 1


def gives_up(cell):
    """Of 20 repeats one stack does not finish the first twelve in time, and is slower by 0.5 s in the others."""
    is_slow = cell.axes["stack"] == "cubic"
    return None if is_slow and cell.repeat <= 12 else 5.0 + cell.repeat / 10 + (0.5 if is_slow else 0)


def many_repeats(*settings):
    return demo_cells("repeats=20", "sweep.ber=[1e-6]", *settings)


def ranked(run, metric="transfer_s"):
    return compare_axis(run, "stack", options=Options(metrics=[metric], test=Method.RANKS))


def test_by_ranks_an_unfinished_transfer_is_longer_than_every_finished_one(written):
    """All 20 pairs have one sign, and twelve of them are tied as the largest differences; means have the other eight."""
    run = written(many_repeats(), gives_up)
    (pair, completion) = ranked(run).pairs
    (of_means, _) = compare_axis(run, "stack").pairs

    assert (pair.unfinished, pair.numbers, pair.first.n, completion.metric) == ((12, 0), (20, 20), 8, "completion_pct")
    assert pair.effect.p == pytest.approx(2 / 2**20)
    assert (pair.effect.difference, pair.effect.ratio, pair.is_certain) == (None, None, True)
    assert (of_means.first.n, of_means.unfinished, of_means.first.is_partial) == (8, (0, 0), True)
    shown = report(ranked(run))
    assert shown.rows[0].cells[-7:-2] == ["unfinished", "6.050", "–", "–", "20 pairs"]
    assert any("1 comparison with transfers that did not finish: each ranks behind" in note for note in shown.notes)
    said = json.loads(shown.json, parse_constant=pytest.fail)["pairs"][0]
    assert (said["first_unfinished"], said["first_median"], said["second_median"]) == (12, None, 6.05)
    assert "* of fewer cells than ended" in " ".join(report(compare_axis(run, "stack")).notes)


def test_by_ranks_groups_and_rates_keep_what_did_not_finish(written, monkeypatch):
    """Against values that a censored sample can have: 1,000 s in place of what did not finish, and 0 bit/s."""
    run = written(many_repeats(), gives_up)
    monkeypatch.setattr(comparing, "drawn", lambda plan: {plan.cell.kernel_seed: id(plan)})
    (pair, _) = ranked(run).pairs
    assert not pair.pairing.is_paired
    values = [[gives_up(cell) or 1000.0 for cell in many_repeats() if cell.axes["stack"] == stack] for stack in STACKS]
    assert pair.effect.p == pytest.approx(effects.rank_sum_p(*values))
    rates = tuple(
        ResultRow(row | {"goodput_bps": row["transfer_s"] and repr(1 / float(row["transfer_s"]))}) for row in run.rows
    )
    slower = dataclasses.replace(run, rows=rates, metrics=(*run.metrics, "goodput_bps"))
    (pair, _) = ranked(slower, "goodput_bps").pairs
    assert (pair.unfinished, pair.effect.p) == ((12, 0), pytest.approx(effects.rank_sum_p(*values)))


@pytest.mark.parametrize(
    "of_others",
    [
        ["workloads.transfer.timeout=200 s"],
        [
            "workloads=[{kind: bulk, name: transfer, from: ws1, to: ws2, size: 4 MB}, {kind: ping, name: echo, from: ws1, to: ws2}]"
        ],
    ],
    ids=["another timeout", "another workload, which may be what did not finish"],
)
def test_where_nobody_knows_which_is_longer_the_unfinished_are_left_out(written, of_others):
    cells = [
        cell
        for stack, settings in zip(STACKS, ([], of_others), strict=True)
        for cell in many_repeats(*settings)
        if cell.axes["stack"] == stack
    ]
    pairs = ranked(written(cells, gives_up)).pairs

    assert {pair.unfinished for pair in pairs} == {(0, 0)}
    assert pairs[0].first.is_partial


def test_repeats_that_one_side_lacks_are_left_out_and_counted(written):
    few = [cell for cell in demo_cells() if cell.axes["stack"] == "cubic" or cell.repeat < 5]
    found = compare_axis(written(few, by_repeat), "stack")

    assert [pair.first.n for pair in found.pairs if pair.pairing.is_paired] == [4]
    assert "left out: 1 cell whose repeat the other side does not have." in report(found).notes


def test_axes_taken_together_are_paired_within_their_values(written):
    found = compare_axis(
        written(demo_cells("sweep.ber=[1e-7, 1e-6]"), by_repeat), "stack", options=Options(by=["errors"])
    )

    assert [(pair.pairing.is_paired, pair.first.n) for pair in found.pairs] == [(True, 10)]
    assert any("taken together: all values of ber" in line for line in report(found).notes)


def test_a_side_without_any_value_is_named(written):
    found = compare_axis(
        written(demo_cells(), lambda cell: None if cell.axes["stack"] == "cubic" else by_repeat(cell)), "stack"
    )

    assert {pair.metric for pair in found.pairs if pair.effect.p is not None} == {"completion_pct"}
    assert any(line.startswith("no value of transfer_s of cubic: ") for line in report(found).notes)


def test_too_few_pairs_for_an_exact_test_are_said(written):
    """Five pairs: 2 of 32 signs are as far out, 0.0625.

    Where nothing is drawn there is nothing to test.
    """
    run = written(demo_cells(), by_repeat)
    found = compare_axis(run, "stack", options=Options(test=Method.RANKS))

    assert [pair.effect.least_p for pair in found.pairs] == [None, 0.0625]
    assert (
        "too few: with 5 pairs the smallest possible p is 0.062, so 1 comparison cannot be certain, whatever the "
        "values are." in report(found).notes
    )
    noisy = compare_axis(
        dataclasses.replace(run, rows=tuple(row for row in run.rows if row["ber"] != "0")),
        "stack",
        options=Options(test=Method.RANKS),
    )
    assert any(
        "after correction for 1 comparison no p can be below 0.05. Take 6 pairs, or compare less" in line
        for line in report(noisy).notes
    )


@pytest.mark.parametrize(("all_pairs", "sides"), [(False, ["ab", "ac"]), (True, ["ab", "ac", "bc"])])
def test_all_pairs_are_all_pairs(all_pairs, sides):
    runs = [results(name, {"0": [1, 2, 3]}) for name in "abc"]
    assert ["".join(pair.sides) for pair in compare_runs(runs, Options(all_pairs=all_pairs)).pairs] == sides


@pytest.mark.parametrize("test", list(Method))
def test_the_other_way_round_is_the_same_with_the_other_sign(drawn, test):
    one = compare_axis(drawn, "stack", "cubic", Options(test=test)).pairs
    other = compare_axis(drawn, "stack", "fy97-reno", Options(test=test)).pairs
    for a, b in zip(one, other, strict=True):
        assert b.effect.difference.number == pytest.approx(-a.effect.difference.number)
        assert b.effect.ratio.number == pytest.approx(1 / a.effect.ratio.number)
        assert (b.effect.p, b.p_holm) == (pytest.approx(a.effect.p), pytest.approx(a.p_holm))
        if a.effect.difference.low is not None:
            assert b.effect.difference.low == pytest.approx(-a.effect.difference.high)


def test_the_order_of_rows_does_not_matter(drawn):
    rows = tuple(random.Random(6).sample(drawn.rows, len(drawn.rows)))

    def numbers(results):
        return {
            pair.key: (pair.effect.difference.number, pair.effect.p, pair.p_holm)
            for pair in compare_axis(results, "stack", "cubic").pairs
        }

    shuffled = numbers(dataclasses.replace(drawn, rows=rows))
    assert shuffled == {key: pytest.approx(found) for key, found in numbers(drawn).items()}


@pytest.mark.parametrize(
    ("test", "repeats", "families", "is_paired"),
    [(Method.MEANS, 4, 1000, True), (Method.MEANS, 4, 150, False), (Method.RANKS, 8, 1000, True)],
)
@pytest.mark.slow
def test_families_without_a_difference_are_rarely_called_certain(monkeypatch, test, repeats, families, is_paired):
    """Of families in which no stack differs, at most 5 % have anything that is certain, within the binomial's 99.9 %.

    For means the values are normal and the share is close to 5 %. Ranks are discrete: their share is lower, with skewed
    values too.
    """
    cells = demo_cells("sweep.ber=[1e-7, 1e-6, 1e-5]", f"repeats={repeats}")
    planned = {cell.id: planning.plan(cell) for cell in cells}
    monkeypatch.setattr(comparing, "plans_of", lambda _results: planned if is_paired else {})
    draws = random.Random(1997)
    empty = [
        {"cell": cell.id, "stack": cell.axes["stack"], "ber": str(cell.axes["ber"]), "repeat": str(cell.repeat)}
        | {"status": "completed", "reason": ""}
        for cell in cells
    ]
    false = 0
    for _ in range(families):
        common = {
            key: draws.gauss(0, 3) for key in itertools.product(("1e-07", "1e-06", "1e-05"), range(1, repeats + 1))
        }
        noise = (lambda: draws.gauss(0, 1)) if test is Method.MEANS else (lambda: draws.expovariate(1) ** 2)
        rows = tuple(
            ResultRow(row | {"transfer_s": repr(100 + common[row["ber"], int(row["repeat"])] * is_paired + noise())})
            for row in empty
        )
        found = compare_axis(
            Results(Path("r"), (), ("stack", "ber"), ("transfer_s",), rows), "stack", options=Options(test=test)
        )
        assert {pair.pairing.is_paired for pair in found.pairs} == {is_paired}
        false += any(pair.is_certain for pair in found.pairs)
    assert false <= stats.binom.ppf(0.999, families, 0.05)
    if test is Method.MEANS:
        assert false >= stats.binom.ppf(0.001, families, 0.035)


def test_traffic_is_the_same_for_every_stack_and_differs_between_levels(written):
    wanted = ["sweep.stack=[cubic, fy97-reno]", "sweep.level=[100, 125, 150]", "repeats=2"]
    run = written(scenario.cells(scenario.load("fy97/fig14", wanted)), lambda cell: float(cell.repeat))

    def why(axis):
        return {pair.key: pair.pairing.why for pair in compare_axis(run, axis).pairs}

    nothing, same = "nothing is drawn: no random errors or traffic", "same errors and traffic"
    assert {key[0]: said for key, said in why("stack").items()} == {"100": nothing, "125": same, "150": same}
    assert set(why("level").values()) == {"traffic of background differ"}


@pytest.mark.parametrize(("by", "is_certain"), [(0.004, False), (-0.004, False), (0.1, True), (-0.1, True)])
def test_a_ratio_that_is_printed_as_1_is_no_certain_difference(by, is_certain):
    """10.0 s and 10.004 s, hardly any spread: no reader sees a difference."""
    first, second = [[mean + 1e-4 * repeat for repeat in range(5)] for mean in (10.0, 10.0 + by)]
    (pair,) = compare_runs([results("a", {"0": first}), results("b", {"0": second})], Options()).pairs
    assert pair.p_holm < 0.01
    assert (pair.is_certain, f"{pair.effect.ratio.number:.3g}" != "1") == (is_certain, is_certain)
