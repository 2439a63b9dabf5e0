"""The output of `ping`, best with -D: half of each round trip is taken for the delay of one way."""

from __future__ import annotations

import re

from scpslab.core.problems import UnfitError
from scpslab.scenario.profiles.format import Format, Options
from scpslab.scenario.profiles.profile import SECOND_NS, Imported, Profile, collapsed, decoded, number

REPLY = re.compile(
    r"(?:\[(\d{1,12}\.\d{1,9})\] )?\d+ bytes from .*?icmp_seq=(\d{1,9}) .*?time=(\d{1,9}(?:\.\d{1,6})?) ms", re.ASCII
)


class Ping(Format):
    """Delays."""

    name, suffixes = "ping", (".ping",)
    says = "replies of ping: the delay is half of the round trip, at the time at which the probe was sent"

    def read(self, data: bytes, name: str, options: Options) -> Imported:
        """One direction."""
        steps: list[tuple[int, int]] = []
        seen = set()
        for at, line in enumerate(decoded(data, name).splitlines(), 1):
            if (found := REPLY.match(line)) is None:
                continue
            stamp, sequence, round_trip = found.groups()
            rtt_ns = number(round_trip, "a round trip", f"{name}:{at}", 10**6)
            arrived_ns = number(stamp, "a time", f"{name}:{at}", SECOND_NS) if stamp else None
            sent_ns = int(sequence) * options.probe_every_ns if arrived_ns is None else arrived_ns - rtt_ns
            steps.append((sent_ns, rtt_ns // 2))
            seen.add(int(sequence))
        if not steps:
            raise UnfitError(
                "no reply of ping", "lines such as 64 bytes from …: icmp_seq=1 ttl=58 time=23.4 ms", "", name
            )
        first_ns = min(t_ns for t_ns, _ in steps)
        delay_ns = collapsed(sorted((t_ns - first_ns, delay) for t_ns, delay in steps))
        missing = max(seen) - min(seen) + 1 - len(seen)
        notes = (
            "The delay of one way is half of the round trip, which a log does not divide.",
            f"{missing} of {missing + len(seen)} probes had no reply; they are not taken for outages.",
        )
        return Imported({"forward": Profile(delay_ns=delay_ns)}, notes)
