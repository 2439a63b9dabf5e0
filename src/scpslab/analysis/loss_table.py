"""The losses of a cell as a table, CSV, JSON, and as comments on the frames of a capture."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, fields

from rich.table import Table

from scpslab.analysis.csv_text import csv_text
from scpslab.analysis.lost_packets import Losses, Lost

FORMAT = 1
COLUMNS = tuple(field.name for field in fields(Lost))


def as_table(losses: Losses) -> Table:
    """One line a loss."""
    table = Table(
        title=f"{losses.cell}: {len(losses.lost)} lost packets in this list", title_justify="left", header_style="bold"
    )
    for name in ("time (s)", "cause", "place", "packet"):
        table.add_column(name)
    for name in ("seq", "bytes", "frame", "repaired (s)"):
        table.add_column(name, justify="right")
    for lost in losses.lost:
        table.add_row(
            f"{lost.t_s:.6f}",
            lost.cause,
            _place(lost),
            _packet(lost),
            _number(lost.seq),
            _number(lost.payload_bytes),
            f"{lost.capture}:{lost.frame}" if lost.frame else "–",
            lost.repair if lost.repaired_s is None else f"{lost.repaired_s:.6f}",
        )
    return table


def notes(losses: Losses) -> list[str]:
    """What a reader of the list must know."""
    return [
        (
            "time: at the place of the loss; repaired: when the bytes were sent again in a packet that arrived; "
            "frame: capture and number, as in Wireshark."
        ),
        *losses.notes,
    ]


def as_csv(losses: Losses) -> str:
    """One line a loss."""
    rows = [["" if value is None else value for value in asdict(lost).values()] for lost in losses.lost]
    return csv_text([COLUMNS, *rows])


def as_json(losses: Losses) -> str:
    """The same as one JSON object, with the notes."""
    found = {
        "format": FORMAT,
        "run": losses.run,
        "cell": losses.cell,
        "lost": [asdict(lost) for lost in losses.lost],
        "notes": losses.notes,
    }
    return json.dumps(found, indent=1) + "\n"


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
    return "–" if value is None else str(value)
