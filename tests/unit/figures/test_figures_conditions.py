"""Pictures have their conditions from plans alone; a paper's marks stand only beside cells under their conditions."""

import csv
import re
from dataclasses import replace
from fnmatch import fnmatchcase
from functools import cache

import pytest
from matplotlib.text import Text

from scpslab import scenario
from scpslab.analysis.collect import AFTER_AXES, BEFORE_AXES
from scpslab.analysis.figures import draw
from scpslab.analysis.figures.canvas import Picture, words_in
from scpslab.analysis.figures.conditions import Conditions, differences, facts_of, said
from scpslab.analysis.figures.plots import load, load_all
from scpslab.analysis.figures.plots.metric_vs_axis import MetricVsAxis
from scpslab.analysis.figures.recipe import CellRecipe, mark_sentences, marks_of, origin
from scpslab.analysis.figures.source import NothingToDrawError, Source, axes_of, fits
from scpslab.analysis.run import RunCell
from scpslab.core.errors import ScenarioError
from scpslab.scenario import planning
from tests import golden
from tests.runs import write_cell, write_manifest, write_record

pytestmark = pytest.mark.slow

RECIPE_NAMES = sorted(load_all())
# What a recipe may not say of a run: quantities with units, and words for a condition.
CONDITION = re.compile(
    r"\d[\d,.]*(e-\d+)? ?(bytes?|B|kB|MB|k?bit/s|Mbit/s|baud|ms|s)\b|\d-byte|1e-\d|clean|corruption|under congestion|symmetric|balanced|Vegas|Jacobson|"
    r"\bFTP\b|\bTCP\b|SCPS|file protocol|today|satellite|serial|\bhop\b"
)


@cache
def recipes():
    return load_all()


@cache
def planned(name: str, *overrides: str) -> tuple[RunCell, ...]:
    """The first repeat of every cell of a scenario, as completed cells."""
    cells = scenario.cells(scenario.load(name, ["repeats=1", *overrides]))
    return tuple(RunCell(None, planning.plan(cell), "completed", "", None) for cell in cells)


def scenario_of(recipe) -> str:
    """A scenario of the project that the recipe is drawn for."""
    return next(
        name
        for pattern in recipe.applies_to
        for name in sorted(scenario.names(), key=len)
        if fnmatchcase(name, pattern)
    )


def chosen(recipe, cells) -> list[RunCell]:
    """The cells that a recipe draws, of cells without a folder."""
    if isinstance(recipe, MetricVsAxis):
        return [cell for cell in cells if fits(axes_of(cell), recipe.where, skips_unknown=True)]
    found = [next((cell for cell in cells if fits(axes_of(cell), choice)), None) for choice in recipe.cells or ({},)]
    return [cell for cell in found if cell is not None]


@pytest.mark.parametrize("name", RECIPE_NAMES)
def test_a_recipe_states_the_conditions_of_its_paper_and_none_of_the_run(name):
    recipe = recipes()[name]
    texts = (recipe.title, recipe.source, recipe.x.label, recipe.y.label)
    assert [text for text in texts if CONDITION.search(text.replace("TCP/IP", ""))] == []
    assert (recipe.conditions is not None) == bool(recipe.source)


@pytest.mark.parametrize("name", [name for name in RECIPE_NAMES if recipes()[name].source])
def test_the_project_s_scenario_has_the_conditions_of_the_paper_s_figure(name):
    recipe = recipes()[name]
    cells = chosen(recipe, planned(scenario_of(recipe)))
    assert cells
    said_of = origin(recipe, [cell.plan for cell in cells])
    if name == "fy97-a18":
        assert said_of.endswith("under other conditions: bit error rate 1e-06 instead of 1e-07 or 6e-07."), (
            "the whole sweep has none of the paper's"
        )
    else:
        assert said_of.startswith(f"As {recipe.source}"), said_of


@pytest.mark.parametrize("name", [name for name in RECIPE_NAMES if getattr(recipes()[name], "paper", ())])
def test_all_marks_are_drawn_beside_the_project_s_scenario(name):
    recipe = recipes()[name]
    marks = marks_of(recipe, [cell.plan for cell in planned(scenario_of(recipe))])
    assert [mark.points for mark in marks] == [paper.points for paper in recipe.paper]
    assert not any(mark.left_out for mark in marks)


FIG04 = "fy97/fig04:demo"
TRANSFER = (
    '{"kind": "bulk", "name": "transfer", "from": "ws1", "to": "ws2", "size": "4000000 B", "segment": "1400 B", '
    '"timeout": "3000 s"}'
)
LOAD = '{"kind": "background", "name": "more", "from": "ws3", "to": "ws2", "level": 150}'


def test_the_marks_are_there_when_every_condition_matches():
    marks = marks_of(recipes()["fy97-fig04"], [cell.plan for cell in planned(FIG04)])
    assert [len(mark.points) for mark in marks] == [2, 1, 2]
    said_of = " ".join(mark_sentences(recipes()["fy97-fig04"], [marks], ""))
    assert "Stated values left out (all): no cell at 5e-05." in said_of
    assert "Grey marks are stated values, SCPS-TP, no congestion control: Fig 4" in said_of


@golden.each("marks that are left out")
def test_one_other_condition_removes_the_marks_and_is_named(case):
    cell_plans = [cell.plan for cell in planned(FIG04, case.replace("TRANSFER", TRANSFER).replace("LOAD", LOAD))]
    marks = marks_of(recipes()["fy97-fig04"], cell_plans)
    assert [mark.points for mark in marks] == [(), (), ()]
    case.hold("\n".join(dict.fromkeys(reason for mark in marks for reason in mark.left_out)))
    assert ("congestion of up to 50 % of the link" in said(map(facts_of, cell_plans))) == ("LOAD" in case)


def test_a_mark_needs_the_hosts_that_it_is_for():
    """Without the stack of the period its mark is not drawn beside those of today."""
    recipe = recipes()["fy97-fig04"]
    scps, vegas, tcp = marks_of(
        recipe, [cell.plan for cell in planned("fy97/fig04:kernel-demo", "sweep.stack=[cubic, bbr]")]
    )
    assert scps.points == vegas.points == tcp.points == ()
    assert any("hosts" in reason and "fy97-reno" in reason for reason in tcp.left_out)
    scps, vegas, tcp = marks_of(recipe, [cell.plan for cell in planned("fy97/fig04:kernel-demo")])
    assert scps.points == vegas.points == ()
    assert len(tcp.points) == 3


@pytest.mark.parametrize(
    ("part", "name"),
    [
        ("sysctls", "net.ipv4.tcp_sack"),
        ("routes", "rto_min_ms"),
        ("transfer", "send_window_bytes"),
        ("transfer", "receive_window_bytes"),
    ],
)
def test_hosts_are_compared_to_the_last_setting(part, name):
    plan = next(
        cell.plan
        for cell in planned(FIG04)
        if cell.plan.cell.axes["stack"] == "fy97-reno" and cell.plan.cell.axes["ber"] == 0
    )
    wanted = Conditions.model_validate({"hosts": {"preset": "fy97-reno"}})
    assert differences(wanted, plan) == ()
    if part == "transfer":
        (transfer,) = plan.cell.workloads
        changed = replace(plan, cell=replace(plan.cell, workloads=(replace(transfer, **{name: 1}),)))
    else:
        at = [node.name for node in plan.network.nodes].index("ws2" if part == "sysctls" else "ws1")
        nodes = list(plan.network.nodes)
        nodes[at] = replace(
            nodes[at],
            **(
                {"sysctls": {**nodes[at].sysctls, name: "1"}}
                if part == "sysctls"
                else {"routes": tuple(replace(route, **{name: 3000}) for route in nodes[at].routes)}
            ),
        )
        changed = replace(plan, network=replace(plan.network, nodes=tuple(nodes)))
    (difference,) = differences(wanted, changed)
    assert difference.name == "hosts"


def test_an_axis_called_ber_that_sets_something_else_gets_no_marks():
    cells = planned("fy97/fig04:demo")
    # The label says 1e-05, the plan has no errors.
    lying = [
        replace(cell.plan, cell=replace(cell.plan.cell, impairments=planned(FIG04)[0].plan.cell.impairments))
        for cell in cells
        if cell.plan.cell.axes["ber"] == 1e-5
    ]
    marks = marks_of(recipes()["fy97-fig04"], lying)
    assert not any(mark.points for mark in marks)
    assert "bit error rate 0 instead of 1e-05" in marks[0].left_out


def test_values_without_conditions_are_refused(tmp_path):
    path = tmp_path / "mine.yaml"
    path.write_text(
        "kind: figure\nversion: 1\nplot: metric-vs-axis\ntitle: a\nmetric: transfer_s\naxis: ber\nx: {label: x "
        "(1)}\ny: {label: y (s)}\npaper: [{label: a, source: b, points: [[0, 1]]}]\n"
    )
    with pytest.raises(ScenarioError, match="values of a paper without conditions"):
        load(path)


# What changes of every scenario, and words of the old conditions that no picture may then have.
OTHER = {
    "fy97": (
        (
            "workloads.transfer.size=77777 B|links.hop.*.rate=3 Mbit/s|"
            "links.hop.forward.delay=77 ms|links.hop.return.delay=78 ms"
        ),
        "4,000,000|500,000|4000000|2 Mbit/s|9600|9.6 kbit/s|265 ms|530 ms|1400-byte|512-byte|clean|corruption",
    ),
    "sgls": (
        "links.serial.forward.rate=38400 bit/s|parameters.inherent_delay=77 ms",
        "115200 baud there|23.3 ms|46.6 ms|FTP over|balanced serial|1000 kB at",
    ),
}


def write_run(folder, cells, synthetic, monkeypatch, *, has_captures=True):
    """A run with plans, captures of small transfers, and a table of results for the metrics of the recipes."""
    metrics = ("transfer_s", "throughput_report_pct", "goodput_bps")
    columns = [*BEFORE_AXES, *dict.fromkeys((*cells[0].plan.cell.axes, *AFTER_AXES)), *metrics]
    rows = []
    for number, cell in enumerate(cells):
        plan, key = cell.plan, cell.plan.cell
        ended = {"epoch_realtime_ns": synthetic.EPOCH_NS, "virtual_s": 1.0}
        path = write_cell(folder / "cells" / f"c{number}", plan, **ended)
        place = {"scenario": key.scenario, "topology": plan.network.topology, "cell": key.id}
        ended = {"repeat": 1, "status": "completed"}
        rows.append({"stack": "x", **axes_of(cell), **place, **ended, **dict.fromkeys(metrics, 10 + number)})
        (transfer, *_) = plan.cell.workloads
        if has_captures:
            monkeypatch.setattr(synthetic, "SERVER", (transfer.to_ip, transfer.port))
            packets = synthetic.simulate(transfer.bytes_, transfer.segment_bytes, {30}, rate_bps=3_000_000)
            synthetic.write_capture(path / "captures" / "ws4.pcap", packets.source)
            synthetic.write_capture(path / "captures" / "ws2.pcap", packets.sink)
            lines = [{"t_s": t / 10, "packets": 1, "bytes": 1456, "drops": 0} for t in range(60)]
            write_record(path, "hop-data-queue", lines)
    write_manifest(folder, cells[0].plan.cell.scenario)
    with (folder / "results.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, columns, restval="")
        writer.writeheader()
        writer.writerows(rows)
    return folder


def texts_of(figure) -> str:
    found = [text.get_text() for text in figure.findobj(Text)]
    assert isinstance(figure, Picture)
    found += [figure.words.title, figure.words.conditions, figure.words.caption]
    # Where the caption names a difference, it names the paper's value as the other one.
    return re.sub(r"\s+instead of .*?(?=[;.]( |$)|, [a-z]+ |$)", "", " ".join("\n".join(found).split()))


@pytest.mark.parametrize("name", [name for name in RECIPE_NAMES if recipes()[name].source])
def test_no_picture_says_what_was_not_run(name, tmp_path, synthetic, monkeypatch):
    recipe = recipes()[name]
    scenario_name = scenario_of(recipe)
    overrides, old = (words.split("|") for words in OTHER[scenario_name.split("/")[0]])
    if scenario_name == "sgls/itc-balanced":
        overrides, old = ["sweep.rate=[38400 bit/s]"], ["115200", "FTP over", "balanced serial"]
    if recipe.conditions.segment not in (None, (50,)):
        overrides.append("workloads.transfer.segment=333 B")
    whole = planned(scenario_name, *overrides)
    cells = chosen(recipe, whole)[: 3 if isinstance(recipe, CellRecipe) else 12]
    run = write_run(tmp_path / "run-0001", cells, synthetic, monkeypatch, has_captures=isinstance(recipe, CellRecipe))
    try:
        figure = recipe.draw(Source(run))
    except NothingToDrawError as error:
        pytest.fail(f"nothing drawn: {error}")
    shown = texts_of(figure)
    assert not any(word in shown for word in old), [word for word in old if word in shown]
    assert "under other conditions" in figure.words.caption
    assert figure.words.conditions.startswith(cells[0].plan.network.topology)
    assert ("3 Mbit/s" if scenario_name.startswith("fy97") else "38400 baud") in figure.words.conditions
    assert "report: " not in shown, "a mark of the paper"


def test_another_cell_than_the_recipe_s_is_described_as_itself(tmp_path, synthetic, monkeypatch):
    recipe = recipes()["fy97-a04"]
    cell = next(
        cell
        for cell in planned("fy97/fig04:kernel-demo", "workloads.transfer.size=77777 B")
        if cell.plan.cell.axes["stack"] == "cubic"
    )
    run = write_run(tmp_path / "run-0001", [cell], synthetic, monkeypatch)
    figure = recipe.draw(Source(run, (cell.id,)))
    assert "kernel TCP, cubic" in figure.words.conditions
    assert not re.search("SCPS|egas", texts_of(figure).split("hosts")[0])
    assert "under other conditions: size 77,777 bytes instead of 4,000,000 bytes, hosts" in figure.words.caption


def test_a_picture_s_file_has_its_words(run_dir):
    (path,) = [path for path in draw(run_dir, ["fy97-fig04"]) if path.suffix == ".png"]
    words = words_in(path)
    assert words is not None
    assert words.title == "Throughput against bit error rate"
    assert "bulk: 60,000 bytes in 1400-byte segments" in words.conditions
    assert "<dc:description>fy97" in path.with_suffix(".svg").read_text()
    path.write_bytes(b"half")
    assert words_in(path) is None
