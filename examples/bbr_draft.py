"""The rules of the BBR draft about states that only a sender knows, judged by ngtcp2's log and the record of packets.

Usage: bbr_draft.py RUN, a run of bbr/draft. Prints the rule and what was found for each cell of ngtcp2.
"""

import re
import sys
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

from scpslab import api

LINE = re.compile(r"\d+:I(\d+) \S+ cca bbr (?:(?:enter|start) (?:ProbeBW_)?(\w+)|(reached))")
# Half of the round trip, and what the link holds there and back.
ONE_WAY_S, BDP_BYTES = 0.05, 125_000
# A tenth more than the BDP is still the same to a sender that hears of it a packet late.
SLACK = 1.1
# What the draft draws at most, and a round.
LONGEST_DOWN_S = 3.1
Steps = list[tuple[float, str]]
# Whether a rule was kept, None if its case was not reached, and what was found.
Found = tuple[bool | None, str]


class Cell:
    """The states of a cell's sender, by times since the epoch, and its packets."""

    def __init__(self, folder: Path, name: str) -> None:
        self.packets = api.packets(folder, name)
        self.data = [one for one in self.packets if one["direction"] == "forward"]
        # The log counts from when the server heard of the client.
        begin_s = next(one["arrived_s"] for one in self.packets if one["direction"] == "return")
        text = (folder / "cells" / name / "logs" / "transfer-h1.log").read_text()
        self.steps: Steps = [(begin_s + int(ms) / 1e3, state or full) for ms, state, full in LINE.findall(text)]

    def stays(self, state: str) -> Iterator[tuple[float, float, str, bool]]:
        """Each time in a state: from, to, the next state, and whether the sender found full bandwidth at its end."""
        states = [one for one in self.steps if one[1] != "reached"]
        full = {at for at, what in self.steps if what == "reached"}
        for (begin, now), (end, after) in pairwise(states):
            if now == state:
                yield begin, end, after, end in full

    def under_way(self, at_s: float) -> int:
        """Bytes that were sent and, unless they were lost, not yet acknowledged."""
        came = [one for one in self.data if one["offered_s"] <= at_s and one["fate"] == "delivered"]
        return sum(one["wire_bytes"] for one in came if one["arrived_s"] + ONE_WAY_S > at_s)

    def rounds(self, begin_s: float, end_s: float) -> float:
        """How many round trips fit between two times: each ends when the first packet sent in it is acknowledged."""
        count, at_s = 0, begin_s
        for one in self.data:
            if one["offered_s"] >= at_s and one["fate"] == "delivered":
                acked_s = float(one["arrived_s"]) + ONE_WAY_S
                if acked_s > end_s:
                    return count + (end_s - at_s) / (acked_s - at_s)
                count, at_s = count + 1, acked_s
        return count


def drain(cell: Cell) -> Iterator[Found]:
    """Cases 3 and 4: DRAIN ends when what is under way fits into the pipe, and after three rounds in any case."""
    for begin, end, _, _ in list(cell.stays("Drain"))[:1]:
        rounds, left = cell.rounds(begin, end), cell.under_way(end)
        kept = rounds <= 4 and (rounds >= 3 or left <= SLACK * BDP_BYTES)
        yield kept, f"{rounds:.1f} rounds, {left:,} B under way"


def probe_up(cell: Cell) -> Iterator[Found]:
    """Case 5: PROBE_UP ends after three rounds without growth; unless PROBE_RTT comes before."""
    for begin, end, after, is_full in cell.stays("UP"):
        if after != "ProbeRTT":
            yield is_full and cell.rounds(begin, end) >= 3, f"{cell.rounds(begin, end):.1f} rounds"


def probe_down(cell: Cell) -> Iterator[Found]:
    """Case 8: PROBE_DOWN ends when what is under way fits into the pipe; unless PROBE_RTT comes before."""
    for _, end, after, _ in cell.stays("DOWN"):
        if after == "CRUISE":
            yield cell.under_way(end) <= SLACK * BDP_BYTES, f"{cell.under_way(end):,} B under way"


def probe_down_in_time(cell: Cell) -> Iterator[Found]:
    """Case 9: PROBE_DOWN ends after two to three seconds, to REFILL, if neither an empty pipe nor PROBE_RTT end it."""
    begin, end, after, _ = max(cell.stays("DOWN"), key=lambda one: one[1] - one[0])
    late = False if end - begin > LONGEST_DOWN_S else None
    yield after == "REFILL" or late, f"{end - begin:.2f} s, to {after}"


def probe_rtt(cell: Cell) -> Iterator[Found]:
    """Case 10: PROBE_RTT lasts 200 ms and a round, and leads back to PROBE_BW."""
    for begin, end, after, _ in cell.stays("ProbeRTT"):
        kept = end - begin >= 0.2 and cell.rounds(begin, end) >= 1 and after == "DOWN"
        yield kept, f"{end - begin:.3f} s, to {after}"


def probe_rtt_in_startup(cell: Cell) -> Iterator[Found]:
    """Case 20: PROBE_RTT during STARTUP returns to STARTUP."""
    _, _, after, _ = next(cell.stays("ProbeRTT"))
    before = [state for _, state in cell.steps][: [state for _, state in cell.steps].index("ProbeRTT")]
    yield after == "Startup" if set(before) == {"Startup"} else None, f"after {', '.join(before)}: to {after}"


def loss_in_probe_up(cell: Cell) -> Iterator[Found]:
    """Cases 6 and 21: more than 2 % of loss in a round end PROBE_UP."""
    begin, end, after, is_full = next(cell.stays("UP"))
    sent = [one for one in cell.data if begin <= one["offered_s"] < begin + 2 * ONE_WAY_S]
    lost = sum(one["fate"] == "corrupt" for one in sent) / len(sent)
    text = f"{100 * lost:.1f} % lost in the first round, {cell.rounds(begin, end):.1f} rounds, to {after}"
    yield not is_full and after == "DOWN" if lost > 0.02 else None, text


RULES = {
    "1-plateau": (drain, probe_up, probe_down),
    "4-drain-in-time": (drain,),
    "9-probe-down-in-time": (probe_down_in_time,),
    "10-probe-rtt": (probe_rtt,),
    "20-probe-rtt-in-startup": (probe_rtt_in_startup,),
    "21-loss-in-probe-up": (loss_in_probe_up,),
}
WORDS = {True: "kept", False: "not kept", None: "not reached"}


def main(folder: Path) -> None:
    """Prints what was found."""
    for row in api.rows(folder):
        rules = RULES.get(row["case"], ()) if "stack=ngtcp2" in row["cell"] else ()
        for rule in rules:
            for kept, text in rule(Cell(folder, row["cell"])):
                print(f"{row['cell']}: {(rule.__doc__ or '').partition(':')[0]}: {WORDS[kept]}: {text}")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
