"""Drawings of networks: every topology has one that a reader of XML takes, with each node and link that it shows once."""

from dataclasses import replace
from itertools import combinations, pairwise
from xml.etree import ElementTree as ET

import pytest

from scpslab import scenario
from scpslab.plan import Plan
from scpslab.scenario import planning
from scpslab.topology import Direction, Network, Queue

SVG = "{http://www.w3.org/2000/svg}"


def chain():
    """A chain of routers that is longer than any of the project's."""
    net, names = Network("own"), [f"r{number}" for number in range(1, 7)]
    for name in ("a", *names, "b"):
        (net.router if name in names else net.host)(name)
    for number, (first, second) in enumerate(pairwise(["a", *names, "b"])):
        there, back = (Direction(way, 10**6, 0, Queue(limit_bytes=10_000)) for way in ("forward", "return"))
        net.link(first, second, a_ip=f"10.0.{number}.1/30", b_ip=f"10.0.{number}.2/30", forward=there, reverse=back)
        net.route(first, "10.0.6.0/30", f"10.0.{number}.2")
        net.route(second, "10.0.0.0/30", f"10.0.{number}.1")
    return net.plan()


def drawn(name):
    loaded = scenario.load("links/transfer" if name == "own" else name)
    plans = [planning.plan(one) for one in scenario.cells(loaded)]
    if name == "own":
        transfer = replace(plans[0].cell.workloads[0], from_="a", to="b", to_ip="10.0.6.2")
        plans = [Plan(network=chain(), cell=replace(plans[0].cell, workloads=(transfer,), impairments=()))]
    return plans[0], planning.drawing(f"The network of {name}", plans)


def boxes(root, style):
    """Left, top, right and bottom of each box."""
    found = [
        [float(box.get(key)) for key in ("x", "y", "width", "height")]
        for box in root.iter(f"{SVG}rect")
        if box.get("class") == style
    ]
    return [(x, y, x + wide, y + high) for x, y, wide, high in found]


NAMES = ["links/transfer", "links/gateway", "fy97/fig04:kernel-test", "links/terminals", "links/one-way", "fp/outages"]


@pytest.mark.parametrize("name", [*NAMES, "np/discard", "own"])
def test_each_topology_has_a_drawing_with_its_nodes_side_by_side_and_its_links_in_a_table(name):
    plan, text = drawn(name)
    root = ET.fromstring(text)  # noqa: S314 (our own output)
    words = [word.text for word in root.iter(f"{SVG}text")]
    relays = {link.via for link in plan.network.links}
    nodes = [node.name for node in plan.network.nodes if node.name not in relays]
    shown = [name for name in nodes if words.count(name)]
    hidden = sum(int(word.split()[1]) for word in words if word.endswith(" more"))
    places = boxes(root, "node")

    assert text == drawn(name)[1]
    assert len(shown) + hidden == len(nodes)
    assert len(places) == len(shown)
    assert not [
        (one, other)
        for one, other in combinations([*places, *boxes(root, "pill")], 2)
        if one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3]
    ]
    _, _, width, height = map(float, root.get("viewBox").split())
    assert all(left > 0 and right < width and top > 0 and bottom < height for left, top, right, bottom in places)
    first = plan.cell.workloads[0]
    assert {first.name, f"{first.from_} → {first.to}"} <= set(words) or "…" in text
    rates = {one.rate_bps for link in plan.network.all_links for one in link.directions} - {None}
    assert not rates or any("bit/s" in word for word in words)
    assert root.find(f"{SVG}title").text
    assert first.kind in root.find(f"{SVG}desc").text


def test_the_path_of_packets_runs_from_left_to_right():
    root = ET.fromstring(drawn("fy97/fig04:kernel-test")[1])  # noqa: S314 (our own output)
    at = {word.text: (float(word.get("x")), float(word.get("y"))) for word in root.iter(f"{SVG}text")}
    path = [at[name] for name in ("ws1", "lan1", "r1", "r2", "lan2", "ws2")]
    assert path == sorted(path)
    assert len({y for _, y in path[1:3]}) == 1
    assert at["ws3"][1] > at["ws1"][1]
