"""What is printed. Tables and figures have the order in which the scenario names its values, whatever their letters
are. What appendix A reads off its figures, from transfers whose course is known.
"""

import csv
import io
import json
import re
from dataclasses import replace

import numpy as np
import pytest
from rich.console import Console

from scpslab.analysis import collect
from scpslab.analysis.figures import draw
from scpslab.analysis.figures.canvas import words_in
from scpslab.analysis.figures.plots import PLOTS, load
from scpslab.analysis.figures.recipe import RECIPES
from scpslab.analysis.figures.source import Source
from scpslab.analysis.metrics.data_flows import families
from scpslab.analysis.statistics import ResultRow, group_rows, mean_of
from scpslab.analysis.table import read_results, report, summarise, with_interval
from scpslab.cli.tables import as_table, print_table
from scpslab.core.errors import ResultError
from scpslab.core.project import ROOT
from scpslab.plan.links import LOSS_CAUSES
from scpslab.runs import RunFolder

from scpslab.kinds.workloads.bulk.metrics import flights


def printed(run_dir, **choices):
    console = Console(width=160, file=io.StringIO())
    print_table(report(summarise(read_results(run_dir), **choices), is_narrow=True), console)
    return console.file.getvalue()


def test_the_table_has_means_intervals_and_counts(run_dir):
    text = printed(run_dir)
    assert "transfer_s" in text
    assert "±" in text
    assert "incomplete: transfer: sender gave up" in text
    line = next(line for line in text.splitlines() if "reno" in line and "1e-05" in line)
    assert [cell.strip() for cell in line.split("│")][-3:-1] == ["1", "1"]


def test_a_mean_of_fewer_cells_than_ended_has_a_mark(run_dir):
    """In the group of which one cell is incomplete, and there alone."""
    lines = printed(run_dir).splitlines()
    marked = [line for line in lines if "*" in line and "│" in line]
    assert len(marked) == 1
    assert "1e-05" in marked[0]
    assert any(line.strip().startswith("* of fewer cells than ended") for line in lines)


def on_topology(run_dir, topology):
    """The same cells, as if they were of another network."""
    found = read_results(run_dir)
    rows = tuple(ResultRow({**row, "topology": topology}) for row in found.rows)
    return replace(found, rows=rows)


@pytest.mark.parametrize(
    ("topology", "first"),
    [
        ("fy97", ("transfer_s", "throughput_report_pct", "utilization", "goodput_bps")),
        ("point_to_point", ("transfer_s", "utilization", "goodput_bps", "retransmissions")),
    ],
)
def test_the_unit_of_a_report_is_shown_first_on_its_own_network_alone(run_dir, topology, first):
    summary = summarise(on_topology(run_dir, topology))
    assert summary.metrics == first
    assert tuple(json.loads(report(summary, is_narrow=True).json)["metrics"]) == first


@pytest.mark.parametrize(
    ("told", "first"),
    [("", "transfer_s"), ("metric: retransmissions\n", "retransmissions"), ("metric: [1]\n", "transfer_s")],
)
def test_a_scenario_says_which_metric_is_first(run_dir, told, first):
    resolved = RunFolder(run_dir).resolved
    resolved.write_text(f"kind: scenario\n{told}")
    assert summarise(read_results(run_dir)).metrics[0] == first


def test_where_a_gateway_is_in_a_cell_what_users_wait_for_is_first(run_dir):
    table = collect(run_dir)
    cell = min((run_dir / "cells").iterdir()) / "plan.json"
    plan = json.loads(cell.read_text())
    plan["cell"]["services"] = [{"kind": "gateway", "name": "near"}]
    cell.write_text(json.dumps(plan))
    table.touch()
    assert read_results(run_dir).first == "user_s"


def test_the_table_fits_a_terminal_and_names_the_columns_left_out(run_dir):
    summary = summarise(on_topology(run_dir, "point_to_point"))
    narrow, whole = report(summary, is_narrow=True), report(summary)
    console = Console(width=200, file=io.StringIO())
    console.print(as_table(narrow))
    assert max(len(line.rstrip()) for line in console.file.getvalue().splitlines()) <= 80
    assert narrow.csv == whole.csv
    shown = [column.name for column in narrow.columns]
    assert shown[2] == "transfer_s"
    left_out = [name for name in summary.metrics if name not in shown]
    assert left_out, "the cells of this run are too wide for all four"
    assert narrow.notes[-1] == f"more columns: --metric {','.join(left_out)} (docs/columns.md lists all)."
    assert [column.name for column in whole.columns][2:6] == list(summary.metrics)


def test_every_column_that_is_asked_for_is_shown(scpslab, run_dir):
    metrics = "transfer_s,goodput_bps,utilization,retransmissions,rtos,user_s"
    _, out, _ = scpslab("results", run_dir, "--metric", metrics)
    assert [name for name in metrics.split(",") if f" {name} " not in out] == []
    assert "more columns" not in out


def test_groups_and_metrics_can_be_chosen(run_dir):
    summary = summarise(read_results(run_dir), ["stack"], ["rtos"])
    assert [group.key for group in summary.groups] == [("bbr",), ("reno",)]
    assert [group.completed for group in summary.groups] == [6, 5]


def test_axes_taken_together_are_named(run_dir):
    assert "all values of ber" in " ".join(printed(run_dir, by=["stack"]).split())
    assert "taken together" not in printed(run_dir)


def test_csv_and_json_say_the_same(run_dir):
    summary = summarise(read_results(run_dir), (), ["transfer_s"])
    rows = list(csv.DictReader(io.StringIO(report(summary).csv)))
    groups = json.loads(report(summary).json)["groups"]
    assert len(rows) == len(groups) == 6
    for row, group in zip(rows, groups, strict=True):
        assert row["ber"] == group["axes"]["ber"]
        assert int(row["completed"]) == group["completed"]
        assert float(row["transfer_s_mean"]) == pytest.approx(group["metrics"]["transfer_s"]["mean"], rel=1e-8)


@pytest.mark.parametrize("content", [b"a,b\n1,2\n", b"", b"\xff\x00\n\x00", b"a" * 200_000])
def test_a_table_of_something_else_is_refused(run_dir, content):
    collect(run_dir).write_bytes(content)
    with pytest.raises(ResultError, match="Delete the file"):
        read_results(run_dir)


@pytest.mark.parametrize(
    ("values", "text"),
    [
        ([], "–"),
        ([21.1], "21.10"),
        ([5, 5, 5], "5"),
        ([1, 2, 3, 4, 5], "3.0 ± 2.0"),
        # An interval of ± 127,062 would say that the rate may be negative.
        ([100_000, 120_000], "110,000 (100,000 to 120,000)"),
        ([0.1234, 0.1236], "0.12350 (0.12340 to 0.12360)"),
        ([0.1234567, 0.1234569], "0.1235"),
        ([-0.1, 0.2, 0.3], "0.13 (-0.10 to 0.30)"),
        ([1, 1, 1, 30], "8 (1 to 30)"),
        ([-1, 1, 1, 30], "8 ± 24"),
    ],
)
def test_a_mean_is_rounded_to_what_its_interval_allows(values, text):
    assert with_interval(mean_of(values)) == text


@pytest.mark.parametrize(
    ("metric", "factor"), [("utilization", 1), ("second_goodput_bps", 2_000_000), ("throughput_report_pct", 97.65625)]
)
def test_an_interval_that_leaves_the_link_s_rate_is_a_range(metric, factor):
    """Three transfers that fill the link, and one with a timeout: Student's interval would reach to 1.04 of the
    rate.
    """
    shares = [0.9, 0.9, 0.9, 0.6]
    rows = [
        ResultRow({"status": "completed", metric: str(share * factor), "second_utilization": str(share)})
        for share in shares
    ]
    (group,) = group_rows(rows, [], [metric])
    assert group.means[metric].has_range
    assert not group_rows([*rows[:3] * 2, rows[3]], [], [metric])[0].means[metric].has_range


def test_few_repeats_show_their_range_and_no_interval(scpslab, monkeypatch, run_dir):
    """Two transfers: Student's interval would reach below 0 s."""
    monkeypatch.setenv("COLUMNS", "200")
    code, said, _ = scpslab("results", run_dir, "--metric", "transfer_s", "--format", "table")
    assert code == 0
    table, _, below = said.partition("mean ± 95 %")
    assert " to " in table
    assert "±" not in table
    assert "mean (least to greatest) where fewer than 4 cells completed" in " ".join(below.split())


def test_bars_of_few_repeats_end_at_values(run_dir):
    (picture,) = draw(run_dir, ["fy97-fig05"], formats=("png",))
    assert "Means and bars from the least to the greatest value, n = " in words_in(picture).caption


COLUMNS, FIGURES = ((ROOT / "docs" / name).read_text(encoding="utf-8") for name in ("columns.md", "figures.md"))


def test_every_metric_has_its_row_and_every_row_its_metric():
    """The page has the kinds of workload in their order, and of each the columns in theirs."""
    tables = COLUMNS.partition("### Bulk transfer\n")[2].partition("### Packet losses by cause\n")[0]
    rows = re.findall(r"^\| `(\w+)` \| .+\. \|$", tables, flags=re.MULTILINE)
    assert rows == [column.name for family in families() for column in family.columns]


def test_every_cause_and_every_kind_of_picture_is_named():
    for cause in LOSS_CAUSES:
        assert f"_lost_{cause}_packets" in COLUMNS
    for plot in PLOTS:
        assert f"`{plot}`" in FIGURES


def test_every_key_of_a_kind_of_picture_is_named():
    keys = {key for model in PLOTS.values() for key in model.model_fields}
    assert [key for key in sorted(keys) if f"`{key}`" not in FIGURES and f"`{key}: " not in FIGURES] == []


SWEEP = """kind: scenario
sweep:
  stack:
    cases: {reno: {}, bbr: {}}
  ber: {set: [links.hop.*.errors.ber], values: [1e-5, 0, 1e-6]}
"""
ORDER = [(stack, ber) for stack in ("reno", "bbr") for ber in ("1e-05", "0", "1e-06")]


@pytest.fixture
def swept(run_dir):
    (run_dir / "scenario.resolved.yaml").write_text(SWEEP)
    return run_dir


def test_groups_are_in_the_order_of_the_sweep(swept):
    assert [group.key for group in summarise(read_results(swept)).groups] == ORDER


def test_so_are_the_lines_that_are_printed(swept, scpslab):
    code, out, _ = scpslab("results", swept, "--format", "csv")
    assert code == 0
    assert [(row["stack"], row["ber"]) for row in csv.DictReader(io.StringIO(out))] == ORDER


def test_so_are_the_rows_of_points(swept):
    figure = load(RECIPES / "points.yaml").draw(Source(swept))
    said = [text.get_text().partition("  ")[0] for axes in figure.axes for text in axes.texts]
    assert said == [", ".join(key) for key in ORDER]


def test_values_that_the_scenario_does_not_name_come_last(swept):
    (swept / "scenario.resolved.yaml").write_text(SWEEP.replace("1e-5, 0, ", ""))
    keys = [group.key for group in summarise(read_results(swept), ("ber",)).groups]
    assert keys == [("1e-06",), ("0",), ("1e-05",)]


@pytest.mark.parametrize(
    "text", ["", "sweep: [\n", "sweep: 3\n", "sweep: {ber: 3, stack: {values: 5}}\n", "- a\n", "\x00"]
)
def test_without_a_scenario_that_can_be_read_they_stay(run_dir, text):
    (run_dir / "scenario.resolved.yaml").write_text(text)
    keys = [group.key for group in summarise(read_results(run_dir)).groups]
    assert keys == sorted(keys, key=lambda key: (key[0], float(key[1])))


AXES = {"stack": "reno", "ber": "0"}


@pytest.fixture
def row(tmp_path, synthetic):
    """The row of one simulated transfer, of 200,000 bytes unless said otherwise."""

    def measure(losses=(), *, is_recorded=False, total_bytes=200_000, **settings):
        run = tmp_path / f"run-{len(list(tmp_path.iterdir()))}"
        run.mkdir()
        (run / "manifest.json").write_text('{"format": 1}')
        transfer = synthetic.simulate(total_bytes, 1400, set(losses), **settings)
        synthetic.write_cell(run, AXES, 1, transfer, total_bytes=total_bytes, is_recorded=is_recorded)
        with collect(run).open(newline="") as file:
            return next(csv.DictReader(file))

    return measure


def test_a_pause_ends_a_flight():
    assert flights(np.array([0.0, 0.1, 0.2, 1.0, 1.1, 5.0]), 0.5) == [3, 2, 1]
    assert flights(np.array([1.0]), 0.5) == [1]


def test_a_transfer_without_loss(row):
    """The model adds a segment for every acknowledgement, of 20 bytes of IP, 20 of TCP and 12 of options; the sink
    answers at once.
    """
    found = row()
    assert [found[f"flight_{index}_segments"] for index in range(1, 5)] == ["1", "2", "4", "8"]
    assert float(found["first_ack_delay_s"]) == pytest.approx(0, abs=1e-6)
    assert found["ack_bytes"] == "52"
    unsaid = ("repair_s", "longest_silence_s", "burst_segments", "window_growth_segments_per_s")
    unsaid += ("flight_share_after_recovery", "rate_congestion_r")
    assert {name: found[name] for name in unsaid} == dict.fromkeys(unsaid, "")


def test_a_window_limits_the_final_rate_and_slow_start_its_beginning(row):
    """Sixteen segments of 11,200 bit in a round trip of 2 * 0.265 s and one packet's 5.824 ms; the window is open after
    four round trips.
    """
    found = row(window_segments=16, total_bytes=1_000_000)
    round_trip_s = 0.53 + 1456 * 8 / 2e6

    # The half in time need not fall between two of its 45 windows.
    assert float(found["final_rate_bps"]) == pytest.approx(16 * 1400 * 8 / round_trip_s, rel=0.5 / 22)
    assert 4 * round_trip_s <= float(found["linear_from_s"]) <= 7 * round_trip_s
    assert float(found["peak_rate_bps"]) >= float(found["final_rate_bps"])


def test_one_segment_is_acknowledged_in_the_second_half_of_its_time(row):
    """Nothing is in the first: all of it in half a round trip of 0.53 s and one packet's time."""
    found = row(total_bytes=1000)
    round_trip_s = 0.53 + 1056 * 8 / 2e6
    assert float(found["final_rate_bps"]) == pytest.approx(2 * 8000 / round_trip_s, rel=0.01)


def test_a_loss_is_repaired_after_a_round_trip(row):
    """Three duplicates come with the three packets behind the lost one: a round trip and three packet times at most."""
    found = row(losses=[40])

    assert 0.53 <= float(found["repair_s"]) <= 0.53 + 5 * 1456 * 8 / 2e6
    assert int(found["burst_segments"]) >= 1
    assert float(found["longest_silence_s"]) > 0


def test_the_estimate_follows_the_queue_that_the_record_has(row):
    """Slow start without a limit passes what the path holds, and the queue grows from then on."""
    grown = row(window_segments=1000, total_bytes=1_000_000, is_recorded=True)

    assert float(grown["queue_estimate_r"]) > 0.8
    assert float(grown["queue_mean_bytes"]) > 1456
    assert float(grown["queue_end_packets"]) > float(row(window_segments=8)["queue_end_packets"])
    assert row()["queue_mean_bytes"] == ""


def test_half_of_the_flight_is_left_after_a_loss(row):
    """The model halves its window of 64 segments, in which growth of a second adds little, and fills it again at
    once.
    """
    found = row(losses=[300], window_segments=64, total_bytes=2_000_000)

    assert 0.4 <= float(found["flight_share_after_recovery"]) <= 1
