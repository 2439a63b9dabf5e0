"""The JSON of `iperf3 -J`: what passed in each interval becomes the rate of the link."""

from __future__ import annotations

from scpslab.core import strict_json
from scpslab.core.problems import UnfitError
from scpslab.scenario.profiles.format import Format, Options, json_object
from scpslab.scenario.profiles.profile import SECOND_NS, Imported, Profile, collapsed


class Iperf3(Format):
    """Rates."""

    name, suffixes = "iperf3", (".iperf3",)
    says = "throughput of iperf3: each interval's is the rate of the link while it lasts"

    def read(self, data: bytes, name: str, options: Options) -> Imported:
        """One direction."""
        steps = []
        for at, interval in enumerate(strict_json.items(json_object(data, name), "intervals", dict), 1):
            total = strict_json.section(interval, "sum")
            start_s, bps = strict_json.number(total, "start"), strict_json.number(total, "bits_per_second")
            if start_s is None or bps is None or not 0 <= start_s < 10**9 or bps < 0:
                expected = "sum.start and sum.bits_per_second, numbers of at least 0"
                raise UnfitError(f"interval {at} without its rate", expected, "Correct the file.", name)
            steps.append((round(start_s * SECOND_NS), round(bps)))
        if not steps:
            raise UnfitError("no interval", "the output of iperf3 -J", "Choose another format.", name)
        note = "A measured throughput is at most the rate that the link had: a sender that waited shows less."
        return Imported({"forward": Profile(rate_bps=collapsed(steps))}, (note,))
