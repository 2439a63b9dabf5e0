"""What a path was measured to do: delays of echoes (ping, irtt), and what passed of iperf3."""

import re

from scpslab.core import strict_json
from scpslab.core.problems import UnfitError
from scpslab.scenario.profiles.format import Format, Options, json_object
from scpslab.scenario.profiles.profile import SECOND_NS, Imported, Profile, collapsed, decoded, number

WRAPS = 1 << 16
REPLY = re.compile(
    r"(?:\[(\d{1,12}\.\d{1,9})\] )?\d+ bytes from .*?icmp_seq=(\d{1,9}) .*?time=(\d{1,9}(?:\.\d{1,6})?) ms", re.ASCII
)


class Ping(Format):
    """Delays: its output, best with -D."""

    name, suffixes = "ping", (".ping",)
    says = "replies of ping: the delay is half of the round trip, at the time at which the probe was sent"

    def read(self, data: bytes, name: str, options: Options) -> Imported:
        """One direction."""
        steps: list[tuple[int, int]] = []
        seen: set[int] = set()
        last = 0
        for at, line in enumerate(decoded(data, name).splitlines(), 1):
            if (found := REPLY.match(line)) is None:
                continue
            stamp, text, round_trip = found.groups()
            # ping counts in 16 bits: the number nearest to the one before.
            sequence = int(text) + (last - int(text) + WRAPS // 2) // WRAPS * WRAPS if seen else int(text)
            if sequence in seen:  # a duplicate is later than the reply
                continue
            last = sequence
            rtt_ns = number(round_trip, "a round trip", f"{name}:{at}", 10**6)
            arrived_ns = number(stamp, "a time", f"{name}:{at}", SECOND_NS) if stamp else None
            sent_ns = sequence * options.probe_every_ns if arrived_ns is None else arrived_ns - rtt_ns
            steps.append((sent_ns, rtt_ns // 2))
            seen.add(sequence)
        if not steps:
            expected = "lines such as 64 bytes from …: icmp_seq=1 ttl=58 time=23.4 ms"
            raise UnfitError("no reply of ping", expected, "Choose another format.", name)
        missing = max(seen) - min(seen) + 1 - len(seen)
        notes = (
            "The delay of one way is half of the round trip, which a log does not divide.",
            f"{missing} of {missing + len(seen)} probes had no reply; they are not taken for outages.",
        )
        return Imported({"forward": _from_first(steps)}, notes)


class Irtt(Format):
    """Delays of both directions, each its own where both clocks agree: the JSON of `irtt client -o`."""

    name, suffixes = "irtt", (".irtt",)
    says = "round trips of irtt: the delay is half of each; with --one-way, that which the two clocks show"

    def read(self, data: bytes, name: str, options: Options) -> Imported:
        """The direction from the client, and back."""
        trips = strict_json.items(json_object(data, name), "round_trips", dict)
        steps: dict[str, list[tuple[int, int]]] = {"forward": [], "return": []}
        for at, trip in enumerate(trips, 1):
            if trip.get("lost") != "false":
                continue
            sent = strict_json.section(strict_json.section(strict_json.section(trip, "timestamps"), "client"), "send")
            sent_ns = strict_json.count(sent, "wall")
            delay = strict_json.section(trip, "delay")
            names = ("send", "receive") if options.one_way else ("rtt", "rtt")
            found = [strict_json.count(delay, one) for one in names]
            for way, value in zip(steps, found, strict=True):
                if sent_ns is None or value is None or value < 0:
                    expected = f"timestamps.client.send.wall and delay.{names[0]}, whole nanoseconds of at least 0"
                    raise UnfitError(f"round trip {at} without its times", expected, "Correct the file.", name)
                steps[way].append((sent_ns, value if options.one_way else value // 2))
        if not steps["forward"]:
            raise UnfitError("no round trip", 'round_trips with "lost": "false"', "Choose another format.", name)
        profiles = {way: _from_first(found) for way, found in steps.items()}
        lost = len(trips) - len(steps["forward"])
        return Imported(profiles, (f"{lost} of {len(trips)} probes were lost; they are not taken for outages.",))


def _from_first(steps: list[tuple[int, int]]) -> Profile:
    """Delays by the times at which probes were sent; time counts from the first of these."""
    first_ns = min(t_ns for t_ns, _ in steps)
    return Profile(delay_ns=collapsed(sorted((t_ns - first_ns, delay) for t_ns, delay in steps)))


class Iperf3(Format):
    """The JSON of `iperf3 -J`: what passed in each interval becomes the rate of the link."""

    name, suffixes = "iperf3", (".iperf3",)
    says = "throughput of iperf3: each interval's is the rate of the link while it lasts"

    def read(self, data: bytes, name: str, options: Options) -> Imported:
        """One direction."""
        steps = []
        for at, interval in enumerate(strict_json.items(json_object(data, name), "intervals", dict), 1):
            total = strict_json.section(interval, "sum")
            if total.get("omitted") is True:  # iperf3 -O: its times begin again after it
                continue
            start_s, bps = strict_json.number(total, "start"), strict_json.number(total, "bits_per_second")
            if start_s is None or bps is None or not 0 <= start_s < 10**9 or bps < 0:
                expected = "sum.start and sum.bits_per_second, numbers of at least 0"
                raise UnfitError(f"interval {at} without its rate", expected, "Correct the file.", name)
            steps.append((round(start_s * SECOND_NS), round(bps)))
        if not steps:
            raise UnfitError("no interval", "the output of iperf3 -J", "Choose another format.", name)
        note = "A measured throughput is at most the rate that the link had: a sender that waited shows less."
        return Imported({"forward": Profile(rate_bps=collapsed(steps))}, (note,))
