"""Which packets of a record were lost, which frames of captures they are, and the capture with comments, which dpkt
reads again.
"""

import csv
import io
import json
import shutil
import struct
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import dpkt
import numpy as np
import pytest

from scpslab.analysis.lost_packets import Losses, find_losses, report, resend_columns
from scpslab.analysis.run import open_cell
from scpslab.measure.packets import DELIVERED, FATES, NEVER, Packets, read
from scpslab.plan.links import CORRUPT, QUEUE
from tests import made_records
from tests.runs import write_manifest, write_record

# Ordinals among the data packets, resent ones included.
CORRUPTED, DROPPED = (5, 20), 12
MSS = 1400
COMMENT = dpkt.pcapng.PCAPNG_OPT_COMMENT
CONNECTING = 1  # the SYN is the first packet of the direction


def hop_of(cell: Path) -> Packets:
    """The record of the hop's forward direction."""
    return next(one for one in record_of(cell) if (one.link, one.direction) == ("hop", "forward"))


def record_of(cell: Path) -> tuple[Packets, ...]:
    """The record of a cell's packets."""
    return read(cell / "records" / "packets.rec")


def with_record(cell: Path, change: Callable[[Packets], Packets]) -> None:
    """Changes what the record says of each direction."""
    said = made_records.written([change(one) for one in record_of(cell)])
    (cell / "records" / "packets.rec").write_bytes(said)


def became(hop: Packets, row: int, cause: str) -> Callable[[Packets], Packets]:
    """There and on the links behind, this became of the packet in a row of a direction."""

    def changed(packets: Packets) -> Packets:
        same = (packets.id_ == hop.id_[row]) & (packets.sequence == hop.sequence[row])
        same &= (packets.offered_ns > hop.offered_ns[row]) | (
            (packets.link, packets.direction) == (hop.link, hop.direction)
        )
        fate = np.where(same, FATES.index(cause), packets.fate).astype(np.uint8)
        return replace(packets, fate=fate, arrived_ns=np.where(same & (cause == QUEUE), NEVER, packets.arrived_ns))

    return changed


@pytest.fixture
def cell(tmp_path: Path, synthetic: ModuleType) -> Path:
    """A run's only cell, with a record of what the model lost: two by bit errors, and one in the queue."""
    run_dir = tmp_path / "fig04-golden-0003"
    transfer = synthetic.simulate(60_000, MSS, {*CORRUPTED, DROPPED})
    axes = {"stack": "reno", "ber": "1e-05"}
    folder: Path = synthetic.write_cell(run_dir, axes, 1, transfer, is_recorded=True)
    write_manifest(run_dir, "fig04-golden")
    with_record(folder, became(hop_of(folder), DROPPED + CONNECTING, QUEUE))
    return folder


def found_in(cell: Path) -> Losses:
    """The losses of a cell's folder."""
    return find_losses(open_cell(cell), "a run")


def frames_of(path: Path) -> list[bytes]:
    """The frames of a capture; each is unlike all others, for it has its own time stamp."""
    with path.open("rb") as file:
        return [content for _, content in dpkt.pcap.Reader(file)]


def test_each_loss_is_a_packet_that_never_came_to_the_sink(cell):
    found = found_in(cell)
    assert found.notes == ()
    sent, arrived = frames_of(cell / "captures" / "ws4.pcap"), set(frames_of(cell / "captures" / "ws2.pcap"))
    missing = [number for number, frame in enumerate(sent, start=1) if frame not in arrived]
    assert {lost.frame for lost in found.lost} == set(missing)
    by_frame = sorted(found.lost, key=lambda lost: lost.frame)
    assert [(lost.cause, lost.place) for lost in by_frame] == [
        (CORRUPT, "arrival"),
        (QUEUE, "queue"),
        (CORRUPT, "arrival"),
    ]
    assert [lost.packet for lost in by_frame] == [number + CONNECTING + 1 for number in (5, 12, 20)]
    assert {(lost.source, lost.destination, lost.payload_bytes, lost.flags) for lost in found.lost} == {
        ("10.1.0.1:40001", "10.2.0.2:5001", MSS, "A")
    }


def test_the_frame_and_the_repair_are_those_of_the_capture(cell):
    with (cell / "captures" / "ws4.pcap").open("rb") as file:
        frames = [(t_s, dpkt.ethernet.Ethernet(content).data.data) for t_s, content in dpkt.pcap.Reader(file)]
    first = min(packet.seq for _, packet in frames if packet.flags & dpkt.tcp.TH_SYN and packet.dport == 5001)
    for lost in found_in(cell).lost:
        packet = frames[lost.frame - 1][1]
        assert (packet.seq - first - 1) % 2**32 == lost.seq
        same = [other.seq == packet.seq and other.dport == 5001 for _, other in frames]
        copies = [number for number, is_copy in enumerate(same, start=1) if is_copy]
        assert copies == [lost.frame, lost.repaired_frame]
        assert lost.repair == "repaired"
        assert lost.sent_s <= lost.t_s < lost.repaired_s


def test_a_capture_that_saw_a_loss_s_packet_nowhere_gives_no_frame(cell):
    """Behind the loss: the packet is named all the same."""
    whole = found_in(cell).lost
    (cell / "captures" / "ws4.pcap").unlink()
    found = found_in(cell)
    assert [(lost.capture, lost.frame) for lost in found.lost] == [("", None)] * 3
    assert [(lost.seq, lost.repaired_s, lost.repaired_packet) for lost in found.lost] == [
        (lost.seq, lost.repaired_s, lost.repaired_packet) for lost in whole
    ]


def test_a_capture_cut_short_is_told(cell):
    path = cell / "captures" / "ws4.pcap"
    path.write_bytes(path.read_bytes()[:-7])
    assert found_in(cell).notes[0].startswith(f"{path}: found a capture that ends in the middle of a packet")


@pytest.mark.parametrize(
    ("change", "advice"),
    [
        ({"packets": None}, "The cell was run without a record of its packets. Run its scenario again, without"),
        ({"packets": True}, "records/packets.rec: found no such file; expected the record of the cell's packets. Rem"),
        (
            {"packets": None, "mininet": SimpleNamespace()},
            "Networks of Mininet scripts have no record of packets, only these counts. Describe yours in a scenario.",
        ),
    ],
)
def test_without_a_record_the_counts_are_told_and_what_to_do(cell, change, advice):
    (cell / "records" / "packets.rec").unlink()
    counted = {"link": "hop", "direction": "forward", "queue_packets": 1, "corrupt_packets": 2}
    write_record(cell, "accounting", [counted, {**counted, "queue_packets": 0, "corrupt_packets": 0}])
    opened = open_cell(cell)
    opened = replace(opened, plan=replace(opened.plan, cell=replace(opened.plan.cell, **change)))
    found = find_losses(opened, "a run")
    assert found.lost == ()
    assert found.notes[0] == "hop, forward direction: 1 queue, 2 corrupt, not in this list."
    assert len(found.notes) == 2
    assert advice in found.notes[1]
    assert resend_columns(opened) == {}


def test_bytes_that_nobody_sends_again_are_never_repaired(cell):
    """The first repair is lost, too."""
    first = min(lost.repaired_packet for lost in found_in(cell).lost)
    with_record(cell, became(hop_of(cell), first - 1, CORRUPT))
    found = [lost for lost in found_in(cell).lost if lost.link == "hop"]
    assert sorted(lost.repair for lost in found) == ["never", "never", "repaired", "repaired"]


def columns_of(cell: Path) -> dict[str, str]:
    """The columns on what was sent again, with the monitor's capture as the sender's own."""
    opened = open_cell(cell)
    (transfer,) = opened.plan.cell.workloads
    probes = tuple(
        replace(probe, node=transfer.from_) if probe.captured_node == "ws4" else probe
        for probe in opened.plan.cell.probes
    )
    return resend_columns(replace(opened, plan=replace(opened.plan, cell=replace(opened.plan.cell, probes=probes))))


def test_what_was_sent_again_has_the_cause_of_its_loss_and_its_frame(cell):
    columns = columns_of(cell)
    by_frame = sorted(found_in(cell).lost, key=lambda lost: lost.repaired_frame)
    assert columns["resends"] == "3"
    assert (columns["resends_queue"], columns["resends_corrupt"], columns["resends_superfluous"]) == ("1", "2", "0")
    assert columns["resend_causes"].split() == [lost.cause for lost in by_frame]
    assert columns["resend_frames"].split() == [str(lost.repaired_frame) for lost in by_frame]


def test_a_copy_that_arrived_makes_the_next_one_superfluous(cell):
    """The first loss is undone: its repair was not needed."""
    first = min(lost.packet for lost in found_in(cell).lost if lost.cause == CORRUPT)
    with_record(cell, became(hop_of(cell), first - 1, DELIVERED))
    columns = columns_of(cell)
    assert (columns["resends_queue"], columns["resends_corrupt"], columns["resends_superfluous"]) == ("1", "1", "1")


def test_csv_and_json_say_the_same(cell):
    shown = report(found_in(cell))
    rows = csv.DictReader(io.StringIO(shown.csv))
    fields = json.loads(shown.json)
    assert [row["frame"] for row in rows] == [str(lost["frame"]) for lost in fields["lost"]]
    assert fields["cell"] == "stack=reno,ber=1e-05,r1"


def test_the_pcapng_has_every_frame_and_comments_on_the_lost_ones(scpslab, cell, tmp_path):
    out = tmp_path / "lost.pcapng"
    assert scpslab("losses", cell.parents[1], "--format", "csv", "--pcapng", out)[0] == 0
    with (cell / "captures" / "ws4.pcap").open("rb") as file:
        before = [(int(t_s * 10**9), content) for t_s, content in dpkt.pcap.Reader(file)]
    with out.open("rb") as file:
        reader = dpkt.pcapng.Reader(file)
        assert reader.datalink() == dpkt.pcap.DLT_EN10MB
        assert [content for _, content in reader] == [content for _, content in before]

    packets = packet_blocks(out.read_bytes())
    # The reader's times are floats; the blocks have whole nanoseconds.
    assert [packet.ts_high << 32 | packet.ts_low for packet in packets] == [t_ns for t_ns, _ in before]
    said_of = {
        frame: [option.text for option in packet.opts if option.code == COMMENT]
        for frame, packet in enumerate(packets, start=1)
    }
    comments = {frame: texts[0] for frame, texts in said_of.items() if texts}
    lost = found_in(cell).lost
    assert set(comments) == {one.frame for one in lost} | {one.repaired_frame for one in lost}
    for one in lost:
        assert comments[one.frame].startswith(f"lost: {one.cause}, hop forward {one.place}, at ")
        assert comments[one.repaired_frame] == f"repairs frame {one.frame}"


def packet_blocks(content: bytes) -> list[Any]:
    """The packets of a pcapng file with their options."""
    found, at = [], 0
    while at < len(content):
        kind, length = struct.unpack_from("<II", content, at)
        if kind == dpkt.pcapng.PCAPNG_BT_EPB:
            found.append(dpkt.pcapng.EnhancedPacketBlockLE(content[at : at + length]))
        at += length
    return found


def test_several_captures_are_a_file_each(scpslab, cell, tmp_path):
    run, out = cell.parents[1], tmp_path / "lost.pcapng"
    first, second = sorted(path.stem for path in (cell / "captures").iterdir())
    code, _, err = scpslab("losses", run, "--pcapng", out, "--capture", f"{first},{second}")
    assert code == 0
    files = [tmp_path / f"lost-{name}.pcapng" for name in (first, second)]
    assert err == "".join(f"wrote {file}\n" for file in files)
    for file, name in zip(files, (first, second), strict=True):
        assert len(packet_blocks(file.read_bytes())) == len(frames_of(cell / "captures" / f"{name}.pcap"))
    assert not out.exists()


def test_the_losses_of_several_runs_are_one_table_that_says_whose_each_is(scpslab, cell, tmp_path):
    one = cell.parents[1]
    another = shutil.copytree(one, tmp_path / "another-0001")
    code, out, _ = scpslab("losses", one, another, "--format", "csv")
    assert code == 0
    rows = list(csv.DictReader(io.StringIO(out)))
    alone = list(csv.DictReader(io.StringIO(scpslab("losses", one, "--format", "csv")[1])))
    assert [{key: row[key] for key in alone[0]} for row in rows] == alone * 2
    assert [(row["run"], row["cell"]) for row in rows] == [
        (run, "stack=reno,ber=1e-05,r1") for run in (one.name, "another-0001") for _ in alone
    ]
    fields = json.loads(scpslab("losses", one, another, "--format", "json")[1])
    assert [each["run"] for each in fields["cells"]] == [one.name, "another-0001"]
    assert f"2 cells: {2 * len(alone)} lost packets" in scpslab("losses", one, another)[1]


def test_a_pattern_chooses_cells(scpslab, run_dir):
    code, out, _ = scpslab("losses", run_dir, "--cell", "stack=*,ber=0,*", "--format", "json")
    assert code == 0
    ids = [cell["cell"] for cell in json.loads(out)["cells"]]
    assert len(ids) == 4
    assert all(",ber=0," in name for name in ids)
