"""The JSON of `irtt client -o`: round trips, and delays of each way where both clocks agree."""

from __future__ import annotations

from scpslab.core import strict_json
from scpslab.core.problems import UnfitError
from scpslab.scenario.profiles.format import Format, Options, json_object
from scpslab.scenario.profiles.profile import Imported, Profile, collapsed


class Irtt(Format):
    """Delays of both directions."""

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
        first_ns = min(t_ns for t_ns, _ in steps["forward"])
        profiles = {
            way: Profile(delay_ns=collapsed(sorted((t_ns - first_ns, delay) for t_ns, delay in found)))
            for way, found in steps.items()
        }
        lost = len(trips) - len(steps["forward"])
        return Imported(profiles, (f"{lost} of {len(trips)} probes were lost; they are not taken for outages.",))
