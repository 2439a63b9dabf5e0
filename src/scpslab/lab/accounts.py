"""Whether a cell's figures can be believed: its accounts close, and where time is real, the lab kept up with it.

Accounts: every packet that a direction of a link was offered is delivered, lost for a stated cause, or still under way.
"""

from typing import Self

from scpslab.lab.context import Context
from scpslab.lab.loop import SECOND_NS
from scpslab.lab.records import Records
from scpslab.plan.cell import Limits
from scpslab.plan.links import ALL_CAUSES

# The counters of a direction by name; None where nobody counts.
Counters = dict[str, int | None]
# The kernel's statistics of a queue of its own say how many packets it dropped, and neither their bytes nor how full it
# was.
UNKNOWN_OF_MANAGED = ("queue_bytes", "most_bytes", "most_packets")
DRAIN_STEP_NS = 50_000_000
DRAIN_LIMIT_NS = 60 * SECOND_NS


class Accounts:
    """The accounts of all directions of a cell's links."""

    def __init__(self, context: Context) -> None:
        self.context, self.network = context, context.network

    def drain(self) -> bool:
        """Waits until no packet is under way on any link, so that every account can close.

        False if one still is after _limit_ns.
        """
        limit = self.context.now_ns() + self._limit_ns()
        quiet = 0
        # An empty network can fill again (a delayed acknowledgement, a retransmission): two quiet looks in a row are
        # asked for.
        while quiet < 2:
            if self.context.now_ns() >= limit:
                return False
            self.context.rest(DRAIN_STEP_NS)
            quiet = quiet + 1 if all(under_way(counters) == 0 for counters in self._counters()) else 0
        return True

    def write(self) -> list[str]:
        """Writes records/accounting.jsonl, and returns the accounts that do not close.

        All accounts are read at one quiet instant, at which the record of packets ends, too: a peer whose last
        acknowledgement was lost may still send packets now and then.
        """
        limit = self.context.now_ns() + self._limit_ns()
        accounts = self._counters()
        while any(under_way(counters) for counters in accounts) and self.context.now_ns() < limit:
            self.context.rest(DRAIN_STEP_NS)
            accounts = self._counters()
        self.network.stages.recorded.stop()
        records = Records(self.context.folders.records / "accounting.jsonl")
        still_open: list[str] = []
        for direction, counters in zip(self.network.directions, accounts, strict=True):
            missing = under_way(counters)
            if pieces := self.network.stages.pieces(direction):
                # Engine host: the lab kernel cuts them up before the queue
                # (images/lab-kernel/segments-before-queues.patch).
                still_open.append(
                    f"{direction.link}.{direction.name}: found {pieces} pieces of several packets (UDP segmentation "
                    "offload), which this machine's kernel cuts up behind the queue; expected single packets. Use "
                    "engine virtual or live, or switch the program's offload off"
                )
            elif direction.arriving in self.context.settled.drawn and self.network.stages.lost_all(direction):
                still_open.append(
                    f"{direction.link}.{direction.name}: found that all losses drawn for it had happened before the "
                    "end; expected some left. Send fewer packets, or use bit errors, which repeat"
                )
            elif (counters["most_packets"] or 0) > (most := self.network.stages.followed(direction)):
                still_open.append(
                    f"{direction.link}.{direction.name}: found {counters['most_packets']} packets in the queue; "
                    f"expected at most {most}, of which the lab knows when they leave. Lower the queue's limit"
                )
            elif missing:
                still_open.append(
                    f"{direction.link}.{direction.name}: offered {counters['offered_packets']}, {missing} "
                    "unaccounted for"
                )
            records.write(link=direction.link, direction=direction.name, **counters, closes=missing == 0)
        records.close()
        return still_open

    def _limit_ns(self) -> int:
        """How long packets may be under way after the end: a packet on the longest way, behind full queues, and the
        answer to it, arrive however long that takes.
        """
        return DRAIN_LIMIT_NS + self.network.longest_ns()

    def _counters(self) -> list[Counters]:
        """The counters of every direction, those of managed queues included."""
        managed = self.network.managed_queues()
        accounts: list[Counters] = [{**self.network.stages.account(direction)} for direction in self.network.directions]
        for direction, counters in zip(self.network.directions, accounts, strict=True):
            if (direction.link, direction.name) not in managed:
                continue
            drops, marks = managed[direction.link, direction.name]
            counters.update(dict.fromkeys(UNKNOWN_OF_MANAGED), queue_packets=(counters["queue_packets"] or 0) + drops)
            if direction.plan.queue is not None and direction.plan.queue.ecn:
                counters["marked_packets"] = marks
        return accounts


def under_way(counters: Counters) -> int:
    """Packets offered, or doubled on the way, that are neither delivered nor lost for a stated cause."""
    gone = sum(counters.get(f"{cause}_packets") or 0 for cause in ALL_CAUSES) + (counters["delivered_packets"] or 0)
    return (counters["offered_packets"] or 0) + (counters["duplicated_packets"] or 0) - gone


class Pace:
    """Ticks from the epoch to `stop`: on the lab's loop, every few milliseconds, each with how late it comes.

    In virtual time nothing can be late, and plans ask for no ticks.
    """

    def __init__(self, context: Context, tick_ns: int, late_ns: int, late_share: float) -> None:
        self.context, self.tick_ns, self.late_ns, self.late_share = context, tick_ns, late_ns, late_share
        self.ticks, self.late, self.worst_ns = 0, 0, 0
        self.stopped, self.due_ns = False, context.epoch.realtime_ns

    @classmethod
    def asked_for(cls, context: Context, limits: Limits) -> Self | None:
        """The ticks for a plan's limits; None if the limits ask for none."""
        if limits.tick_ns is None or limits.late_ns is None or limits.late_share is None:
            return None
        return cls(context, limits.tick_ns, limits.late_ns, limits.late_share)

    def start(self) -> None:
        """Takes the first tick at the epoch."""
        self.context.loop.at(self.due_ns, self._tick)

    def _tick(self) -> None:
        if self.stopped:
            return
        lateness_ns = self.context.now_ns() - self.due_ns
        self.ticks += 1
        self.late += lateness_ns > self.late_ns
        self.worst_ns = max(self.worst_ns, lateness_ns)
        # Ticks that could not come in time count too: they come together, each with its own lateness.
        self.due_ns += self.tick_ns
        self.context.loop.at(self.due_ns, self._tick)

    def stop(self) -> str:
        """Ends the ticks and writes their lateness to the lab's log.

        Returns "" if the lab kept real time, else the reason of the failure.
        """
        self.stopped = True
        self.context.log.write(event="pace", ticks=self.ticks, late=self.late, worst_s=self.worst_ns / 1e9)
        if self.late <= self.late_share * self.ticks:
            return ""
        share, most, late_ms = 100 * self.late / self.ticks, 100 * self.late_share, self.late_ns / 1e6
        found = f"{share:.1f} % of the lab's ticks came more than {late_ms:g} ms late"
        return (
            f"real time was not kept: found {found}; expected at most {most:g} %. "
            "Lower the rates, stop other programs on this machine, "
            "give the lab priority (as root: chrt -f 10 scpslab run …), or allow more (limits.lateness)"
        )
