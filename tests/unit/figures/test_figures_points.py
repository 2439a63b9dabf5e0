"""The figure that every run can have, and over-time for files show what results.csv, records and captures say. Curves
of formulas: numbers worked out by hand, and the path that a plan states.
"""

import json
import shutil
from dataclasses import replace

import numpy as np
import pytest

from scpslab import plan as plans
from scpslab import scenario
from scpslab.analysis.figures import draw
from scpslab.analysis.figures.model_curves import METRICS, Path, floor_s, mathis_s, path_of, pftk_s
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


# 100 ms, 1 % loss, 1460-byte segments; 1460 + 40 bytes on a line of 100 Mbit/s take 0.12 ms.
PATH = Path(1_460_000, 1460, header_bytes=40, overhead_bytes=0, rate_bps=100_000_000, rtt_s=0.1, loss=0.01)


@pytest.mark.parametrize(
    ("model", "expected_s"),
    [
        # Every packet once.
        (floor_s, 1000 * 1500 * 8 / 1e8),
        # sqrt(3 / (2 * 0.01)) = 12.247 segments a round trip.
        (mathis_s, 1000 / (12.2474 / 0.1)),
        # 0.1 * sqrt(0.02 / 3) + 0.3 * (3 * sqrt(0.03 / 8)) * 0.01 * 1.0032 seconds a segment.
        (pftk_s, 1000 * (0.0081650 + 0.0005529)),
    ],
)
def test_formulas(model, expected_s):
    assert model(PATH) == pytest.approx(expected_s, rel=1e-4)


@pytest.mark.parametrize("model", [mathis_s, pftk_s])
def test_without_loss_the_line_alone_counts(model):
    assert model(replace(PATH, loss=0.0)) == pytest.approx(floor_s(PATH))


def test_metrics_follow_from_the_time():
    assert METRICS["goodput_bps"](8.0, PATH) == pytest.approx(1_460_000)
    assert METRICS["utilization"](floor_s(PATH), PATH) == pytest.approx(1460 / 1500)


def with_errors(run_dir, name, model):
    """The cell's plan with bit errors on the hop's data direction."""
    path = run_dir / "cells" / name / "plan.json"
    plan = json.loads(path.read_text())
    errors = {"model": model, "action": "drop", "seed": "0" * 64, "vector_errors": 1000, "settings": {"ber": 1e-5}}
    errors |= {"drop_packets": [], "drop_min_bytes": 0, "outages": []}
    if model == "clustered":
        errors["settings"] |= {"mean_errors_per_burst": 4.0, "mean_gap_in_burst": 3.0}
    plan["cell"]["impairments"] = [{"link": "hop", "direction": "forward", "errors": errors}]
    path.write_text(json.dumps(plan))


def test_a_delay_in_steps_counts_as_it_begins(run_dir):
    name = "stack=reno,ber=1e-05,r1"
    cell = open_cell(run_dir / "cells" / name)
    path = cell.folder / "plan.json"
    plan = json.loads(path.read_text())
    (hop,) = (link for link in plan["network"]["links"] if link["name"] == "hop")
    hop["directions"][0]["delay_table"] = [[0, 165_000_000], [10**9, 365_000_000]]
    path.write_text(json.dumps(plan))
    assert path_of(cell).rtt_s - path_of(open_cell(cell.folder)).rtt_s == pytest.approx(0.1)


@pytest.mark.parametrize(
    ("model", "loss"),
    [("independent", 1 - (1 - 1e-5) ** (8 * 1456)), ("clustered", 1 - (1 - 0.25e-5) ** (8 * 1456 + 9))],
)
def test_the_path_is_that_of_the_plan(run_dir, model, loss):
    name = "stack=reno,ber=1e-05,r1"
    with_errors(run_dir, name, model)
    path = path_of(open_cell(run_dir / "cells" / name))
    assert (path.rate_bps, path.segment_bytes, path.total_bytes, path.packet_bytes) == (2_000_000, 1400, 60_000, 1456)
    # The formula of bursts leaves out what the borders of a packet cut off: 9 bits of 11648, a few times.
    assert path.loss == pytest.approx(loss, rel=1e-6 if model == "independent" else 3e-5)
    # 265 ms each way, a packet at 2 Mbit/s and over four cables of LANs at 10 Mbit/s, and an acknowledgement back.
    assert path.rtt_s == pytest.approx(
        0.53 + 1456 * 8 / 2e6 + 4 * 1490 * 8 / 10e6 + 56 * 8 / 1e6 + 4 * 90 * 8 / 10e6, rel=1e-6
    )


def test_curves_are_drawn_and_no_line_leads_from_a_point_without_losses(run_dir, drawn):
    """Mathis' and PFTK's formulas say nothing there; the line's rate does."""
    for cell in (run_dir / "cells").glob("*ber=1e-0*"):
        with_errors(run_dir, cell.name, "independent")
    figure = drawn("fy97-fig05", models=("floor", "mathis", "pftk"))
    curves = [line for line in figure.axes[0].lines if str(line.get_label()).startswith("model: ")]
    assert {line.get_label(): np.isfinite(line.get_ydata()).tolist() for line in curves} == {
        "model: line rate": [True] * 3,
        "model: Mathis": [False, True, True],
        "model: PFTK": [False, True, True],
    }
    assert "models of the path" in figure.texts[-1].get_text()


def test_points_with_several_paths_have_no_curve(run_dir, drawn):
    with_errors(run_dir, "stack=bbr,ber=1e-05,r1", "independent")
    with pytest.raises(ResultError, match="several paths at ber"):
        drawn("fy97-fig05", models=("mathis",))
