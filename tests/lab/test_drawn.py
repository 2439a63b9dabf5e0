"""Whole scenarios drawn at random: whatever is composed, the auditor explains every packet, and runs are what they say.

`SCPSLAB_DRAWS` says how many are drawn, `SCPSLAB_DRAWS_SEED` from which seed.
"""

import os
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import dpkt
import pytest

from scpslab.analysis.collect import columns_of
from scpslab.measure.packets import NEVER, read
from scpslab.measure.record import dropped, wire_ns
from scpslab.runs import CellFiles
from tests.lab import drawn
from tests.lab.ran import Lab
from tests.lab.read_twice import columns_hold
from tests.lab.second_reader import ip_of

COUNT, SEED = (
    int(os.environ.get(name, default)) for name, default in (("SCPSLAB_DRAWS", "40"), ("SCPSLAB_DRAWS_SEED", "1"))
)
# What a lab says of itself, and is no fault: a drawn loss list that is used up, a capture that lost packets.
# By seed and number: a lost echo that was waited for as long as any profile may hold one; a rate above the link's, because
# a delay fell while a file passed; packets that a policer drops; flows that take turns where a trace lets many packets leave
# at one instant; packets that are alike, of which a queue of the kernel's drops some; a timeout of SCPS-TP that was over with
# its leave; parts of packets of IPv6.
FOUND = tuple((20261130, number) for number in (66, 81, 84, 147, 157, 249, 89))
SAID = ("all losses drawn for it had happened",)
MILLISECOND_S = 0.001
# A time of dpkt's is a float.
MOMENT_NS = 20_000


@pytest.fixture(scope="module")
def table():
    """Counts what the draws reach, and prints it when all are over."""
    counts = Counter()
    yield counts
    width = max(map(len, counts), default=0)
    print("", *(f"{word:{width}} {counts[word]}" for word in sorted(counts)), sep="\n")


def files_of(ran) -> dict[str, bytes]:
    """The files of the cells, but for plans, which say whether there is a record, and records of packets."""
    folder = ran.folder / "cells"
    files = {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*.*")}
    return {name: content for name, content in files.items() if not name.endswith(("plan.json", ".rec"))}


def bounds_s(said, planned) -> float:
    """Within which the last workload has ended, if it keeps its timeout (40 s for those that have none), and the last
    event has happened. Files of a mix begin when the plan has drawn it.
    """
    begins = [(one["start"], one.get("timeout", "40 s")) for one in said["workloads"]]
    begins += [(step["at"], "0 s") for step in said.get("events", ())]
    drawn_s = [(one.start_ns + one.timeout_ns) / 1e9 for one in planned.workloads if one.part_of != one.name]
    return max(*(seconds(start) + seconds(timeout) for start, timeout in begins), *drawn_s, 0)


def seconds(text) -> float:
    """Of a start that is drawn, the latest."""
    if isinstance(text, dict):
        return seconds(text["random"].partition("..")[2])
    number, unit = text.split()
    return float(number) * {"ms": 0.001, "s": 1.0}[unit]


def seen_by_dpkt(frames: list[tuple[float, bytes]]) -> Counter:
    """Packets of IP and their bytes in a capture, by addresses and protocol."""
    found = Counter()
    for _, frame in frames:
        if (ip := ip_of(dpkt.ethernet.Ethernet(frame).data)) is not None:
            ends = (ip.source, ip.target, ip.protocol)
            found.update({(*ends, "packets"): 1, (*ends, "bytes"): ip.bytes_})
    return found


def recorded_at(cell, node: str, until_ns: float) -> Counter:
    """The same of what the record has a node's captures see until they end: behind its own queues, before errors."""
    found = Counter()
    for packets in read(CellFiles(cell.folder).packets):
        way = cell.record.planned[packets.link, packets.direction]
        if node not in (way.from_, way.to):
            continue
        is_near = way.from_ == node
        seen = ~(dropped(packets, way) | packets.had("policed")) if is_near else packets.arrived_ns != NEVER
        seen &= (wire_ns(packets) if is_near else packets.arrived_ns) <= until_ns
        for number, flow in enumerate(packets.flows):
            mine = seen & (packets.flow == number)
            if mine.any() and flow.type_ in (dpkt.ethernet.ETH_TYPE_IP, dpkt.ethernet.ETH_TYPE_IP6):
                ends = (flow.from_ip, flow.to_ip, flow.protocol)
                size = int(packets.wire_bytes[mine].sum()) - int(mine.sum()) * way.overhead_bytes
                found.update({(*ends, "packets"): int(mine.sum()), (*ends, "bytes"): size})
    return found


def holds_together(cell, row, said) -> None:
    """What is true of every cell that ended, whatever it is made of."""
    assert all(line["closes"] for line in cell.records("accounting"))
    planned = cell.plan.cell
    known = {"kernel", "lab", *(one.name for one in (*planned.workloads, *planned.services))}
    # Of a packet that goes on with other bits, nobody can tell from its ports whose it is.
    known |= {"unknown"} if any(line["flipped_packets"] for line in cell.records("accounting")) else set()
    doubled = set()
    for packets in read(CellFiles(cell.folder).packets):
        account = cell.account(packets.direction, packets.link)
        owned = Counter()
        for number, flow in enumerate(packets.flows):
            owned[flow.owner] += int(packets.wire_bytes[packets.flow == number].sum())
        assert (len(packets), owned.total()) == (account["offered_packets"], account["offered_bytes"])
        assert set(owned) <= known, packets.link
        doubled |= {packets.link} if len(packets.duplicates_ns) else set()
    for probe in cell.plan.cell.probes:
        node = probe.captured_node
        links = {place[0] for place, way in cell.record.planned.items() if node in (way.from_, way.to)}
        # A packet that arrives twice is in the receiver's capture twice, and in the record once.
        if probe.captures_all and not links & doubled:
            with cell.capture_file(probe.name).open("rb") as file:
                frames = list(dpkt.pcap.Reader(file))
            # It ends when the workloads have, and their last packets are under way.
            ended_ns = float(frames[-1][0]) * 1e9 - cell.epoch_realtime_ns + MOMENT_NS if frames else 0
            assert seen_by_dpkt(frames) == recorded_at(cell, node, ended_ns), probe.name
    for column, value in row.items():
        assert value.lower() not in ("nan", "inf", "-inf"), column
        if column.endswith("utilization") and value:
            assert 0 <= float(value) <= 1 + 1e-9, (column, value)
    if cell.status == "completed":
        empty = {column for column in columns_of([cell.plan]) if not row[column]}
        assert empty == {
            name for part in row["unmeasured"].split("; ") for name in part.partition(": ")[0].split(", ") if name
        }
    # A lost echo is waited for as long as full queues on its way can take.
    pings = [cell.lines(one.name, event="summary") for one in planned.workloads if one.kind == "ping"]
    is_answered = all(told and told[0]["received"] == told[0]["sent"] for told in pings)
    assert not is_answered or cell.virtual_s <= bounds_s(said, planned) + MILLISECOND_S, (cell.reason, said)


@pytest.mark.smoke
@pytest.mark.parametrize("number", range(5))
def test_a_small_drawn_scenario_is_explained_and_gives_the_same_again(number, tmp_path: Path, table):
    table.update(held(*drawn.scenario(1, number, tmp_path / "scenario", most_workloads=2), tmp_path))


@pytest.mark.parametrize("number", range(COUNT))
def test_a_drawn_scenario_is_explained_and_gives_the_same_again(number, tmp_path: Path, table):
    table.update(held(*drawn.scenario(SEED, number, tmp_path / "scenario"), tmp_path))


@pytest.mark.parametrize(("seed", "number"), FOUND)
def test_what_draws_found_stays_mended(seed, number, tmp_path: Path):
    assert list(held(*drawn.scenario(seed, number, tmp_path / "scenario"), tmp_path))


def held(path: Path, said, tmp_path: Path) -> Iterator[str]:
    """Runs a scenario twice, without a record then, which changes no other byte; says what it reaches."""
    lab = Lab(tmp_path)
    ran = lab(path)
    rows = {row["cell"]: row for row in ran.rows}
    for cell in ran.cells:
        assert cell.status != "failed" or any(words in cell.reason for words in SAID), cell.reason
        if cell.status != "failed":
            holds_together(cell, rows[cell.id], said)
    bare = lab(path, "packets=off")
    assert files_of(bare) == files_of(ran)
    yield from drawn.reached(said)
    for cell, captured in zip(ran.cells, bare.cells, strict=True):
        if cell.status != "failed":
            yield from columns_hold(cell, captured)
