"""Pictures of a synthetic run: they exist, are the same bytes every time, and refuse what they cannot show."""

import json

import pytest
from matplotlib.figure import Figure

from scpslab.analysis.figures import draw
from scpslab.analysis.figures.plots import metric_vs_axis
from scpslab.analysis.figures.plots.metric_vs_axis import _look, _Positions
from scpslab.analysis.figures.source import NothingToDrawError, Source, axis_number
from scpslab.analysis.statistics import Group
from scpslab.core.errors import ResultError

pytestmark = pytest.mark.slow

CELL = "stack=reno,ber=1e-05,r1"


def test_all_that_applies_is_drawn_without_asking(run_dir):
    names = {path.name for path in draw(run_dir, formats=("svg",))}
    assert {"fy97-fig04.svg", "fy97-fig05.svg"} <= names
    # Recipes of other scenarios, and of cells that this run does not have, are left out.
    assert "fy97-fig06.svg" not in names
    assert "fy97-a01.svg" not in names


@pytest.mark.parametrize(("name", "cells"), [("fy97-fig04", []), ("over-time", [CELL])])
def test_the_same_run_gives_the_same_bytes(run_dir, name, cells):
    def files():
        paths = draw(run_dir, [name], cells=cells, formats=("png", "svg", "pdf"))
        return {path.suffix: path.read_bytes() for path in paths}

    first = files()
    assert list(first) == [".png", ".svg", ".pdf"]
    assert files() == first
    assert b"<dc:date>" not in first[".svg"]
    assert first[".pdf"].startswith(b"%PDF")
    assert b"CreationDate" not in first[".pdf"]


@pytest.mark.parametrize("name", ["fy97-a01", "fy97-a02", "fy97-a03", "fy97-a10", "fy97-a12"])
def test_every_kind_of_single_cell_figure_is_drawn_for_the_cell_wanted(run_dir, name):
    (png,) = draw(run_dir, [name], cells=[CELL], formats=("png",))
    assert png.name == f"{name}-{CELL}.png"
    assert png.read_bytes().startswith(b"\x89PNG")


def test_a_damaged_capture_is_an_error_even_when_nobody_asked_for_the_figure(run_dir):
    for cell in (run_dir / "cells").iterdir():
        plan = json.loads((cell / "plan.json").read_text())
        plan["cell"]["axes"]["stack"] = "fy97-reno"
        (cell / "plan.json").write_text(json.dumps(plan))
        if (cell / "captures").is_dir():
            (cell / "captures" / "ws4.pcap").write_bytes(b"\xff" * 100)
    with pytest.raises(ResultError, match=r"ws4\.pcap"):
        draw(run_dir)


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("1e-06", 1e-6),
        ("150 %", 1.5),
        ("1 %", 0.01),
        ("0.7%", 0.007),
        ("150", 150),
        ("2 Mbit/s", 2e6),
        ("250 ms", 250e6),
        ("reno", None),
    ],
)
def test_axis_values_are_read_as_numbers_with_or_without_units(text, number):
    assert axis_number(text) == number


def test_a_panel_for_each_value_and_only_the_cells_meant(run_dir):
    """Two stacks make two panels with the same scales; `where` leaves one of three BERs out, and must leave
    something.
    """
    x, y = {"label": "Bit error rate", "scale": "log"}, {"label": "Time (s)"}
    keys = {"metric": "transfer_s", "axis": "ber", "panels": "stack", "where": {"ber": (0, 1e-6)}, "x": x, "y": y}
    keys |= {"kind": "figure", "version": 1, "plot": "metric-vs-axis", "title": "t", "source": "s"}

    def picture(**changed):
        return metric_vs_axis.MetricVsAxis.model_validate(keys | changed).draw(Source(run_dir))

    figure = picture()
    assert [axes.texts[-1].get_text() for axes in figure.axes] == ["stack bbr", "stack reno"]
    assert figure.axes[0].get_ylim() == figure.axes[1].get_ylim()
    # What the second panel shows is inside the limits too.
    for metric in ("transfer_s", "goodput_bps"):
        figure = picture(metric=metric)
        ends = [y for axes in figure.axes for bar in axes.containers[0].lines[2][0].get_segments() for _, y in bar]
        assert figure.axes[0].get_ylim()[1] > max(ends)
    assert all(len(axes.containers[0].lines[0].get_xdata()) == 2 for axes in figure.axes)
    with pytest.raises(NothingToDrawError, match="found no cell"):
        picture(where={"ber": 0.5})


def test_panels_of_sizes_stand_in_the_order_of_the_sizes():
    def ordered(*values):
        return [
            group.key[0] for group in metric_vs_axis._by_number([Group((value, "x"), 1, 0, 0, {}) for value in values])
        ]

    assert ordered("1 MB", "10 kB", "100 kB", "10 kB") == ["10 kB", "10 kB", "100 kB", "1 MB"]
    assert ordered("reno", "10 kB", "bbr") == ["reno", "10 kB", "bbr"]


def test_zero_stands_left_of_a_break_on_a_log_axis_of_decades():
    """Decades have raised digits and are no formulas: these are off, because titles and labels come from people's
    files.
    """
    position, axes = _Positions([0.0, 1e-7, 1e-5], is_log=True), Figure().add_subplot()
    axes.set_xscale("log")
    metric_vs_axis._mark_decades(axes, position)

    assert position(0.0) < 1e-7 / 5
    assert position(1e-7) == 1e-7
    assert [label.get_text() for label in axes.get_xticklabels()][:3] == ["0", "10⁻⁷", "10⁻⁶"]


def test_no_series_stands_at_a_negative_error_rate_on_a_linear_axis():
    assert _Positions([0.0, 100.0], is_log=False)(0.0) == 0.0
    position = _Positions([0.0, 1e-7, 1e-6, 5e-5], is_log=False)
    for place in (-3.0, -0.5, 0.5, 3.0):
        assert 0 <= position(0.0, place) < position(1e-7, -3.0)
        assert position(1e-7, place) < position(1e-6, -3.0)


@pytest.mark.parametrize(
    ("unit", "text", "fits"),
    [
        ("ms", "25 ms", True),
        ("s", "25 ms", True),
        ("kbit/s", "25 ms", False),
        ("ms", "25", False),
        ("%", "1e-06", True),
        ("%", "25 ms", False),
    ],
)
def test_a_unit_counts_quantities_of_its_kind(unit, text, fits):
    assert metric_vs_axis._counts_in(unit, text) is fits


def test_every_series_has_a_look_of_its_own():
    """Also where there are more of them than colours."""
    for others in (1, 2):
        looks = [tuple(_look(first, rest, others).values()) for first in range(14) for rest in range(others)]
        assert len(set(looks)) == 14 * others
