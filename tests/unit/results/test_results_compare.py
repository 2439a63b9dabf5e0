"""Two runs beside each other."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest

from scpslab.errors import ResultError, UsageError
from scpslab.results.compare import as_csv, as_json, as_table, compare, notes
from scpslab.results.table import Results


def results(name, cells, metric="transfer_s", axis="ber"):
    """A run's rows: `{"0": [1.0, 2.0, None]}` are three repeats at ber 0, the last incomplete."""
    rows = [
        {
            "scenario": "s",
            "topology": "t",
            "cell": f"{axis}={value},r{repeat}",
            axis: value,
            "stack": "kernel",
            "repeat": str(repeat),
            "seed": "",
            "status": "incomplete" if number is None else "completed",
            "reason": "",
            metric: "" if number is None else str(number),
        }
        for value, numbers in cells.items()
        for repeat, number in enumerate(numbers, 1)
    ]
    return Results(Path(name), tuple(rows[0]), (axis,), (metric,), tuple(rows))


def test_differences_have_welchs_interval_and_corrected_p():
    """Of two differences one is 20 standard errors, the other none; t(4) = 24.5 has p = 1.6e-5, doubled for two comparisons."""
    found = compare(results("a", {"0": [20, 21, 22], "1e-6": [5, 6, 7]}), results("b", {"0": [40, 41, 42], "1e-6": [5, 6, 7]}))

    first, second = found.pairs
    assert (first.key, first.difference.number) == (("0",), 20)
    assert first.difference.high - 20 == pytest.approx(2.776445 * (2 / 3) ** 0.5)
    assert first.ratio.number == pytest.approx(41 / 21)
    assert first.p_holm == pytest.approx(2 * first.p)
    assert (first.is_certain, second.is_certain) == (True, False)
    assert notes(found)[0].startswith("1 of 2 differences are certain")


def test_completion_is_compared_where_something_did_not_complete():
    found = compare(results("a", {"0": [1, 1, None, None, None, None, None, None]}), results("b", {"0": [1] * 8}))

    completion = next(pair for pair in found.pairs if pair.metric == "completion_pct")
    assert (completion.first.mean, completion.second.mean) == (25, 100)
    # Fisher's exact test of 2 of 8 against 8 of 8.
    assert completion.p == pytest.approx(0.006993, abs=1e-5)


def test_points_of_one_run_only_are_named():
    found = compare(results("a", {"0": [1], "1e-6": [1]}), results("b", {"0": [1], "1e-5": [1]}))

    assert (found.only_first, found.only_second) == ((("1e-6",),), (("1e-5",),))
    assert any("only in a: 1e-6" in line for line in notes(found))


def test_a_run_compared_with_itself_is_the_same():
    mine = results("a", {"0": [20, 21, 22]})

    found = compare(mine, mine)
    assert found.is_same
    assert not any(pair.is_certain for pair in found.pairs)
    assert "Both runs have the same rows." in notes(found)


def test_it_is_written_as_table_csv_and_json():
    found = compare(results("a", {"0": [20, 21, 22]}), results("b", {"0": [40, 41, 42]}))

    row = next(csv.DictReader(io.StringIO(as_csv(found))))
    assert (row["ber"], row["metric"], float(row["difference"])) == ("0", "transfer_s", 20)
    pairs = json.loads(as_json(found))["pairs"]
    assert pairs[0]["axes"] == {"ber": "0"}
    assert as_table(found).row_count == 1


def test_nothing_in_common_is_an_error():
    with pytest.raises(ResultError, match="found no point of ber in common"):
        compare(results("a", {"0": [1]}), results("b", {"1e-6": [1]}))
    with pytest.raises(UsageError, match="transfer_x"):
        compare(results("a", {"0": [1]}), results("b", {"0": [1]}), metrics=["transfer_x"])
