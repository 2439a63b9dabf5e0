"""The figure that every run can have, and over-time for files show what results.csv, records and captures say."""

import json
import shutil
from dataclasses import replace

import numpy as np
import pytest

from scpslab import plan as plans
from scpslab import scenario
from scpslab.analysis.figures import draw
from scpslab.analysis.figures.plots import points
from scpslab.analysis.figures.source import flow_at
from scpslab.analysis.run import open_cell
from scpslab.analysis.table import read_results
from scpslab.core.errors import ResultError
from scpslab.scenario import planning
from tests.runs import write_cell, write_manifest


def rows_of(figure):
    """The labels of the rows, and the values of the dots in each."""
    (axes,) = figure.axes
    dots = [sorted(line.get_xdata()) for line in axes.lines if line.get_marker() == "o"]
    return [text.get_text() for text in axes.texts], dots


def test_each_repeat_is_a_dot_in_the_row_of_its_point(run_dir, drawn):
    figure = drawn("points")
    labels, dots = rows_of(figure)
    results = read_results(run_dir)
    found = [
        sorted(
            float(row["transfer_s"])
            for row in results.rows
            if (row["stack"], row["ber"]) == (stack, ber) and row["transfer_s"]
        )
        for stack in ("bbr", "reno")
        for ber in ("0", "1e-06", "1e-05")
    ]
    assert labels == ["bbr, 0", "bbr, 1e-06", "bbr, 1e-05", "reno, 0", "reno, 1e-06", "reno, 1e-05  (1 of 2 completed)"]
    assert dots == found
    assert figure.words.title == "One value of every cell: transfer_s"
    assert "Rows: stack, ber." in figure.words.caption
    assert figure.axes[0].get_xlim()[1] > max(max(values) for values in dots if values)


def test_values_below_zero_are_in_the_picture(run_dir, drawn):
    path = run_dir / "results.csv"
    table = read_results(run_dir)
    first = next(row["transfer_s"] for row in table.rows if row["transfer_s"])
    path.write_text(path.read_text().replace(f",{first},", ",-5000.0,", 1))
    low, high = drawn("points", metric="transfer_s").axes[0].get_xlim()
    assert low < -5000
    assert high > 0


def test_another_metric_can_be_named_and_one_that_is_not_there_is_refused(drawn):
    figure = drawn("points", metric="goodput_bps")
    (axes,) = figure.axes
    figure.canvas.draw()
    assert axes.get_xlabel() == "goodput_bps (bit/s)"
    # Large numbers are short.
    assert axes.get_xlim()[1] > 1e5
    assert axes.xaxis.get_offset_text().get_text() == ""
    assert "100 k" in [label.get_text() for label in axes.get_xticklabels()]
    with pytest.raises(ResultError, match="no value of colour"):
        drawn("points", metric="colour")


@pytest.mark.parametrize("has_probes", [True, False])
def test_a_scenario_without_a_recipe_has_figures_with_and_without_probes(run_dir, has_probes):
    assert not {"over-time.svg", "points.svg"} & {path.name for path in draw(run_dir, formats=("svg",))}
    for path in run_dir.glob("cells/*/plan.json"):
        plan = plans.read(json.loads(path.read_text()))
        cell = replace(plan.cell, scenario="mine", probes=plan.cell.probes if has_probes else ())
        path.write_text(plans.text(replace(plan, cell=cell)))
        if not has_probes:
            shutil.rmtree(path.parent / "captures", ignore_errors=True)
    expected = ["over-time.svg", "points.svg"] if has_probes else ["points.svg"]
    assert [path.name for path in draw(run_dir, formats=("svg",))] == expected


def test_more_rows_than_a_screen_shows_are_counted(drawn, monkeypatch):
    monkeypatch.setattr(points, "MOST_ROWS", 2)
    figure = drawn("points")
    assert len(rows_of(figure)[0]) == 2
    assert "4 other points of the sweep are not drawn" in figure.words.caption


@pytest.fixture
def file_run(tmp_path, synthetic, monkeypatch):
    """A cell of sgls/aero-fig02 whose captures have a control connection and a data connection."""
    cell = next(iter(scenario.cells(scenario.load("sgls/aero-fig02:test"))))
    plan = planning.plan(cell)
    (transfer,) = plan.cell.workloads
    ended = {"epoch_realtime_ns": synthetic.EPOCH_NS, "virtual_s": 9.0}
    folder = write_cell(tmp_path / "run-0001" / "cells" / cell.id, plan, **ended)
    write_manifest(folder.parents[1], "sgls/aero-fig02:test")
    # The address of the sender has no prefix length in a packet.
    sender = next(end.ip.split("/")[0] for end in plan.network.serial_links[0].ends if end.node == transfer.from_)
    monkeypatch.setattr(synthetic, "CLIENT", (sender, 40001))
    packets = {"satellite": [], "ground": []}
    for port, size in ((transfer.port, 900), (20_001, transfer.bytes_)):
        monkeypatch.setattr(synthetic, "SERVER", (transfer.to_ip, port))
        sent = synthetic.simulate(size, 1000, set(), rate_bps=92_160)
        packets["satellite"] += sent.source
        packets["ground"] += sent.sink
    for node, seen in packets.items():
        synthetic.write_capture(folder / "captures" / f"{node}.pcap", seen)
    return folder


def test_over_time_shows_the_data_connection_of_a_file(drawn, file_run):
    flow = flow_at(open_cell(file_run), "sink")
    assert flow.total_bytes == 10_000
    figure = drawn("over-time", run=file_run.parents[1])
    panels = {axes.get_ylabel(): axes for axes in figure.axes}
    assert list(panels) == ["window (kB)", "round trip (ms)", "arrived (kB)", "rate (Mbit/s)"]
    t_s, rate = panels["rate (Mbit/s)"].lines[0].get_data()
    assert np.sum(rate) * 0.5 * 1e6 / 8 == pytest.approx(10_000)
    assert len(t_s) == len(rate)
    assert figure.words.conditions.startswith("sgls · kernel TCP, reno · ftp: 10,000 bytes · 115200 baud")
