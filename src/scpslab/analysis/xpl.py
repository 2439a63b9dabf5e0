"""Time-sequence graphs as .xpl files, the text format of xplot that tcptrace users know.

Data segments are vertical bars from first to last byte, retransmissions red with an R above, acknowledgements a green
staircase, the receiver's window a yellow one, SACK blocks purple.
"""

from __future__ import annotations

from itertools import pairwise

from scpslab.analysis.traces import Flow


def time_sequence(flow: Flow, title: str) -> str:
    """The .xpl text: seconds since the epoch against the byte number (0 = first payload byte)."""
    lines = ["timeval unsigned", "title", title, "xlabel", "time since the epoch (s)", "ylabel", "sequence (bytes)"]
    events: list[tuple[float, int, list[str]]] = []
    for t_s, seq, end, is_repeated in zip(
        flow.t_s.tolist(), flow.seq.tolist(), flow.end.tolist(), flow.is_repeated.tolist(), strict=True
    ):
        at = f"{t_s:.6f}"
        drawn = [
            "red" if is_repeated else "white",
            f"darrow {at} {seq}",
            f"uarrow {at} {end}",
            f"line {at} {seq} {at} {end}",
        ]
        events.append((t_s, 1, [*drawn, f"atext {at} {end}", "R"] if is_repeated else drawn))
    acks = list(zip(flow.ack_t_s.tolist(), flow.ack.tolist(), (flow.ack + flow.window_bytes).tolist(), strict=True))
    for before, after in pairwise(acks):
        events.append(
            (
                after[0],
                0,
                [
                    *_stair("green", before[0], before[1], after[0], after[1]),
                    *_stair("yellow", before[0], before[2], after[0], after[2]),
                ],
            )
        )
    for t_s, left, right in zip(flow.sack_t_s.tolist(), flow.sack_left.tolist(), flow.sack_right.tolist(), strict=True):
        events.append((t_s, 2, ["purple", f"line {t_s:.6f} {left} {t_s:.6f} {right}"]))
    for _, _, drawn in sorted(events, key=lambda event: event[:2]):
        lines += drawn
    return "\n".join([*lines, "go", ""])


def _stair(colour: str, from_s: float, low: int, to_s: float, high: int) -> list[str]:
    if high == low:
        return [colour, f"line {from_s:.6f} {low} {to_s:.6f} {low}"]
    return [colour, f"line {from_s:.6f} {low} {to_s:.6f} {low}", f"line {to_s:.6f} {low} {to_s:.6f} {high}"]
