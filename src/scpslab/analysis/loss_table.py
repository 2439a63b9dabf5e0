"""The losses of a cell as a table, CSV, JSON, and as comments on the frames of a capture."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, fields

from scpslab.analysis.lost_packets import Losses, Lost
from scpslab.analysis.output import NOTHING, Column, Report, Row, numbers

FORMAT = 1
HOW_TO_READ = (
    "time: at the place of the loss; repaired: when the bytes were sent again in a packet that arrived; "
    "frame: capture and number, as in Wireshark."
)


def report(losses: Losses) -> Report:
    """The losses as they are shown, a line each."""
    columns = [
        *map(Column, ("time (s)", "cause", "place", "packet")),
        *numbers("seq", "bytes", "frame", "repaired (s)"),
    ]
    document = {
        "format": FORMAT,
        "run": losses.run,
        "cell": losses.cell,
        "lost": [asdict(lost) for lost in losses.lost],
        "notes": losses.notes,
    }
    title = f"{losses.cell}: {len(losses.lost)} lost packets in this list"
    records = [[field.name for field in fields(Lost)], *(list(asdict(lost).values()) for lost in losses.lost)]
    return Report(title, columns, [_row(lost) for lost in losses.lost], (HOW_TO_READ, *losses.notes), records, document)


def _row(lost: Lost) -> Row:
    repaired = lost.repair if lost.repaired_s is None else f"{lost.repaired_s:.6f}"
    cells = [f"{lost.t_s:.6f}", lost.cause, _place(lost), _packet(lost), _number(lost.seq), _number(lost.payload_bytes)]
    return Row([*cells, f"{lost.capture}:{lost.frame}" if lost.frame else NOTHING, repaired])


def captures_with_losses(losses: Losses) -> list[str]:
    """The captures in which lost packets were identified, that with the most of them first."""
    names = [lost.capture for lost in losses.lost if lost.capture]
    return sorted(set(names), key=lambda name: (-names.count(name), name))


def comments(lost: Sequence[Lost], capture: str) -> dict[int, str]:
    """The comment of each frame of a capture that was lost, or that repaired a loss."""
    said: dict[int, list[str]] = {}
    for one in lost:
        if one.capture != capture or one.frame is None:
            continue
        end = (
            f"sent again in frame {one.repaired_frame}"
            if one.repaired_frame
            else {"never": "never sent again"}.get(one.repair, one.repair)
        )
        said.setdefault(one.frame, []).append(f"lost: {one.cause}, {_place(one)}, at {one.t_s:.6f} s; {end}")
        if one.repaired_frame is not None:
            said.setdefault(one.repaired_frame, []).append(f"repairs frame {one.frame}")
    return {frame: "; ".join(parts) for frame, parts in said.items()}


def _place(lost: Lost) -> str:
    return f"{lost.link} {lost.direction} {lost.place}"


def _packet(lost: Lost) -> str:
    if not lost.capture:
        return f"{lost.ip_bytes} bytes, not identified"
    flags = f" [{lost.flags}]" if lost.flags else ""
    return f"{lost.protocol} {lost.source} > {lost.destination}{flags}"


def _number(value: int | None) -> str:
    return NOTHING if value is None else str(value)
