"""Events of dipt-quic-workbench, JSON: links that go up and down, and change their rate and delay.

A link is in the other state before its first event of a state, as there.
"""

from __future__ import annotations

from scpslab.core import strict_json
from scpslab.core.problems import UnfitError
from scpslab.scenario.profiles.format import Format, Options, json_object
from scpslab.scenario.profiles.profile import LATEST_NS, MS_NS, Imported, Profile, collapsed

STATES = {"up": True, "down": False}
EXPECTED = "relative_time_ms, and a link with its id and status, bandwidth_bps or delay_ms"


class Dipt(Format):
    """A direction for each link."""

    name, suffixes = "dipt", (".events",)
    says = "events of dipt-quic-workbench: what they do not say stays as the link has it"

    def read(self, data: bytes, name: str, options: Options) -> Imported:
        """The events; those of ratios are left out."""
        columns: dict[str, dict[str, list[tuple[int, int]]]] = {}
        left = 0
        for at, event in enumerate(strict_json.items(json_object(data, name), "events", dict), 1):
            link = strict_json.section(event, "link")
            time_ms, named = strict_json.count(event, "relative_time_ms"), strict_json.text(link, "id")
            status = link.get("status")
            if (
                time_ms is None
                or not 0 <= time_ms * MS_NS <= LATEST_NS
                or named is None
                or status not in (None, *STATES)
            ):
                raise UnfitError(f"event {at}", EXPECTED, "Correct it.", name)
            steps = columns.setdefault(named, {"up": [], "rate_bps": [], "delay_ns": []})
            if isinstance(status, str):
                steps["up"].append((time_ms * MS_NS, STATES[status]))
            for key, column, per_unit in (("bandwidth_bps", "rate_bps", 1), ("delay_ms", "delay_ns", MS_NS)):
                if (value := strict_json.count(link, key)) is not None:
                    steps[column].append((time_ms * MS_NS, value * per_unit))
            left += bool(link.keys() - {"id", "status", "bandwidth_bps", "delay_ms"})
        notes = (f"{left} events with ratios or extra delays were left out, as far as they go.",) if left else ()
        found = {link: _profile(steps) for link, steps in columns.items() if any(steps.values())}
        if not found:
            raise UnfitError("no event of a link", EXPECTED, "Choose another format.", name)
        return Imported(found, notes)


def _profile(steps: dict[str, list[tuple[int, int]]]) -> Profile:
    up = sorted(steps["up"], key=lambda step: step[0])
    if up and up[0][0] > 0:
        up.insert(0, (0, not up[0][1]))
    rates, delays = (sorted(steps[name], key=lambda step: step[0]) for name in ("rate_bps", "delay_ns"))
    states = collapsed((t_ns, bool(state)) for t_ns, state in up)
    return Profile(rate_bps=collapsed(rates), delay_ns=collapsed(delays), up=states)
