"""Which packet a line of a verdict log speaks of, and the capture with comments, which dpkt reads again."""

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

from scpslab import plan as plans
from scpslab.analysis.lost_packets import Losses, find_losses, report, resends
from scpslab.analysis.run import open_cell
from scpslab.plan.links import CORRUPT, QUEUE

from scpslab.kinds.probes.losses.plan import Losses as LossProbe

LOG = "verdicts-hop-data"
# Ordinals among the data packets, resent ones included.
CORRUPTED, DROPPED = (5, 20), (12,)
MSS = 1400
COMMENT = dpkt.pcapng.PCAPNG_OPT_COMMENT
CONNECTING = 1  # the SYN is the first packet of the direction


def client_packets(transfer: Any) -> list[tuple[float, Any]]:
    """What the client sent, in the order of the capture."""
    return [
        (t_s, packet) for t_s, packet, from_client in sorted(transfer.source, key=lambda item: item[0]) if from_client
    ]


def lines_of(cell: Path, record: str) -> list[dict[str, Any]]:
    """A record of a cell."""
    return [json.loads(line) for line in (cell / "records" / f"{record}.jsonl").read_text().splitlines()]


def write_lines(cell: Path, record: str, lines: list[dict[str, Any]]) -> None:
    """Writes a record of a cell."""
    (cell / "records" / f"{record}.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))


def with_probes(cell: Path, change: Callable[[list[Any]], list[Any]]) -> None:
    """Changes the probes of a cell's plan, which come without the one of the verdict log."""
    plan = plans.parse((cell / "plan.json").read_bytes())
    probes = tuple(change([probe for probe in plan.cell.probes if probe.name != LOG]))
    (cell / "plan.json").write_text(plans.text(replace(plan, cell=replace(plan.cell, probes=probes))))


@pytest.fixture
def cell(tmp_path: Path, synthetic: ModuleType) -> Path:
    """A run's only cell, with a verdict log of what the model lost."""
    run_dir = tmp_path / "fig04-golden-0003"
    transfer = synthetic.simulate(60_000, MSS, {*CORRUPTED, *DROPPED})
    folder: Path = synthetic.write_cell(run_dir, {"stack": "reno", "ber": "1e-05"}, 1, transfer)
    (run_dir / "manifest.json").write_text(json.dumps({"format": 1, "scenario": "fig04-golden", "status": "completed"}))
    with_probes(folder, lambda probes: [*probes, LossProbe(name=LOG, link="hop", direction="forward")])

    sent = client_packets(transfer)
    plan = plans.parse((folder / "plan.json").read_bytes())
    (hop,) = (link for link in plan.network.links if link.name == "hop")
    (overhead,) = (item.overhead_bytes for item in hop.directions if item.name == "forward")
    sizes = [20 + len(bytes(packet)) + overhead for _, packet in sent]
    lines: list[dict[str, Any]] = []
    for ordinal in sorted((*CORRUPTED, *DROPPED)):
        at = ordinal + CONNECTING
        dropped_before = sum(other + CONNECTING < at for other in DROPPED)
        cause = QUEUE if ordinal in DROPPED else CORRUPT
        # The queue counts what is offered, the end of the link what arrives there.
        counted = at + 1 if cause == QUEUE else at + 1 - dropped_before
        seen = {"t_s": sent[at][0] + 0.27, "ordinal": counted, "wire_bytes": sizes[at]}
        lines.append(seen | {"verdict": cause, "bit_errors": int(cause == CORRUPT)})
    write_lines(folder, LOG, lines)
    accounts = lines_of(folder, "accounting")
    for account in accounts:
        if (account["link"], account["direction"]) == ("hop", "forward"):
            account |= {"offered_packets": len(sent), "offered_bytes": sum(sizes)}
            account |= {"queue_packets": len(DROPPED), "corrupt_packets": len(CORRUPTED)}
    write_lines(folder, "accounting", accounts)
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
    assert [lost.frame for lost in found.lost] == missing
    places = [(CORRUPT, "arrival"), (QUEUE, "queue"), (CORRUPT, "arrival")]
    assert [(lost.cause, lost.place) for lost in found.lost] == places
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
        assert lost.sent_s < lost.t_s < lost.repaired_s


def more_offered(cell: Path) -> None:
    """The account has a packet more than the capture."""
    lines = lines_of(cell, "accounting")
    write_lines(cell, "accounting", [line | {"offered_packets": line["offered_packets"] + 1} for line in lines])


def another_size(cell: Path) -> None:
    """The log has a byte less than the capture."""
    first, *others = lines_of(cell, LOG)
    write_lines(cell, LOG, [first | {"wire_bytes": first["wire_bytes"] - 1}, *others])


@pytest.mark.parametrize("change", [more_offered, another_size])
def test_a_capture_that_does_not_agree_with_account_or_log_names_nothing(cell, change):
    change(cell)
    found = found_in(cell)
    assert [(lost.frame, lost.repair) for lost in found.lost] == [(None, "unknown")] * 3
    assert change is another_size or "Add a capture without filter" in " ".join(found.notes)


def test_a_capture_cut_short_is_told(cell):
    path = cell / "captures" / "ws4.pcap"
    path.write_bytes(path.read_bytes()[:-7])
    assert found_in(cell).notes[0].startswith(f"{path}: found a capture that ends in the middle of a packet")


def test_without_a_log_two_captures_are_compared(cell):
    logged = found_in(cell).lost
    with_probes(cell, list)
    found = found_in(cell)
    assert [(lost.frame, lost.seq, lost.repaired_s) for lost in found.lost] == [
        (lost.frame, lost.seq, lost.repaired_s) for lost in logged
    ]
    # One packet was dropped by the queue and two were hit: captures alone do not say which.
    assert {(lost.cause, lost.place) for lost in found.lost} == {("queue or corrupt", "queue or arrival")}
    assert all(lost.t_s == lost.sent_s for lost in found.lost)
    assert "found by comparing the captures ws4 and ws2" in found.notes[0]


def test_losses_without_log_and_second_capture_are_counted_in_a_note(cell):
    with_probes(cell, list)
    (cell / "captures" / "ws2.pcap").unlink()
    found = found_in(cell)
    assert found.lost == ()
    assert found.notes[0].startswith("hop, forward direction: 1 queue, 2 corrupt, not in this list")
    assert "{kind: losses, link: hop, direction: forward}" in found.notes[0]


def test_bytes_that_nobody_sends_again_are_never_repaired(cell):
    """The first repair is made a packet of another connection."""
    first = min(lost.repaired_frame for lost in found_in(cell).lost)
    path = cell / "captures" / "ws4.pcap"
    with path.open("rb") as file:
        frames = list(dpkt.pcap.Reader(file))
    content = path.read_bytes()
    # Blank the repair's port in place: the packet stays, so the counts agree, but it belongs to another connection.
    at = content.index(bytes(frames[first - 1][1]), content.index(bytes(frames[first - 2][1])) + 1) + 14 + 20
    path.write_bytes(content[:at] + b"\x00\x07" + content[at + 2 :])
    assert sorted(lost.repair for lost in found_in(cell).lost) == ["never", "repaired", "repaired"]


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


def test_a_cell_must_be_chosen_among_several(scpslab, run_dir):
    assert "found 12 cells and no --cell" in scpslab("losses", run_dir)[2]


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
    assert "found no such capture" in scpslab("losses", run, "--pcapng", out, "--capture", first, "--capture", "ws9")[2]


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
    assert "--pcapng: found 2 cells" in scpslab("losses", one, another, "--pcapng", tmp_path / "x")[2]


def test_a_pattern_chooses_cells_and_each_name_must_be_there(scpslab, run_dir):
    code, out, _ = scpslab("losses", run_dir, "--cell", "stack=*,ber=0,*", "--format", "json")
    assert code == 0
    ids = [cell["cell"] for cell in json.loads(out)["cells"]]
    assert len(ids) == 4
    assert all(",ber=0," in name for name in ids)
    code, _, err = scpslab("losses", run_dir, "--cell", "stack=*,ber=0,*", "--cell", "nonsense*")
    assert code == 2
    assert '--cell "nonsense*": found no such cell' in err


def causes(segments: list[int], lost: dict[int, str]) -> list[str]:
    """The causes of a sender's resends of these segments, frame 1 first; `lost`: frames that did not arrive."""
    n = len(segments)
    connection = SimpleNamespace(
        from_client=np.ones(n, dtype=np.bool_),
        payload_bytes=np.full(n, MSS),
        seq=np.array(segments) * MSS,
        packet=np.arange(n),
        t_s=np.arange(n, dtype=np.float64),
    )
    return [cause for _, cause in resends(connection, np.arange(1, n + 1), lost)]


@pytest.mark.parametrize(
    ("segments", "lost", "expected"),
    [
        ([0, 1, 2, 3], {2: "queue"}, []),
        ([0, 1, 2, 1], {2: "queue"}, ["queue"]),
        ([0, 1, 1, 1], {2: "queue", 3: "corrupt"}, ["queue", "corrupt"]),
        ([0, 1, 1, 1], {2: "queue"}, ["queue", "superfluous"]),
        ([0, 1, 1, 1], {3: "corrupt"}, ["superfluous", "superfluous"]),
        # A packet that was lost before the capture, and whose number is below the highest, is no retransmission.
        ([0, 2, 1], {}, []),
    ],
)
def test_the_latest_copy_decides_unless_one_was_not_lost(segments, lost, expected):
    assert causes(segments, lost) == expected
