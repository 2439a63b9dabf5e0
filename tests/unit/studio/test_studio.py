"""The data of a page read back by a second reader, the places of nodes, and what a page lets a stranger's names do."""

import base64
import gzip
import http.client
import json
import re
from hashlib import sha256
from html.parser import HTMLParser
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scpslab.analysis.run import open_run
from scpslab.measure.packets import FATES, HAS_ARRIVED, HAS_LEFT, NEVER
from scpslab.measure.record import wire_ns
from scpslab.plan.topology import Network
from scpslab.studio import layout, page
from scpslab.studio.cell import cell_data
from scpslab.studio.columns import Column, Columns
from scpslab.studio.page import Entry, Page
from scpslab.studio.run import RunPages
from scpslab.studio.server import Studio
from tests import made_records
from tests.data import synthetic_run

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


def table(raw: bytes, said: dict, earlier: list[dict], talks: list, others: list) -> dict[str, list[int]]:
    """A direction's columns, by docs/plan-format.md, one number after the other."""
    rows, found = said["rows"], {}
    for name in ("from", "row", "flow", "payload", *said["columns"]):
        if name in found:
            continue
        how, width, at, knows = said["columns"][name]
        numbers, values, last = planes(raw, width, at, rows), [], {}
        for row in range(rows):
            before = found["from"][row] - 1 if knows else -1
            flow = found["flow"][row] if how in ("flow", "stream") else 0
            if 0 <= before < len(earlier):
                known = earlier[before]["arrived" if name == "offered" else name][found["row"][row]]
                value = numbers[row] + (talks.index(others[before][known]) if name == "flow" else known)
            elif how == "step":
                value = numbers[row] + (values[-1] if values else 0)
            elif how == "value":
                value = numbers[row]
            else:
                value = (numbers[row] + last.get(flow, 0)) % 2**32
            values.append(value)
            if how in ("flow", "stream"):
                last[flow] = value + (found["payload"][row] if how == "stream" else 0)
        found[name] = values
        if name == "offered":
            found["left"], found["arrived"] = times(raw, said, found)
    return found


def times(raw: bytes, said: dict, found: dict) -> tuple[list, list]:
    """When packets left and arrived; None: never."""
    rows = said["rows"]
    takes, after, bits = (planes(raw, *said["columns"][name][1:3], rows) for name in ("takes", "after", "bits"))
    left, arrived, before = [], [], -(2**62)
    for row, offered in enumerate(found["offered"]):
        gone = max(offered, before) + takes[row]
        left.append(gone if bits[row] & HAS_LEFT else None)
        before = max(before, gone) if bits[row] & HAS_LEFT else before
        base = gone if bits[row] & HAS_LEFT else offered
        arrived.append(base + after[row] if bits[row] & HAS_ARRIVED else None)
    return left, arrived


def test_every_packet_of_the_record_is_in_the_page_to_the_nanosecond(cell):
    data = cell_data(cell)
    raw, read, talks = gzip.decompress(data.columns), [], []
    assert len(data.meta["directions"]) == len(cell.record.by_place) > 1
    for said, packets in zip(data.meta["directions"], cell.record.by_place.values(), strict=True):
        found = table(raw, said["table"], read, said["talks"], talks)
        read.append(found)
        talks.append(said["talks"])
        assert found["offered"] == packets.offered_ns.tolist()
        assert found["arrived"] == [None if t == NEVER else t for t in packets.arrived_ns.tolist()]
        known = [
            left == wire
            for left, wire in zip(found["left"], wire_ns(packets).tolist(), strict=True)
            if left is not None
        ]
        assert all(known)
        for name in ("wire_bytes", "waited_bytes", "payload", "sequence", "acknowledgement", "window", "bit_errors"):
            assert found[name] == getattr(packets, name).tolist(), name
        assert found["id"] == packets.id_.tolist()
        assert found["flags"] == packets.flags.tolist()
        assert [FATES[bits & 15] for bits in found["bits"]] == [FATES[fate] for fate in packets.fate]


def test_a_packet_is_the_same_one_at_the_next_link(cell):
    data = cell_data(cell)
    raw, read, talks = gzip.decompress(data.columns), [], []
    directions = list(cell.record.by_place.values())
    hosts = cell.plan.network.hosts
    lost = np.concatenate([one.id_[one.had("corrupt")] for one in directions])
    for place, said in enumerate(data.meta["directions"]):
        found, near = table(raw, said["table"], read, said["talks"], talks), directions[place]
        read.append(found)
        talks.append(said["talks"])
        begins = cell.record.planned[near.link, near.direction].from_ in hosts
        # The made record has those that the hop loses at the next node before they arrive there.
        is_lost = np.isin(near.id_, lost) & near.is_tcp & (near.payload > 0)
        assert [before == 0 for before in found["from"]] == (is_lost | begins).tolist()
        for row, (before, other) in enumerate(zip(found["from"], found["row"], strict=True)):
            if before:
                far = directions[before - 1]
                assert far.arrived[other]
                assert (far.id_[other], far.sequence[other]) == (near.id_[row], near.sequence[row])
                assert near.offered_ns[row] >= far.arrived_ns[other]


@settings(deadline=None)
@given(NUMBERS)
def test_columns_are_read_back(numbers):
    columns = Columns()
    values = np.array(numbers, np.int64)
    said = columns.table({"plain": Column(values), "step": Column(values, "step")})
    raw = gzip.decompress(columns.packed())
    assert said["rows"] == len(numbers)
    _, width, at, _ = said["columns"]["plain"]
    assert planes(raw, width, at, len(numbers)).tolist() == numbers
    _, width, at, _ = said["columns"]["step"]
    assert np.cumsum(planes(raw, width, at, len(numbers))).tolist() == numbers


def test_a_page_has_the_same_bytes_twice(run):
    assert RunPages(run).cells(run.cells, shown=(0,)).html == RunPages(run).cells(run.cells, shown=(0,)).html


class Elements(HTMLParser):
    """The elements of a page, with their attributes."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list) -> None:
        self.found.append((tag, dict(attrs)))


def test_names_that_are_markup_stay_data():
    said = Page(EVIL, EVIL, [Entry(EVIL, {EVIL: EVIL}, EVIL)]).html
    tags = [tag for tag, _ in Elements(said).found]
    assert "img" not in tags
    assert tags.count("script") == Elements(Page("a", "b", [Entry("c", {}, "d")]).html).found.__len__() - len(
        [tag for tag in tags if tag != "script"]
    )
    data = re.search(r'<script type="application/json" id="data">(.*?)</script>', said, re.DOTALL)[1]
    assert json.loads(data)["title"] == EVIL


def test_a_page_may_run_its_own_program_and_fetch_nothing(run):
    text = RunPages(run).cells(run.cells[:1], shown=(0,)).html
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
    size = sum(len((page.FILES / name).read_bytes()) for name in (*page.MODULES, "page.css", "page.html"))
    assert size <= 160_000
    assert sorted(path.name for path in page.FILES.glob("*.js")) == sorted(page.MODULES)
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
    made = layout.places(type(plan)(network=network.plan(), cell=type("Cell", (), {"workloads": ()})()))
    places = list(made.values())
    assert set(made) == set(names)
    for at, (column, row) in enumerate(places):
        assert all(abs(column - other) >= 1 or abs(row - below) >= 1 for other, below in places[at + 1 :])


@pytest.fixture
def server(run):
    """A server of the run's pages that listens here."""
    studio = Studio(RunPages(run))
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
    assert "cell/0" in text
    assert asked(server, f"{home}cell/0")[0] == asked(server, f"{home}compare/0/1")[0] == 200
    assert asked(server, "/")[0] == asked(server, "/wrong/")[0] == asked(server, f"/{server.token[:-1]}/")[0] == 404
    for path in ("cell/999", "cell/-1", "../", "..%2f..%2fetc/passwd", "cell/0/../../..", "compare/0/999", "x"):
        assert asked(server, home + path)[0] == 404, path
    assert asked(server, home, "POST")[0] == 501


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Host": "localhost:8000"}, 200),
        ({"Host": "127.0.0.1"}, 200),
        ({"Host": "[::1]:1"}, 200),
        ({"Host": "evil.example"}, 403),
        ({"Host": ""}, 403),
        ({"Host": "127.0.0.1.evil.example:80"}, 403),
        ({"Host": "localhost:1", "Origin": "http://localhost:1"}, 200),
        ({"Host": "localhost:1", "Origin": "http://evil.example"}, 403),
        ({"Host": "localhost:1", "Origin": "null"}, 403),
    ],
)
def test_other_hosts_and_origins_are_refused(server, headers, status):
    assert asked(server, f"/{server.token}/", **headers)[0] == status


def test_the_server_ends_with_its_block(run):
    studio = Studio(RunPages(run))
    with studio.running():
        pass
    with pytest.raises(OSError, match="refused"):
        asked(studio, "/")
