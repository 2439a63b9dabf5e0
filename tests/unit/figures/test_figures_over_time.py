"""A transfer over time: what the panels show is what the records and captures say."""

import ipaddress
from pathlib import Path

import numpy as np
import pytest
from matplotlib.colors import to_hex
from matplotlib.figure import Figure

from scpslab.analysis.figures.canvas import COLOURS
from scpslab.analysis.figures.plots import over_time
from scpslab.analysis.figures.source import flow_at
from scpslab.analysis.run import open_cell
from scpslab.measure.states import ENDS, SEGMENTS, UNSET
from tests.made_records import Line, packets, tcp, written

CELL, OTHER = "stack=reno,ber=1e-05,r1", "stack=bbr,ber=1e-05,r1"


ACK, SECOND_NS = 0x10, 10**9


def panels(figure: Figure) -> dict[str, object]:
    """The panels by their labels."""
    return {axes.get_ylabel(): axes for axes in figure.axes}


def with_records(run_dir: Path, name: str) -> Path:
    """The cell with states of the kernel's TCP and a record of two lost packets added."""
    folder, columns = run_dir / "cells" / name, ENDS | SEGMENTS
    near, far = (int.from_bytes(ipaddress.IPv4Address(ip).packed, "little") for ip in ("10.1.0.1", "10.2.0.2"))
    ends = {"near": near, "far": far, "near_port": 40001, "far_port": 5001, "mss": 1400, "srtt_us": 540_000}
    told = {"at": [2 * SECOND_NS, SECOND_NS, SECOND_NS], "cwnd": [4, 10, 5], "ssthresh": [UNSET, UNSET, 5]}
    planes = (
        np.array(told.get(name, [ends.get(name, 0)] * 3), np.int64).astype("<i8").view(np.uint8).reshape(3, 8)
        for name in columns
    )
    content = b"".join(its[:, :size].T.tobytes() for its, size in zip(planes, columns.values(), strict=True))
    head = " ".join(f"{name}:{size}" for name, size in columns.items())
    (folder / "records" / "states.rec").write_bytes(f"scpslab states 1\ncolumns {head}\nstates 3\n".encode() + content)
    flow = tcp(("10.1.0.1", 40001), ("10.2.0.2", 5001))
    lost = [
        Line(flow, 2 * SECOND_NS, 5 * SECOND_NS // 2, "corrupt", payload=1400, flags=ACK),
        Line(flow, 7 * SECOND_NS // 2, None, "queue", payload=1400, sequence=1400, flags=ACK),
    ]
    (folder / "records" / "packets.rec").write_bytes(written([packets("hop", "forward", lost)]))
    return folder


def test_without_records_the_captures_are_drawn(drawn):
    """The legend names only what is drawn."""
    found = panels(drawn("over-time", CELL))
    assert list(found) == ["window (kB)", "round trip (ms)", "arrived (kB)", "rate (Mbit/s)"]
    labels = {line.get_label() for line in found["window (kB)"].lines}
    assert "unacknowledged" in labels
    assert not labels & {"cwnd", "ssthresh"}


def test_windows_are_in_bytes_and_a_threshold_not_set_is_not_drawn(run_dir, drawn):
    folder = with_records(run_dir, CELL)
    start_s = open_cell(folder).plan.cell.workloads[0].start_ns / 1e9
    lines = {line.get_label(): line for line in panels(drawn("over-time", CELL))["window (kB)"].lines}
    assert np.allclose(lines["cwnd"].get_xdata(), np.array([2.0, 3.0, 4.0]) - start_s)
    assert np.allclose(lines["cwnd"].get_ydata(), [5.6, 14.0, 7.0])
    assert np.array_equal(lines["ssthresh"].get_ydata(), [np.nan, np.nan, 7.0], equal_nan=True)


def test_the_rate_adds_up_to_the_bytes_of_the_file(run_dir, drawn):
    """Also where losses were repaired: at the sink, a retransmission that fills a hole is new data."""
    axes = panels(drawn("over-time", CELL))["rate (Mbit/s)"]
    assert sum(axes.lines[0].get_ydata()) * 1e6 * 0.5 / 8 == pytest.approx(60_000)
    flow = flow_at(open_cell(run_dir / "cells" / CELL), "sink")
    assert np.any(flow.is_repeated)
    assert int(over_time.new_bytes(flow).sum()) == 60_000


def test_cells_over_each_other_have_a_colour_each_and_one_legend(drawn):
    figure = drawn("over-time", CELL, OTHER)
    colours = {to_hex(line.get_color()).upper() for line in panels(figure)["window (kB)"].lines}
    assert colours == {COLOURS[0], COLOURS[1]}
    assert [text.get_text() for text in figure.legends[0].get_texts()][:2] == [
        "stack reno, ber 1e-05",
        "stack bbr, ber 1e-05",
    ]


def test_a_figure_of_all_cells_takes_no_choice_of_them(scpslab, run_dir):
    code, _, err = scpslab("plot", run_dir, "--figure", "points", "--cell", CELL)
    assert code == 2
    assert "--cell: found a choice of cells for the figure points, which shows all; expected a figure of single" in err
