"""The data of a page read back by a second reader, the places of nodes, and what a page lets a stranger's names do."""

import base64
import gzip
import http.client
import json
import re
import shutil
import socket
import struct
from contextlib import ExitStack
from copy import copy
from dataclasses import replace
from hashlib import sha256
from html import escape
from html.parser import HTMLParser
from itertools import pairwise
from urllib.parse import quote

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scpslab.analysis.run import RunCell, open_run
from scpslab.cli.shell import shell_plan
from scpslab.core.errors import CapabilityError
from scpslab.lab.packets import STATE_COLUMNS
from scpslab.measure.connections import ACK
from scpslab.measure.losses import Fates
from scpslab.measure.packets import FATES, HAS_ARRIVED, HAS_LEFT, NEVER
from scpslab.measure.record import wire_ns
from scpslab.measure.states import States
from scpslab.measure.traces import flow_of, round_trips
from scpslab.plan import flows
from scpslab.plan.topology import Network
from scpslab.runs import CellFiles
from scpslab.studio import page
from scpslab.studio.cell import cell_data, read_qlog
from scpslab.studio.live import Live
from scpslab.studio.page import Entry, Page, RunPages, path_of
from scpslab.studio.rows import REPAIRS, Column, Columns, Rows, conversations
from scpslab.studio.server import Studio
from tests import made_records
from tests.data import synthetic_run

from scpslab.kinds.services.gateway.plan import GatewayService
from scpslab.kinds.services.host_gateway.plan import HostGatewayService

NUMBERS = st.lists(st.integers(-(2**52), 2**52), max_size=40)
EVIL = '</script><img src=x onerror="alert(1)"><!-- \u2028 &amp; {{7*7}}'


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A run; the first cell has a record of packets, with losses."""
    folder = synthetic_run.write_run(tmp_path_factory.mktemp("run") / "fig04-0", repeats=1)
    first = open_run(folder).cells[0]
    transfer = synthetic_run.simulate(60_000, 1400, {3, 9, 10}, window_segments=12)
    content = made_records.written(synthetic_run.recorded(first.plan, transfer))
    first.packets_file.write_bytes(content)
    return open_run(folder)


@pytest.fixture(scope="module")
def cell(run):
    """The cell with a record."""
    return run.cells[0]


def planes(raw: bytes, width: int, at: int, rows: int) -> np.ndarray:
    """Signed numbers, the least significant bytes of all of them first."""
    numbers = np.zeros(rows, object)
    for row in range(rows):
        numbers[row] = int.from_bytes(
            bytes(raw[at + plane * rows + row] for plane in range(width)), "little", signed=True
        )
    return numbers


def table(raw: bytes, meta: dict) -> dict[str, list[int]]:
    """The columns of the packets, by docs/plan-format.md, one number after the other."""
    said, found = meta["packets"], {}
    rows, firsts = said["rows"], {one["first"] for one in meta["directions"]}
    for name, how, width, at, knows in said["columns"]:
        numbers, values, last, gone = planes(raw, width, at, rows), [], {}, 0
        if name == "offered":
            found["left"], found["arrived"] = [], []
        for row in range(rows):
            before = found["before"][row] if knows else -1
            if 0 <= before < row:
                value = numbers[row] + (found["arrived"] if name == "offered" else values)[before]
            elif how == "step":
                value = numbers[row] + (values[-1] if values else 0)
            elif how == "value":
                value = numbers[row]
            else:
                value = numbers[row] + last.get(found["flow"][row], 0)
            values.append(value)
            if how in ("flow", "stream"):
                last[found["flow"][row]] = value + (found["payload"][row] if how == "stream" else 0)
            if name == "offered":
                bits = found["bits"][row]
                gone = -(2**62) if row in firsts else gone
                left = max(value, gone) + found["takes"][row] if bits & HAS_LEFT else None
                gone = gone if left is None else max(gone, left)
                found["left"].append(left)
                base = value if left is None else left
                found["arrived"].append(base + found["after"][row] if bits & HAS_ARRIVED else None)
        found[name] = values
    return found


def read(cell) -> tuple[dict, dict]:
    """What the page has of a cell, and its packets."""
    data = cell_data(cell)
    return data.meta, table(gzip.decompress(data.columns), data.meta)


def test_every_packet_of_the_record_is_in_the_page_to_the_nanosecond(cell):
    meta, found = read(cell)
    assert len(meta["directions"]) == len(cell.record.by_place) > 1
    for said, packets in zip(meta["directions"], cell.record.by_place.values(), strict=True):
        its = {name: values[said["first"] : said["first"] + said["rows"]] for name, values in found.items()}
        assert its["offered"] == packets.offered_ns.tolist()
        assert its["arrived"] == [None if t == NEVER else t for t in packets.arrived_ns.tolist()]
        both = zip(its["left"], wire_ns(packets).tolist(), strict=True)
        assert all(left == wire for left, wire in both if left is not None)
        for name in ("wire_bytes", "waited_bytes", "payload", "window", "bit_errors"):
            assert its[name] == getattr(packets, name).tolist(), name
        assert its["id"] == packets.id_.tolist()
        assert its["flags"] == packets.flags.tolist()
        assert [FATES[bits & 15] for bits in its["bits"]] == [FATES[fate] for fate in packets.fate]
        for row, flow in enumerate(its["flow"]):
            base = meta["conversations"][flow // 2]["base"]
            assert (its["sequence"][row] + base[flow % 2]) % 2**32 == packets.sequence[row]
            if its["flags"][row] & ACK:
                assert (its["acknowledgement"][row] + base[1 - flow % 2]) % 2**32 == packets.acknowledgement[row]


def test_a_packet_is_the_same_one_at_the_next_link(cell):
    meta, found = read(cell)
    directions = list(cell.record.by_place.values())
    rows = [(one, row) for one in directions for row in range(len(one))]
    hosts = cell.plan.network.hosts
    lost = np.concatenate([one.id_[one.had("corrupt")] for one in directions])
    for said, near in zip(meta["directions"], directions, strict=True):
        begins = cell.record.planned[near.link, near.direction].from_ in hosts
        # The made record has those that the hop loses at the next node before they arrive there.
        is_lost = np.isin(near.id_, lost) & near.is_tcp & (near.payload > 0)
        befores = found["before"][said["first"] : said["first"] + said["rows"]]
        assert [before == -1 for before in befores] == (is_lost | begins).tolist()
        for row, before in enumerate(befores):
            if before >= 0:
                far, other = rows[before]
                assert far.arrived[other]
                assert (far.id_[other], far.sequence[other]) == (near.id_[row], near.sequence[row])
                assert near.offered_ns[row] >= far.arrived_ns[other]


def test_the_losses_of_the_page_are_those_that_scpslab_losses_lists(cell):
    data = cell_data(cell)
    raw, said = gzip.decompress(data.columns), data.meta["lost"]
    columns = {name: planes(raw, width, at, said["rows"]) for name, _, width, at, _ in said["columns"]}
    rows, starts = np.cumsum(columns["row"]).tolist(), [one["first"] for one in data.meta["directions"]]
    listed = sorted(Fates(cell.record).lost(), key=lambda one: one.t_s)
    places = list(cell.record.by_place)
    first = [starts[places.index((one.link, one.direction))] for one in listed]
    assert rows == [start + one.packet - 1 for start, one in zip(first, listed, strict=True)] != []
    assert np.cumsum(columns["t_ns"]).tolist() == [round(one.t_s * 1e9) for one in listed]
    assert [REPAIRS[number] for number in columns["repair"]] == [one.repair for one in listed]
    assert [row + by for row, by in zip(rows, columns["by"], strict=True)] == [
        start + one.repaired_packet - 1 if one.repaired_packet else row
        for row, start, one in zip(rows, first, listed, strict=True)
    ]


def test_a_gateway_has_a_connection_on_each_of_its_sides(cell):
    """Both have the same ends; the numbers of their bytes are others."""
    directions = list(cell.record.by_place.values())
    assert len(conversations(cell.record, directions)[0]) == 1
    for place, one in enumerate(directions):
        name = "sequence" if one.flows[0].to_port == 5001 else "acknowledgement"
        moved = (getattr(one, name).astype(np.int64) + 5000) % 2**32
        if one.link in ("r2-lan2", "ws2-lan2"):
            directions[place] = replace(one, **{name: moved})
    talks, numbers = conversations(cell.record, directions)
    assert [talk.nodes for talk in talks] == [["ws1", "r2"], ["r2", "ws2"]]
    assert [directions[talk.last[0]].link for talk in talks] == ["hop", "ws2-lan2"]
    record = copy(cell.record)
    record.by_place = dict(zip(record.by_place, directions, strict=True))
    rows = Rows(record, talks, numbers)
    data = rows.payload > 0
    assert rows.sequence[data].min() == 0
    assert rows.sequence[data].max() < 60_000


GATEWAY = {"device": "gw1", "far": ("10.2.0.0/24",), "rate_bps": None, "rtt_ns": 1, "mtu_bytes": 1500, "seed": 1}
GATEWAY |= {"congestion_control": "vegas", "loss_response": "congestion", "buffer_bytes": None, "timeout_ns": 1}
HOST_GATEWAY = {"lan_device": "gw-lan", "wan_device": "gw-wan", "settings": {}, "seed": 1, "timeout_ns": 1}


def told_by(cell, services, directions, states):
    """Conversation, way, ends and windows of each sender, with services and packets in place of the cell's own."""
    record = copy(cell.record)
    record.by_place = dict(zip(record.by_place, directions, strict=True))
    plan = replace(cell.plan, cell=replace(cell.plan.cell, services=services))
    data = cell_data(RunCell(cell.folder, plan, "completed", "", None, views={"record": record, "states": states}))
    raw = gzip.decompress(data.columns)
    for one in data.meta["series"]:
        (_, how, width, at, _) = one["cwnd"]["columns"][1]
        assert how == "step"
        windows = np.cumsum(planes(raw, width, at, one["cwnd"]["rows"])).tolist()
        yield one["conversation"], one["way"], one["ends"], windows


def ends_of(directions):
    flow = next(flow for one in directions for flow in one.flows if flow.to_port == 5001)
    return (flow.from_ip, flow.from_port), (flow.to_ip, flow.to_port)


def states_of(near, far, windows, gateway="", **known):
    count = np.arange(len(windows))
    ends = (":".join(map(str, one)) for one in (near, far))
    return States(*ends, count, count, np.array(windows), count, count, **known, gateway=gateway)


def test_windows_of_gateways_are_of_their_connections_over_the_link(cell):
    """Between gateways all connections are in one conversation; with the ends of one there is another on each LAN."""
    directions = list(cell.record.by_place.values())
    client, server = ends_of(directions)
    for place, one in enumerate(directions):
        is_there = one.flows[0].to_port == 5001
        if one.link == "hop":
            near, far = ("10.9.0.1", "10.9.0.2") if is_there else ("10.9.0.2", "10.9.0.1")
            outer = {"from_ip": near, "to_ip": far, "from_port": 7168, "to_port": 7168, "protocol": 17, "owner": "near"}
            directions[place] = replace(one, flows=tuple(replace(flow, **outer) for flow in one.flows))
        elif one.link in ("r2-lan2", "ws2-lan2"):
            name = "sequence" if is_there else "acknowledgement"
            directions[place] = replace(one, **{name: (getattr(one, name).astype(np.int64) + 5000) % 2**32})
    near = GatewayService(name="near", node="r1", peer="10.9.0.2", set_up="early", **GATEWAY)
    other = (client[0], client[1] + 1)
    states = (
        states_of(client, server, [1, 2], lost=np.zeros(2)),
        states_of(client, server, [3, 4], "r1"),
        states_of(other, server, [5], "r1"),
        states_of(client, server, [6], "r2"),
        # Of a router without a gateway.
        states_of(other, server, [7], "r3"),
    )
    shown = [":".join(map(str, one)) for one in (client, server)]
    talks, _ = conversations(cell.record, directions)
    assert [(talk.protocol, talk.nodes) for talk in talks] == [
        ("TCP", ["ws1", "r1"]),
        ("UDP", ["r1", "r2"]),
        ("TCP", ["r2", "ws2"]),
    ]
    assert list(told_by(cell, (near,), directions, states)) == [
        (0, 0, shown, [1, 2]),
        (1, 0, shown, [3, 4]),
        (1, 0, [":".join(map(str, other)), shown[1]], [5]),
        (2, 0, shown, [6]),
    ]


def test_a_program_behind_the_gateway_of_its_host_tells_nothing_of_the_link(cell):
    directions = list(cell.record.by_place.values())
    client, server = ends_of(directions)
    own = HostGatewayService(name="gateway-ws1", node="ws1", **HOST_GATEWAY)
    kernel = states_of(client, server, [1, 2], lost=np.zeros(2))
    gateway = states_of(client, server, [3, 4], "ws1")
    for services, windows in (((own,), [[3, 4]]), ((), [[1, 2], [3, 4]])):
        assert [told[-1] for told in told_by(cell, services, directions, (kernel, gateway))] == windows


def test_no_repair_is_told_of_datagrams(cell):
    record = copy(cell.record)
    flows = {place: tuple(replace(flow, protocol=17) for flow in one.flows) for place, one in record.by_place.items()}
    record.by_place = {place: replace(one, flows=flows[place]) for place, one in record.by_place.items()}
    rows = Rows(record, *conversations(record, list(record.by_place.values())))
    assert {REPAIRS[repair] for repair in rows.repair} == {"unknown"}


def test_the_page_times_each_acknowledgement_as_the_metrics_do(cell):
    meta, found = read(cell)
    sender = next(link.ends[0].node for link in cell.plan.network.links)
    (flow,) = [flow_of(one) for one in cell.view(sender).connections]
    timed, before = [], 0
    talk = meta["conversations"][0]
    first = meta["directions"][talk["last"][1 - talk["data_way"]]]
    for row in range(first["first"], first["first"] + first["rows"]):
        if found["flow"][row] == 1 - talk["data_way"] and found["sample"][row] != before:
            before = found["sample"][row]
            timed.append((found["arrived"][row], found["arrived"][row] - found["offered"][before - 1]))
    at_s, took_s = round_trips(flow)
    assert len(timed) == len(at_s) > 3
    assert np.allclose(np.array(timed) / 1e9, np.stack([at_s, took_s], axis=1), atol=2e-9)


def test_a_qlog_tells_of_windows_from_its_first_packet_on(tmp_path):
    events = [
        {"qlog_version": "0.3", "trace": {}},
        {"time": 2, "name": "recovery:metrics_updated", "data": {"congestion_window": 1}},
        {"time": 5, "name": "transport:packet_sent", "data": {}},
        {"time": 6.5, "name": "recovery:metrics_updated", "data": {"congestion_window": 12000, "smoothed_rtt": 600}},
        {"time": 9, "name": "recovery:metrics_updated", "data": {"ssthresh": 8400, "congestion_window": 8400}},
    ]
    path = tmp_path / "transfer-h1-server.qlog.gz"
    path.write_bytes(gzip.compress("".join(f"\x1e{json.dumps(event)}\n" for event in events).encode()))
    assert read_qlog(path).tolist() == [
        [5_000_000, -1, -1, -1],
        [6_500_000, 12_000, -1, 600_000_000],
        [9_000_000, 8_400, 8_400, 600_000_000],
    ]
    for content in (b"none", gzip.compress(b"[1]"), gzip.compress(b'{"data": 1, "name": []}'), gzip.compress(b"x")[:9]):
        path.write_bytes(content)
        assert read_qlog(path).tolist() == []


@pytest.mark.parametrize(
    "wrong",
    [
        '{"name": "recovery:metrics_updated", "time": 1e999, "data": {}}',
        '{"name": "recovery:metrics_updated", "time": 7, "data": {"congestion_window": 1e300}}',
        '{"name": "recovery:metrics_updated", "time": 7, "data": {"congestion_window": %s}}' % (10**30),
        '{"name": "recovery:metrics_updated", "time": 4, "data": {}}',
        '{"name": "recovery:metrics_updated", "time": NaN, "data": {}}',
        "[" * 100_000,
    ],
)
def test_a_hostile_qlog_ends_where_it_is_wrong(tmp_path, wrong):
    path = tmp_path / "transfer-h1-server.qlog.gz"
    begin = '{"name": "transport:packet_sent", "time": 5, "data": {}}'
    path.write_bytes(gzip.compress(f"{begin}\n{wrong}\n".encode()))
    assert read_qlog(path).tolist() == [[5_000_000, -1, -1, -1]]
    content = bytearray(gzip.compress(begin.encode() * 99))
    content[12] ^= 0xFF
    path.write_bytes(content)
    assert len(read_qlog(path)) <= 1


@settings(deadline=None)
@given(NUMBERS)
def test_columns_are_read_back(numbers):
    columns = Columns()
    values = np.array(numbers, np.int64)
    said = columns.table({"plain": Column(values), "step": Column(values, "step")})
    raw = gzip.decompress(columns.packed())
    assert said["rows"] == len(numbers)
    columns = {name: (width, at) for name, _, width, at, _ in said["columns"]}
    width, at = columns["plain"]
    assert planes(raw, width, at, len(numbers)).tolist() == numbers
    width, at = columns["step"]
    assert np.cumsum(planes(raw, width, at, len(numbers))).tolist() == numbers


def test_a_page_has_the_same_bytes_twice(run):
    once, again = (RunPages([run]).page([cell.id for cell in run.cells], shown=(0,)).html for _ in range(2))
    assert once == again


def test_cells_of_two_runs_are_on_one_page(run, tmp_path):
    """Their names say which run it is, also where both have one name; each has its own numbers and packets."""
    moved = tmp_path / run.id
    shutil.copytree(run.folder, moved)
    renamed = tmp_path / "other-0"
    shutil.copytree(run.folder, renamed)
    first = run.cells[0].id
    for folder, own, other in ((moved, run.folder, moved), (renamed, run.id, "other-0")):
        pages = RunPages([run, open_run(folder)])
        assert len(pages.cells) == 2 * len(run.cells)
        assert [name for name in pages.cells if name.endswith(f" {first}")] == [f"{own} {first}", f"{other} {first}"]
        with Studio(pages) as server, server.running():
            home = f"/{server.token}/"
            path = path_of([f"{own} {first}", f"{other} {first}"])
            document = page_data(asked(server, f"{home}{path}")[1])
            assert [one["meta"]["id"] for one in document["cells"]] == [f"{own} {first}", f"{other} {first}"]
            assert document["cells"][0]["numbers"] == document["cells"][1]["numbers"]
            assert document["cells"][0]["meta"]["packets"]["rows"] > 0
            table = page_data(asked(server, home)[1])
            assert {one["place"][0].partition(" ")[0] for one in table["cells"]} == {str(own), str(other)}
            shutil.rmtree(folder / "cells" / open_run(folder).cells[-1].folder.name)
            assert json.loads(asked(server, f"{home}cells")[1]) == {"cells": 2 * len(run.cells) - 1}


def test_a_page_says_what_became_of_packets(run):
    """By the numbers that the record has for fates, in the order in which causes are shown."""
    document = page_data(RunPages([run]).page([run.cells[0].id]).html)
    said = dict(zip(FATES, document["fates"], strict=True))
    causes = dict(document["causes"])
    assert list(causes) == ["queue", "corrupt", "outage", "policy", "policed"]
    assert {fate: words for fate, words in said.items() if words[0]} == {
        cause: [cause, f"lost: {words}"] for cause, words in causes.items()
    }
    assert said["unseen"] == [None, "on its way at the end"]
    assert said["delivered"] == [None, "delivered"]


class Elements(HTMLParser):
    """The elements of a page, with their attributes."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list) -> None:
        self.found.append((tag, dict(attrs)))


def page_data(text: str) -> dict:
    """What a page has, without its columns."""
    return json.loads(re.search(r'<script type="application/json" id="data">(.*?)</script>', text, re.DOTALL)[1])


def test_names_that_are_markup_stay_data():
    said = Page(EVIL, EVIL, [Entry(EVIL, (EVIL, EVIL), EVIL)]).html
    tags = [tag for tag, _ in Elements(said).found]
    assert "img" not in tags
    assert tags.count("script") == Elements(Page("a", "b", [Entry("c", ("", ""), "d")]).html).found.__len__() - len(
        [tag for tag in tags if tag != "script"]
    )
    assert page_data(said)["cells"][0]["id"] == EVIL
    assert re.search(r"<h1>(.*?)</h1>", said, re.DOTALL)[1] == escape(EVIL)


def test_a_page_may_run_its_own_program_and_fetch_nothing(run):
    text = RunPages([run]).page([run.cells[0].id], shown=(0,)).html
    elements = Elements(text).found
    (policy,) = [one["content"] for tag, one in elements if tag == "meta" and one.get("http-equiv")]
    assert policy.startswith("default-src 'none'; script-src 'sha256-")
    assert "unsafe" not in policy
    assert not [one for _, one in elements if {"src", "style", "onclick"} & one.keys() or one.get("href", "#") != "#"]
    program = re.search(r'<script type="module">(.*?)</script>', text, re.DOTALL)[1]
    digest = sha256(program.encode()).digest()
    assert base64.b64encode(digest).decode() in policy


def test_the_viewer_is_small_and_its_names_are_its_own():
    program = page.joined()
    size = sum(
        len((page.FILES / name).read_bytes())
        for name in (*(f"{name}.js" for name in page.MODULES), "page.css", "page.html")
    )
    assert size <= 160_000
    assert sorted(path.stem for path in page.FILES.glob("*.js")) == sorted(page.MODULES)
    names = re.findall(r"^(?:async )?(?:const|let|function|class) (\w+)", program, re.MULTILINE)
    assert len(names) == len(set(names)) > 40
    assert not re.search(
        r"innerHTML|outerHTML|insertAdjacent|document\.write|\beval\b|^import |^export ", program, re.MULTILINE
    )


@pytest.mark.parametrize("count", [2, 3, 5, 9, 17, 40])
@pytest.mark.parametrize("form", ["chain", "star", "mesh"])
def test_no_node_covers_another(run, count, form):
    network = Network("made")
    names = [f"n{number}" for number in range(count)]
    for name in names:
        network.host(name) if form == "star" and name != "n0" else network.router(name)
    pairs = {
        "chain": list(pairwise(names)),
        "star": [("n0", name) for name in names[1:]],
        "mesh": [(a, b) for place, a in enumerate(names) for b in names[place + 1 : place + 3]],
    }[form]
    for number, (a, b) in enumerate(pairs):
        network.link(a, b, a_ip=f"10.{number}.0.1/24", b_ip=f"10.{number}.0.2/24")
    plan = run.cells[0].plan
    made = flows.places(type(plan)(network=network.plan(), cell=type("Cell", (), {"workloads": ()})()))
    places = list(made.values())
    assert set(made) == set(names)
    for at, (column, row) in enumerate(places):
        assert all(abs(column - other) >= 1 or abs(row - below) >= 1 for other, below in places[at + 1 :])


@pytest.fixture
def server(run):
    """A server of the run's pages that listens here."""
    studio = Studio(RunPages([run]))
    with studio.running():
        yield studio


def asked(server: Studio, path: str, method: str = "GET", **headers: str) -> tuple[int, str]:
    connection = http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=30)
    connection.putrequest(method, path, skip_host="Host" in headers)
    for name, value in headers.items():
        connection.putheader(name, value)
    connection.endheaders()
    answer = connection.getresponse()
    return answer.status, answer.read().decode()


def test_pages_are_for_who_has_the_address(server):
    home = f"/{server.token}/"
    status, text = asked(server, home)
    assert status == 200
    names = list(server.pages.cells)
    first, second, *_ = [quote(name, safe="") for name in names]
    assert f"cell/{first}" in text
    assert asked(server, f"{home}cell/{first}")[0] == asked(server, f"{home}compare/{first}/{second}")[0] == 200
    assert [path_of(names[:count]) for count in (1, 2, 3)] == [f"cell/{first}", f"compare/{first}/{second}", ""]
    assert json.loads(asked(server, f"{home}cells")[1]) == {"cells": len(server.pages.cells)}
    assert asked(server, "/")[0] == asked(server, "/wrong/")[0] == asked(server, f"/{server.token[:-1]}/")[0] == 404
    for path in (
        "cell/999",
        "cell/-1",
        "../",
        "..%2f..%2fetc/passwd",
        f"cell/{first}/../..",
        f"compare/{first}/9",
        "x",
    ):
        assert asked(server, home + path)[0] == 404, path
    assert asked(server, home, "PUT")[0] == 501
    assert asked(server, f"{home}live", "POST")[0] == asked(server, f"{home}live")[0] == 404


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Host": "localhost:8000"}, 200),
        ({"Host": "127.0.0.1"}, 200),
        ({"Host": "[::1]:1"}, 200),
        ({"Host": "evil.example"}, 403),
        ({"Host": ""}, 403),
        ({"Host": "127.0.0.1.evil.example:80"}, 403),
        ({"Host": "127.0.0.1@evil.example"}, 403),
        ({"Host": "[::1"}, 403),
        ({"Host": "localhost:1", "Origin": "http://["}, 403),
        ({"Host": "localhost:1", "Origin": "localhost:1"}, 403),
        ({"Host": "localhost:1", "Origin": "http://localhost:1"}, 200),
        ({"Host": "localhost:1", "Origin": "http://evil.example"}, 403),
        ({"Host": "localhost:1", "Origin": "null"}, 403),
    ],
)
def test_other_hosts_and_origins_are_refused(server, headers, status):
    assert asked(server, f"/{server.token}/", **headers)[0] == status


def answered(server: Studio, sent: bytes) -> str:
    """The first line of what it answers to some bytes."""
    with socket.create_connection(("127.0.0.1", server.server_port), timeout=30) as asking:
        asking.sendall(sent)
        return asking.makefile("rb").readline().decode()


@pytest.mark.parametrize(
    ("request_", "status"),
    [
        ("GET http://[/ HTTP/1.1\r\nHost: localhost", 404),
        ("GET //[/ HTTP/1.1\r\nHost: localhost", 404),
        ("GET /\xe9\x80/ HTTP/1.1\r\nHost: localhost", 404),
        ("GET / HTTP/1.1", 403),
        (f"GET /{'x' * 70_000} HTTP/1.1", 414),
        ("GET / HTTP/1.1\r\n" + "\r\n".join(f"X-{number}: y" for number in range(200)), 431),
    ],
)
def test_a_strange_request_gets_an_answer_and_no_traceback(server, capfd, request_, status):
    assert str(status) in answered(server, f"{request_}\r\n\r\n".encode("latin-1"))
    assert capfd.readouterr() == ("", "")


def test_who_goes_away_is_not_told_of(server, capfd):
    whole = f"GET /{server.token}/ HTTP/1.1\r\nHost: localhost\r\n\r\n".encode()
    for sent in (b"", b"GET / HTTP/1.1\r\n", whole):
        with socket.create_connection(("127.0.0.1", server.server_port)) as gone:
            gone.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            gone.sendall(sent)
    assert asked(server, f"/{server.token}/")[0] == 200
    assert capfd.readouterr() == ("", "")


def test_who_is_slow_keeps_nobody_waiting(server):
    with ExitStack() as open_:
        for _ in range(50):
            slow = open_.enter_context(socket.create_connection(("127.0.0.1", server.server_port)))
            slow.sendall(f"GET /{server.token}/ HTTP/1.1\r\nHost: loc".encode())
        assert asked(server, f"/{server.token}/")[0] == 200


def test_a_run_that_is_gone_is_told(tmp_path):
    folder = synthetic_run.write_run(tmp_path / "fig04-0", repeats=1)
    studio = Studio(RunPages([open_run(folder)]))
    with studio.running():
        folder.rename(tmp_path / "gone")
        status, text = asked(studio, f"/{studio.token}/")
        assert (status, str(folder) in text) == (500, True)
        assert asked(studio, f"/{studio.token}/cells")[0] == 500


@pytest.mark.parametrize("listen", ["203.0.113.7", "no-such-name.invalid", "::ffff:203.0.113.7"])
def test_an_address_that_is_not_here_is_told(run, listen):
    with pytest.raises(CapabilityError, match="Choose another with --listen or --port"):
        Studio(RunPages([run]), listen)


def test_a_port_that_is_taken_is_told(run, server):
    with pytest.raises(CapabilityError, match=f"port {server.server_port}: found Address already in use"):
        Studio(RunPages([run]), port=server.server_port)


def test_cells_appear_as_they_end(tmp_path):
    folder = synthetic_run.write_run(tmp_path / "fig04-0", repeats=1)
    last = open_run(folder).cells[-1]
    last.folder.rename(tmp_path / "unfinished")
    studio = Studio(RunPages([open_run(folder)]))
    with studio.running():
        home = f"/{studio.token}/"
        assert quote(last.id, safe="") not in asked(studio, home)[1]
        (tmp_path / "unfinished").rename(last.folder)
        assert quote(last.id, safe="") in asked(studio, home)[1]


NO_STATES = b"scpslab states 1\ncolumns %s\nstates 0\n" % STATE_COLUMNS
STEPS = (
    {"at": "1 s", "do": "run", "node": "h1", "command": f"bash -c 'echo \"{EVIL}\"'", "required": False},
    {"at": "2.5 s", "do": "link", "link": "hop", "rate": "1 Mbit/s"},
    {"at": "3 s", "do": "link", "link": "hop", "direction": "forward", "state": "down"},
    {"at": "4 s", "do": "link", "link": "hop", "direction": "forward", "state": "up"},
)


@pytest.fixture
def lab(tmp_path):
    """A session whose lab is a folder, and what was typed into it."""
    kept = tmp_path / "transcript.yaml"
    kept.write_text(EVIL)
    live = Live(shell_plan("point_to_point", {}), [], lambda: kept, tmp_path / "shown", "a test")
    live.typed = []
    live.lend(live.typed.append)
    return live


@pytest.fixture
def at_work(lab):
    """A server of its page."""
    studio = Studio(lab)
    with studio.running():
        yield studio


def done(server, said, **headers):
    """The answer to an act, as the page sends it."""
    connection = http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=30)
    own = {"Origin": f"http://127.0.0.1:{server.server_port}", "Content-Type": "application/json"} | headers
    sent = {name: value for name, value in own.items() if value}
    connection.request("POST", f"/{server.token}/live", body=json.dumps(said), headers=sent)
    answer = connection.getresponse()
    return answer.status, answer.read().decode()


def test_a_page_acts_in_a_lab(at_work, lab):
    assert done(at_work, {"line": "link hop rate 1 Mbit/s"}) == (200, "{}")
    assert done(at_work, {"do": "interrupt"})[0] == 200
    assert lab.typed == [b"link hop rate 1 Mbit/s\n", b"\x03"]
    status, text = done(at_work, {"do": "keep"})
    assert (status, json.loads(text)["text"]) == (200, EVIL)
    assert "scpslab run" in json.loads(text)["said"]


@pytest.mark.parametrize(
    ("said", "headers", "status"),
    [
        ({"line": "two\nlines"}, {}, 400),
        ({"line": "\x1b[2J"}, {}, 400),
        ({"line": "x" * 1001}, {}, 400),
        ({"do": "more"}, {}, 400),
        (["line"], {}, 400),
        ({"line": "x" * 20_000}, {}, 403),
        ({"line": "exit"}, {"Origin": ""}, 403),
        ({"line": "exit"}, {"Origin": "http://evil.example"}, 403),
        ({"line": "exit"}, {"Origin": "null"}, 403),
        ({"line": "exit"}, {"Host": "evil.example", "Origin": "http://evil.example"}, 403),
        ({"line": "exit"}, {"Content-Type": "text/plain"}, 403),
        ({"line": "exit"}, {"Content-Type": ""}, 403),
        ({"line": "exit"}, {"Content-Length": "0000000000016"}, 403),
        ({"line": "exit"}, {"Content-Length": "9" * 5000}, 403),
    ],
)
def test_nobody_else_acts_in_a_lab(at_work, lab, said, headers, status):
    assert done(at_work, said, **headers)[0] == status
    assert lab.typed == []


def test_deep_json_is_refused(at_work, lab):
    said = b"[" * 16_000
    headers = {"Origin": f"http://127.0.0.1:{at_work.server_port}", "Content-Type": "application/json"}
    connection = http.client.HTTPConnection("127.0.0.1", at_work.server_port, timeout=30)
    connection.request("POST", f"/{at_work.token}/live", body=said, headers=headers)
    assert connection.getresponse().status == 400
    assert lab.typed == []


def test_what_a_lab_prints_is_told_once(at_work, lab):
    def told(after, version=""):
        return json.loads(asked(at_work, f"/{at_work.token}/live?after={after}&version={version}")[1])

    lab.show(EVIL.encode())
    first = told(0)
    assert (first["text"], first["at"]) == (EVIL, len(EVIL.encode()))
    lab.show(b"more")
    again = told(first["at"], first["version"])
    assert again == {"text": "more", "at": first["at"] + 4}
    lab.show(b"x" * 200_000)
    assert told(0)["text"] == "x" * (1 << 17)
    assert told(-1)["text"] == told(0)["text"]
    assert asked(at_work, f"/{at_work.token}/live?after=x")[0] == 500
    assert asked(at_work, f"/{at_work.token}/")[0] == 200
    assert asked(at_work, f"/{at_work.token}/cell/shell")[0] == 404


def test_a_lab_has_its_newest_packets_and_its_acts(lab, cell, tmp_path, monkeypatch):
    out = tmp_path / "out"
    CellFiles(out).packets.parent.mkdir(parents=True)
    lab.update(out)
    assert lab.data()[1].meta["directions"] == []
    plan = lab.plan
    transfer = synthetic_run.simulate(60_000, 1400, {3, 9, 10}, window_segments=12)
    recorded = [replace(one, link="hop") for one in synthetic_run.recorded(cell.plan, transfer) if one.link == "hop"]
    CellFiles(out).packets.write_bytes(made_records.written(recorded))
    CellFiles(out).states[0].write_bytes(b"no record")
    lab.steps.extend(STEPS)
    lab.update(out)
    assert lab.data()[1].meta["directions"] == []
    CellFiles(out).states[0].write_bytes(NO_STATES)
    lab.update(out)
    made, data = lab.data()
    assert lab.data() == (made, data)
    assert data.meta["marks"][0]["text"] == f'h1 echo "{EVIL}"'
    assert data.meta["links"][0]["directions"][0]["outages"] == [[3 * 10**9, 4 * 10**9]]
    assert data.meta["links"][0]["directions"][0]["rates"][0] == [2_500_000_000, 2_000_000]
    first, *_ = lab.controls()
    assert first["now"] == {"rate": 1_000_000, "delay": 250_000_000, "ber": 0, "state": "up"}
    assert plan.cell.events == ()


def test_a_lab_cannot_have_other_files_read(lab, tmp_path):
    records = CellFiles(tmp_path / "out").records
    records.mkdir(parents=True)
    secret = tmp_path / "secret"
    secret.write_text("mine")
    for name in ("packets.rec", "states.rec"):
        (records / name).symlink_to(secret)
    lab.update(tmp_path / "out")
    assert list((tmp_path / "shown").rglob("*.rec")) == []


def test_the_server_ends_with_its_block(run):
    studio = Studio(RunPages([run]))
    with studio.running():
        pass
    with pytest.raises(OSError, match="refused"):
        asked(studio, "/")
