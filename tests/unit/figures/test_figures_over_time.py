"""A transfer over time: what the panels show is what the records and captures say."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from matplotlib.colors import to_hex
from matplotlib.figure import Figure

from scpslab import plan as plans
from scpslab.analysis.figures import draw
from scpslab.analysis.figures.canvas import COLOURS
from scpslab.analysis.figures.plots import load, over_time
from scpslab.analysis.figures.recipe import RECIPES
from scpslab.analysis.figures.source import Source, flow_at
from scpslab.analysis.run import open_cell

from scpslab.kinds.probes.tcp_info.plan import TcpInfo
from scpslab.kinds.probes.verdicts.plan import Verdicts

CELL, OTHER = "stack=reno,ber=1e-05,r1", "stack=bbr,ber=1e-05,r1"


def drawn(run_dir: Path, *cells: str) -> Figure:
    """The figure of these cells."""
    recipe = load(RECIPES / "over-time.yaml")
    return recipe.draw(Source(run_dir, cells))


def panels(figure: Figure) -> dict[str, object]:
    """The panels by their labels."""
    return {axes.get_ylabel(): axes for axes in figure.axes}


def with_records(run_dir: Path, name: str) -> Path:
    """The cell with a tcp_info probe and a verdict log added."""
    folder = run_dir / "cells" / name
    plan = plans.read(json.loads((folder / "plan.json").read_text()))
    probes = (
        *plan.cell.probes,
        TcpInfo(name="tcp-ws1", node="ws1", interval_ns=10**8),
        Verdicts(name="log", link="hop", direction="data"),
    )
    (folder / "plan.json").write_text(plans.text(replace(plan, cell=replace(plan.cell, probes=probes))))
    samples = [
        {
            "t_s": t_s,
            "local": "10.1.0.1:40001",
            "remote": "10.2.0.2:5001",
            "cwnd_segments": cwnd,
            "ssthresh_segments": ssthresh,
            "srtt_ms": 540.0,
        }
        | {"mss_bytes": 1400, "unacked": 1}
        for t_s, cwnd, ssthresh in ((2.0, 4, 2147483647), (3.0, 10, 2147483647), (4.0, 5, 5))
    ]
    (folder / "records" / "tcp-ws1.jsonl").write_text("".join(json.dumps(line) + "\n" for line in samples))
    losses = [
        {"t_s": 2.5, "ordinal": 9, "wire_bytes": 1456, "verdict": "corrupt"},
        {"t_s": 3.5, "ordinal": 20, "wire_bytes": 1456, "verdict": "queue"},
    ]
    (folder / "records" / "log.jsonl").write_text("".join(json.dumps(line) + "\n" for line in losses))
    return folder


def test_without_records_the_captures_and_the_queue_probe_are_drawn(run_dir):
    assert list(panels(drawn(run_dir, CELL))) == [
        "window (kB)",
        "round trip (ms)",
        "queue (kB)",
        "arrived (kB)",
        "rate (Mbit/s)",
    ]


def test_the_legend_names_only_what_is_drawn(run_dir):
    labels = {line.get_label() for line in panels(drawn(run_dir, CELL))["window (kB)"].lines}
    assert "flight" in labels
    assert not labels & {"cwnd", "ssthresh"}


def test_windows_are_in_bytes_and_a_threshold_not_set_is_not_drawn(run_dir):
    folder = with_records(run_dir, CELL)
    start_s = open_cell(folder).plan.cell.workloads[0].start_ns / 1e9
    lines = {line.get_label(): line for line in panels(drawn(run_dir, CELL))["window (kB)"].lines}
    assert np.allclose(lines["cwnd"].get_xdata(), np.array([2.0, 3.0, 4.0]) - start_s)
    assert np.allclose(lines["cwnd"].get_ydata(), [5.6, 14.0, 7.0])
    assert np.array_equal(lines["ssthresh"].get_ydata(), [np.nan, np.nan, 7.0], equal_nan=True)


def test_each_cause_of_loss_has_a_row(run_dir):
    with_records(run_dir, CELL)
    axes = panels(drawn(run_dir, CELL))["lost"]
    assert [label.get_text() for label in axes.get_yticklabels()] == ["queue\ndata: all", "corrupt\ndata: all"]
    start_s = open_cell(run_dir / "cells" / CELL).plan.cell.workloads[0].start_ns / 1e9
    assert sorted(
        (round(float(line.get_xdata()[0]) + start_s, 6), float(line.get_ydata()[0])) for line in axes.lines
    ) == [(2.5, 1.0), (3.5, 0.0)]


def test_the_rate_adds_up_to_the_bytes_of_the_file(run_dir):
    """Also where losses were repaired: at the sink, a retransmission that fills a hole is new data."""
    axes = panels(drawn(run_dir, CELL))["rate (Mbit/s)"]
    assert sum(axes.lines[0].get_ydata()) * 1e6 * 0.5 / 8 == pytest.approx(60_000)
    flow = flow_at(open_cell(run_dir / "cells" / CELL), "sink")
    assert np.any(flow.is_repeated)
    assert int(over_time.new_bytes(flow).sum()) == 60_000


def test_cells_over_each_other_have_a_colour_each_and_one_legend(run_dir):
    figure = drawn(run_dir, CELL, OTHER)
    colours = {to_hex(line.get_color()).upper() for line in panels(figure)["window (kB)"].lines}
    assert colours == {COLOURS[0], COLOURS[1]}
    assert [text.get_text() for text in figure.legends[0].get_texts()][:2] == [
        "stack reno, ber 1e-05",
        "stack bbr, ber 1e-05",
    ]


def test_a_scenario_without_a_recipe_gets_it_and_others_do_not(run_dir):
    assert "over-time.svg" not in {path.name for path in draw(run_dir, formats=("svg",))}
    for cell in (run_dir / "cells").iterdir():
        plan = json.loads((cell / "plan.json").read_text())
        plan["cell"]["scenario"] = "mine"
        (cell / "plan.json").write_text(json.dumps(plan))
    assert [path.name for path in draw(run_dir, formats=("svg",))] == ["over-time.svg", "points.svg"]


def test_a_pdf_is_the_same_bytes_every_time(run_dir):
    (path,) = draw(run_dir, ["over-time"], cells=[CELL], formats=("pdf",))
    first = path.read_bytes()
    assert first.startswith(b"%PDF")
    assert b"CreationDate" not in first
    draw(run_dir, ["over-time"], cells=[CELL], formats=("pdf",))
    assert path.read_bytes() == first


def test_lines_of_sequence_numbers_never_go_back(run_dir):
    recipe = load(RECIPES / "fy97-a21.yaml")
    source = Source(run_dir, (CELL, OTHER))
    figure = recipe.model_copy(update={"capture": "source"}).draw(source)
    lines = [line for line in figure.axes[0].lines if line.get_linestyle() != "None"]
    assert len(lines) == 2
    assert all(np.all(np.diff(line.get_ydata()) > 0) for line in lines)
    marks = [line for line in figure.axes[0].lines if line.get_linestyle() == "None"]
    assert sum(len(line.get_xdata()) for line in marks) > 0
