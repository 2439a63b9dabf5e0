"""Tasks for INGInious: packets of a lab's own capture whose fields a student fills in, and why the sender sent them.

A task is a folder: `task.yaml`, and for each question a few packets as PDML, tshark's XML. Its problems are of the type
`network-trace`, a plugin of INGInious, and of its own `multiple_choice`; INGInious checks both without a container.

The plugin shows each field's `showname` and a packet's bytes without those of hidden fields, and compares an answer
with `show`. So a hidden field's `showname` does not tell, and fields from which it would follow are not kept. No
student gets these files, and no question's packets are among those of another.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from xml.etree import ElementTree as ET

import numpy as np
import yaml

from scpslab.analysis.capture import ACK, SYN, Bools, Connection, Ints, read_packets, split_connections
from scpslab.analysis.lost_packets import Losses, find_losses, resend_columns, sender_s_capture
from scpslab.analysis.run import RunCell, open_run
from scpslab.core.errors import CapabilityError, ResultError, UsageError
from scpslab.core.scratch import scratch

# Packets that are shown before and behind the one that a question is about.
BEFORE, BEHIND = 10, 2
# What is shown of a packet. Of all the rest, tshark reckons some from hidden fields, and the checksum covers them.
SHOWN = ("srcport", "dstport", "seq", "ack", "hdr_len", "flags", "window_size_value", "options")
RIGHT_EDGE = "tcp.options.sack_re"
HIDDEN = {
    "tcp.seq": "The number of the packet's first byte. Bytes that are sent again keep their number (RFC 9293 §3.4).",
    "tcp.ack": "The number of the next byte that the sender of this packet waits for (RFC 9293 §3.4).",
    "tcp.flags": "All flags as one number: FIN 0x001, SYN 0x002, RST 0x004, PSH 0x008, ACK 0x010 (RFC 9293 §3.1).",
    "tcp.window_size_value": "The 16 bits of the header, as they are before scaling (RFC 7323 §2).",
    RIGHT_EDGE: "The number of the byte behind the block that has arrived (RFC 2018 §3).",
}
FIRST = "first"
CHOICES = {
    FIRST: "Its bytes are sent for the first time.",
    "queue": "The latest earlier copy of its first byte was lost in a full queue.",
    "corrupt": "The latest earlier copy of its first byte was lost to a bit error.",
    "outage": "The latest earlier copy of its first byte was lost in an outage.",
    "policy": "The latest earlier copy of its first byte was lost by a rule of the link.",
    "superfluous": "No reason: an earlier copy of its first byte was not lost.",
}
WRONG = "Find the packet's sequence number first, then the list's lines that have it."
CONTEXT = """Packets of one transfer, captured at its sender, {sender}, with some fields hidden. Fill them in from the
packets around them, as Wireshark shows them: sequence numbers count from the start of the connection. Then say why
{sender} sent the packet.

These packets of {sender} did not arrive:

.. csv-table::
   :header: "sent, s", "cause", "sequence number"

{lines}
"""


def task_of(runs: Iterable[Path], title: str, pick: int) -> dict[str, bytes]:
    """The files of a task from the first traced transfer in runs. `pick`: any number; it chooses among packets.

    Raises:
        UsageError: no cell has a capture at the sender of its one transfer, and a log of losses.
        CapabilityError: tshark is missing.
    """
    for run in map(open_run, runs):
        for cell in run.cells:
            columns = resend_columns(cell, run.id)
            # Whatever was lost was sent again for that.
            if set(columns.get("resend_causes", "").split()) - {"superfluous"}:
                frames = map(int, columns["resend_frames"].split())
                why = dict(zip(frames, columns["resend_causes"].split(), strict=True))
                return _files(cell, find_losses(cell, run.id), why, title, pick)
    expected = "expected a capture at the sender of one transfer, the log of a link's losses, and retransmissions"
    advice = "Choose another assignment, such as read-a-trace."
    raise UsageError(f"{title}: found no trace in its runs; {expected}. {advice}")


def _files(cell: RunCell, losses: Losses, why: Mapping[int, str], title: str, pick: int) -> dict[str, bytes]:
    name = sender_s_capture(cell)
    packets = read_packets(cell.capture_file(name))
    transfer = max(split_connections(packets), key=lambda connection: int(connection.payload_bytes.sum()))
    frames = packets.frame[transfer.packet]
    is_sent = transfer.from_client == transfer.from_client[transfer.payload_bytes.argmax()]
    hosts = (transfer.server_ip, transfer.client_ip)
    sender = hosts[int(transfer.from_client[is_sent][0])]
    asked = list(_asked(transfer, frames, is_sent, why, pick))
    pdml = _pdml(cell.capture_file(name), sorted(frames[place] for shown, *_ in asked for place in shown))
    files, problems = {}, dict[str, object]()
    for shown, place, fields, cause in asked:
        # The plugin tells its inputs by the beginning of their names: none begins another.
        number, root = f"{frames[place]:07}", ET.Element("pdml")
        # Of two blocks, the plugin could not tell one from the other.
        hidden = [field for field in fields if len(pdml[frames[place]].findall(f".//field[@name='{field}']")) == 1]
        for one in shown:
            packet, said = pdml[frames[one]], f"from {hosts[int(transfer.from_client[one])]}"
            said = f"{transfer.t_s[one]:.3f} s: {said}, {transfer.payload_bytes[one]} bytes of data"
            _shown(ET.SubElement(root, "packet"), packet, said, hidden if one == place else ())
        ET.indent(root)
        files[f"frame{number}.pdml"] = ET.tostring(root, encoding="unicode").encode()
        kind = {"type": "network-trace", "name": f"Frame {frames[place]}", "trace": f"frame{number}.pdml"}
        problems[f"frame{number}"] = {**kind, "hide": {shown.index(place): hidden}, "feedback": dict(HIDDEN)}
        if cause:
            choices = [{"text": text, "valid": one == cause} for one, text in CHOICES.items()]
            kind = {"type": "multiple_choice", "name": f"Why was frame {frames[place]} sent?", "error_message": WRONG}
            problems[f"why{number}"] = {**kind, "unshuffle": True, "choices": choices}
    gone = {item.frame: item.cause for item in losses.lost if item.capture == name}
    data = np.flatnonzero(is_sent & (transfer.payload_bytes > 0))
    lost = [at for at in data.tolist() if int(frames[at]) in gone]
    lines = (f"   {transfer.t_s[at]:.3f}, {gone[int(frames[at])]}, {transfer.seq[at] + 1}" for at in lost)
    context = CONTEXT.format(sender=sender, lines="\n".join(lines))
    task = {"name": title, "context": context, "environment_type": "mcq", "environment_id": "mcq", "problems": problems}
    return {"task.yaml": yaml.safe_dump(task, sort_keys=False, allow_unicode=True).encode(), **files}


def _asked(
    transfer: Connection, frames: Ints, is_sent: Bools, why: Mapping[int, str], pick: int
) -> Iterator[tuple[range, int, Sequence[str], str]]:
    """The questions: the packets that are shown, by their places in the transfer; the one that is asked; its hidden
    fields; and why it was sent, or "" if that is not asked. They are about the answer to the first packet, an
    acknowledgement like its neighbours, and a packet of each cause.

    Packets of one question are not among those of another, where their fields would be read off.
    """
    flags, is_data = transfer.flags, transfer.payload_bytes > 0
    acks = np.flatnonzero(~is_sent & ~is_data & (flags & SYN == 0))
    # What nothing tells is not asked: the number and the window of an acknowledgement that is unlike its neighbours.
    is_like_next = (np.diff(transfer.ack[acks]) == 0) & (np.diff(transfer.window_bytes[acks]) == 0)
    wanted = [
        (np.flatnonzero(flags & (SYN | ACK) == SYN | ACK), ("tcp.seq", "tcp.ack", "tcp.flags"), ""),
        (acks[1:-1][is_like_next[:-1] & is_like_next[1:]], ("tcp.ack", "tcp.window_size_value", RIGHT_EDGE), ""),
    ]
    # Before the first one that is sent again nobody would ask why.
    data = np.flatnonzero(is_sent & is_data & (frames >= min(why)))
    causes = np.array([why.get(frame, FIRST) for frame in frames[data].tolist()])
    wanted += [(data[causes == cause], ("tcp.seq", "tcp.ack", "tcp.window_size_value"), cause) for cause in CHOICES]
    taken: set[int] = set()
    for among, fields, cause in wanted:
        for place in np.roll(among, -(pick % max(1, len(among)))).tolist():
            shown = range(max(0, place - BEFORE), min(len(frames), place + BEHIND + 1))
            if taken.isdisjoint(shown):
                taken.update(shown)
                yield shown, place, fields, cause
                break


def _pdml(capture: Path, frames: Sequence[int]) -> dict[int, ET.Element]:
    """These frames as tshark dissects them."""
    program = shutil.which("tshark")
    if program is None:
        raise CapabilityError("tshark: found none; expected it, to read captures. Install it: apt install tshark.")
    wanted = f"frame.number in {{{', '.join(map(str, frames))}}}"
    command = [program, "-n", "-r", str(capture), "-o", "tcp.relative_sequence_numbers:TRUE", "-Y", wanted]
    with scratch() as settings:
        # Without the user's own settings of Wireshark.
        own = {**os.environ, "WIRESHARK_CONFIG_DIR": str(settings)}
        command += ["-T", "pdml", "-J", "tcp"]
        done = subprocess.run(command, capture_output=True, text=True, check=False, env=own)
    if done.returncode != 0:
        said = (done.stderr.strip().splitlines() or ["nothing"])[-1]
        raise ResultError(f"{capture}: found {said}; expected a capture that tshark reads. Run the cell again.")
    root = ET.fromstring(done.stdout)  # noqa: S314 (tshark's, of our own capture)
    return dict(zip(frames, root.findall("packet"), strict=True))


def _shown(made: ET.Element, packet: ET.Element, summary: str, names: Sequence[str]) -> None:
    """Puts into `made` what is shown of a packet, with the fields of these names hidden."""
    (general,), (tcp,) = (packet.findall(f"proto[@name='{name}']") for name in ("geninfo", "tcp"))
    made.append(general)
    kept = ET.SubElement(made, "proto", {**tcp.attrib, "showname": summary})
    kept.extend(field for field in tcp if field.get("name", "").removeprefix("tcp.") in SHOWN)
    for field in kept:
        _hide(field, names)


def _hide(field: ET.Element, names: Sequence[str]) -> bool:
    """Hides the fields of these names; returns whether there is one among `field` and those in it.

    What is around a hidden field, and in it, does not repeat it.
    """
    is_hidden = field.get("name") in names
    if is_hidden:
        for inner in list(field):
            field.remove(inner)
    if is_hidden or sum(_hide(inner, names) for inner in field):
        label = re.split(r":|=|\s+\d", field.get("showname", ""))[0].strip()
        field.set("showname", f"{label}: ?" if is_hidden else label)
        return True
    return False
