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
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree as ET

import yaml

from scpslab.analysis.lost_packets import Lost, find_losses, resend_columns, sender_s_capture
from scpslab.analysis.run import RunCell, open_run
from scpslab.core.errors import CapabilityError, ResultError, UsageError
from scpslab.core.scratch import scratch

# Packets that are shown before and behind the one that a question is about.
BEFORE, BEHIND = 10, 2
OF_IP = ("frame.number", "tcp.stream", "ip.src", "frame.time_relative")
OF_TCP = ("tcp.seq", "tcp.ack", "tcp.len", "tcp.flags", "tcp.window_size_value")
SYN, SYN_ACK = 0x002, 0x012
# What is shown of a packet. Of all the rest, tshark reckons some from hidden fields, and the checksum covers them.
SHOWN = ("srcport", "dstport", "seq", "ack", "hdr_len", "flags", "window_size_value", "options")
HIDDEN = {
    "tcp.seq": "The number of the packet's first byte. Bytes that are sent again keep their number (RFC 9293 §3.4).",
    "tcp.ack": "The number of the next byte that the sender of this packet waits for (RFC 9293 §3.4).",
    "tcp.flags": "All flags as one number: FIN 0x001, SYN 0x002, RST 0x004, PSH 0x008, ACK 0x010 (RFC 9293 §3.1).",
    "tcp.window_size_value": "The 16 bits of the header, as they are before scaling (RFC 7323 §2).",
    "tcp.options.sack_re": "The number of the byte behind the block that has arrived (RFC 2018 §3).",
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


@dataclass(frozen=True)
class Packet:
    """A packet of the transfer: its frame, the host that sent it, seconds since the capture's first packet, and TCP's
    fields, counted from 0.
    """

    frame: int
    source: str
    t_s: float
    seq: int
    ack: int
    size: int
    flags: int
    window: int


@dataclass(frozen=True)
class Asked:
    """A question: the packets that are shown, which of them is asked, what is hidden, and why it was sent, if it is
    asked.
    """

    shown: Sequence[Packet]
    packet: Packet
    hidden: Sequence[str]
    why: str = ""


def task_of(runs: Iterable[Path], title: str, pick: int) -> dict[str, bytes]:
    """The files of a task from the first traced transfer in runs. `pick`: any number; it chooses among packets.

    Raises:
        UsageError: no cell has a capture at the sender of its one transfer, and a log of losses.
        CapabilityError: tshark is missing.
    """
    for run in map(open_run, runs):
        for cell in run.cells:
            columns = resend_columns(cell, run.id)
            if columns.get("resend_frames"):
                frames = map(int, columns["resend_frames"].split())
                why = dict(zip(frames, columns["resend_causes"].split(), strict=True))
                return _files(cell, find_losses(cell, run.id).lost, why, title, pick)
    expected = "expected a capture at the sender of one transfer, the log of a link's losses, and retransmissions"
    raise UsageError(
        f"{title}: found no trace in its runs; {expected}. Choose another assignment, such as read-a-trace."
    )


def _files(cell: RunCell, lost: Iterable[Lost], why: Mapping[int, str], title: str, pick: int) -> dict[str, bytes]:
    name = sender_s_capture(cell)
    capture = cell.capture_file(name)
    packets = _transfer(capture)
    asked = list(_asked(packets, why, pick))
    pdml = _pdml(capture, sorted({packet.frame for one in asked for packet in one.shown}))
    files, problems = {}, dict[str, object]()
    for one in asked:
        # The plugin tells its inputs by the beginning of their names: none begins another.
        key = f"frame{one.packet.frame:07}"
        place, mine = one.shown.index(one.packet), pdml[one.packet.frame]
        # Of two blocks, the plugin could not tell one from the other.
        hidden = [field for field in one.hidden if len(mine.findall(f".//field[@name='{field}']")) == 1]
        files[f"{key}.pdml"] = _written(one, pdml, hidden)
        feedback = {field: HIDDEN[field] for field in hidden}
        asks = {"name": f"Frame {one.packet.frame}", "hide": {place: hidden}, "shuffle": False, "feedback": feedback}
        problems[key] = {"type": "network-trace", "trace": f"{key}.pdml", "redact": [], "exclude": [], **asks}
        if one.why:
            question = f"Why was frame {one.packet.frame} sent?"
            choices = [{"text": text, "valid": cause == one.why} for cause, text in CHOICES.items()]
            said = {"type": "multiple_choice", "name": question, "unshuffle": True, "error_message": WRONG}
            problems[f"why{one.packet.frame:07}"] = {**said, "choices": choices}
    known = {packet.frame: packet for packet in packets}
    gone = ((known[item.frame], item.cause) for item in lost if item.capture == name and item.frame in known)
    lines = "\n".join(f"   {packet.t_s:.3f}, {cause}, {packet.seq}" for packet, cause in gone if packet.size)
    context = CONTEXT.format(sender=_sender(packets), lines=lines)
    task = {"name": title, "context": context, "environment_type": "mcq", "environment_id": "mcq", "problems": problems}
    return {"task.yaml": yaml.safe_dump(task, sort_keys=False, allow_unicode=True).encode(), **files}


def _asked(packets: Sequence[Packet], why: Mapping[int, str], pick: int) -> Iterator[Asked]:
    """The questions: the answer to the first packet, an acknowledgement among others like it, a packet of each cause.

    Packets of one question are not among those of another, where their fields would be read off.
    """
    sender = _sender(packets)
    acks = [packet for packet in packets if packet.source != sender and not packet.size and not packet.flags & SYN]
    data = [packet for packet in packets if packet.source == sender and packet.size]
    # What nothing tells is not asked: the number and the window of an acknowledgement that is unlike its neighbours.
    threes = zip(acks, acks[1:], acks[2:], strict=False)
    alike = [three[1] for three in threes if len({(ack.ack, ack.window) for ack in three}) == 1]
    wanted: list[tuple[list[Packet], Sequence[str], str]] = [
        ([packet for packet in packets if packet.flags & SYN_ACK == SYN_ACK], ("tcp.seq", "tcp.ack", "tcp.flags"), ""),
        (alike, ("tcp.ack", "tcp.window_size_value", "tcp.options.sack_re"), ""),
    ]
    of_data = ("tcp.seq", "tcp.ack", "tcp.window_size_value")
    for cause in CHOICES:
        among = [one for one in data if why.get(one.frame) == cause]
        if cause == FIRST:
            # Before the first one that is sent again nobody would ask why.
            among = [one for one in data if one.frame not in why and one.frame > min(why)]
        wanted.append((among, of_data, cause))
    taken: set[Packet] = set()
    places = {packet: place for place, packet in enumerate(packets)}
    for among, hidden, cause in wanted:
        for number in range(len(among)):
            packet = among[(pick + number) % len(among)]
            shown = packets[max(0, places[packet] - BEFORE) : places[packet] + BEHIND + 1]
            if taken.isdisjoint(shown):
                taken.update(shown)
                yield Asked(shown, packet, hidden, cause)
                break


def _transfer(capture: Path) -> list[Packet]:
    """The packets of the connection that carries the most, in order of time."""
    wanted = [word for column in (*OF_IP, *OF_TCP) for word in ("-e", column)]
    table = _tshark(capture, "-Y", "tcp && ip", "-T", "fields", "-E", "occurrence=f", *wanted).splitlines()
    streams: dict[str, list[Packet]] = {}
    for line in table:
        frame, stream, source, time, *numbers = line.split("\t")
        fields = (int(number or "0", base=0) for number in numbers)
        streams.setdefault(stream, []).append(Packet(int(frame), source, float(time), *fields))
    return max(streams.values(), key=lambda packets: sum(packet.size for packet in packets))


def _sender(packets: Sequence[Packet]) -> str:
    return max(packets, key=lambda packet: packet.size).source


def _pdml(capture: Path, frames: Sequence[int]) -> dict[int, ET.Element]:
    """These frames as tshark dissects them."""
    wanted = f"frame.number in {{{', '.join(map(str, frames))}}}"
    root = ET.fromstring(_tshark(capture, "-Y", wanted, "-T", "pdml", "-J", "tcp"))  # noqa: S314 (tshark's, of our own capture)
    return dict(zip(frames, root.findall("packet"), strict=True))


def _tshark(capture: Path, *words: str) -> str:
    program = shutil.which("tshark")
    if program is None:
        raise CapabilityError("tshark: found none; expected it, to read captures. Install it: apt install tshark.")
    command = [program, "-n", "-r", str(capture), "-o", "tcp.relative_sequence_numbers:TRUE", *words]
    with scratch() as settings:
        # Without the user's own settings of Wireshark.
        own = {**os.environ, "WIRESHARK_CONFIG_DIR": str(settings)}
        done = subprocess.run(command, capture_output=True, text=True, check=False, env=own)
    if done.returncode != 0:
        said = (done.stderr.strip().splitlines() or ["nothing"])[-1]
        raise ResultError(f"{capture}: found {said}; expected a capture that tshark reads. Run the cell again.")
    return done.stdout


def _written(one: Asked, pdml: Mapping[int, ET.Element], hidden: Sequence[str]) -> bytes:
    """The packets of a question as PDML with what is shown of them."""
    root = ET.Element("pdml")
    for packet in one.shown:
        general, tcp = (_found(pdml[packet.frame], f"proto[@name='{name}']") for name in ("geninfo", "tcp"))
        made = ET.SubElement(root, "packet")
        made.append(general)
        summary = f"{packet.t_s:.3f} s: from {packet.source}, {packet.size} bytes of data"
        kept = ET.SubElement(made, "proto", {**tcp.attrib, "showname": summary})
        kept.extend(field for field in tcp.findall("field") if field.get("name", "").removeprefix("tcp.") in SHOWN)
        for field in kept:
            _hide(field, hidden if packet is one.packet else ())
    ET.indent(root)
    return ET.tostring(root, encoding="unicode").encode()


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


def _found(place: ET.Element, path: str) -> ET.Element:
    found = place.find(path)
    if found is None:
        raise ResultError(f"tshark: found no {path} in a packet; expected it. Install tshark 4.0 or newer.")
    return found
