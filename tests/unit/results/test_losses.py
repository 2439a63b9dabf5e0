"""Which packets of a record were lost, which frames of captures they are, and the capture with comments, which dpkt
reads again. Cells that are named on the command line.
"""

import csv
import io
import json
import shutil
import struct
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import ModuleType, SimpleNamespace

import dpkt
import numpy as np
import pytest

from scpslab.analysis.lost_packets import Losses, find_losses, report, resend_columns
from scpslab.analysis.run import open_cell
from scpslab.cli.packets import cells_of
from scpslab.core.errors import UsageError
from scpslab.measure.packets import DELIVERED, FATES, NEVER, Packets, read
from scpslab.plan.links import CORRUPT, QUEUE
from tests import golden, made_records
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


WITHOUT = {"asked for": {"packets": None}, "gone": {"packets": True}}
WITHOUT["a Mininet script"] = {"packets": None, "mininet": SimpleNamespace()}


@pytest.mark.parametrize("why", WITHOUT)
def test_without_a_record_the_counts_are_told_and_what_to_do(cell, why):
    (cell / "records" / "packets.rec").unlink()
    counted = {"link": "hop", "direction": "forward", "queue_packets": 1, "corrupt_packets": 2}
    write_record(cell, "accounting", [counted, {**counted, "queue_packets": 0, "corrupt_packets": 0}])
    opened = open_cell(cell)
    opened = replace(opened, plan=replace(opened.plan, cell=replace(opened.plan.cell, **WITHOUT[why])))
    found = find_losses(opened, "a run")
    assert found.lost == ()
    golden.Case("losses without a record", why).hold("\n".join(found.notes), cell)
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


def test_the_pcapng_of_a_cell_says_what_became_of_each_packet(scpslab, cell, tmp_path):
    out = tmp_path / "packets.pcapng"
    assert scpslab("packets", cell.parents[1], "--pcapng", out)[0] == 0
    content, comments, at = out.read_bytes(), [], 0
    while at < len(content):
        kind, length = struct.unpack_from("<II", content, at)
        if kind == dpkt.pcapng.PCAPNG_BT_EPB:
            block = dpkt.pcapng.EnhancedPacketBlockLE(content[at : at + length])
            comments += [option.text for option in block.opts if option.code == COMMENT]
        at += length
    directions = open_cell(cell).record.by_place.values()
    assert len(comments) == sum(map(len, directions))
    causes = Counter(one.cause for one in found_in(cell).lost)
    assert Counter(cause for cause in causes for one in comments if f", {cause}, " in one) == causes


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


@pytest.mark.parametrize(
    "name", ["link=biterrors,r1", "link=bit errors,r1", "link=bit (errors), r1", "link=bit*", "*,r1"]
)
def test_a_cell_is_named_by_its_id_or_by_what_its_labels_say(name):
    cell = SimpleNamespace(id="link=biterrors,r1", folder=Path("cells/link=biterrors,r1"))
    other = SimpleNamespace(id="link=clean,r2", folder=Path("cells/link=clean,r2"))
    run = SimpleNamespace(cells=[cell, other], folder=Path("runs/made"))

    assert cells_of(run, [name]) == [cell]
    with pytest.raises(UsageError, match=r'--cell "none": found no such cell; expected one such as link=biterrors,r1'):
        cells_of(run, ["none"])
