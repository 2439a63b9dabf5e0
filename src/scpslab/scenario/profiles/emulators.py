"""What other emulators play: Mahimahi's traces, with LeoCC's delays beside them, and events of dipt-quic-workbench."""

from collections import Counter
from itertools import chain

from scpslab.core import strict_json
from scpslab.core.names import shown
from scpslab.core.problems import UnfitError
from scpslab.scenario.profiles.format import Format, Options, json_object
from scpslab.scenario.profiles.profile import (
    LATEST_NS,
    MOST_STEPS,
    MS_NS,
    Imported,
    Profile,
    collapsed,
    decoded,
    refuse,
    seconds,
)

MOST_LINES = 1 << 23


class Mahimahi(Format):
    """One direction of delivery opportunities.

    Each line is a time in whole milliseconds at which one full packet may leave; several lines may say the same time,
    and after the last one everything begins again. A chance that nobody uses is lost: traces are delivery
    opportunities, not rates (mahimahi, mm-link(1)). The file of delays has the one-way delay in whole milliseconds of
    each 10 ms (LeoCC).
    """

    name, suffixes = "mahimahi", (".trace", ".up", ".down")
    says = (
        "delivery opportunities: each line is a millisecond at which one packet of 1500 bytes may leave; unused ones "
        "are lost, and after the last line the trace begins again"
    )

    def read(self, data: bytes, name: str, options: Options) -> Imported:
        """The trace, with the delays beside it."""
        chances = _whole_ms(data, name)
        if sorted(chances) != chances or not chances[-1:] or not chances[-1]:
            raise UnfitError(
                "times that do not ascend to one above 0", "whole milliseconds that ascend", "Sort them.", name
            )
        packets = tuple(sorted((ms * MS_NS, number) for ms, number in Counter(chances).items()))
        delay_ns: tuple[tuple[int, int], ...] = ()
        notes = ["An opportunity is for 1500 bytes and the link's framing; mahimahi's own framing is overhead: 4 B."]
        if options.delays is not None:
            lines = _whole_ms(options.delays[1], options.delays[0])
            delay_ns = collapsed((number * options.delay_every_ns, ms * MS_NS) for number, ms in enumerate(lines))
            late = len(delay_ns)
            delay_ns = tuple(step for step in delay_ns if step[0] <= chances[-1] * MS_NS)
            late -= len(delay_ns)
            notes.append(f"Delays hold for {seconds(options.delay_every_ns)} s each, and begin again with the trace.")
            notes += [f"{late} changes of delay after the trace's end were left out."] if late else []
        return Imported(
            {"forward": Profile(packets=packets, delay_ns=delay_ns, repeat_ns=chances[-1] * MS_NS)}, (*notes,)
        )

    def write(self, profile: Profile, options: Options) -> str:
        """The trace of opportunities."""
        refuse(profile, "delay_ns", "ber", "up")
        times = [t_ns for t_ns, number in profile.packets if number]
        if not times or (parts := [t_ns for t_ns in times if t_ns % MS_NS]):
            found = f"an opportunity at {seconds(parts[0])} s" if times else "no opportunity"
            raise UnfitError(found, "opportunities at whole milliseconds; rates are none", "Export it as csv.")
        if profile.repeat_ns != times[-1]:
            again = f"after {seconds(profile.repeat_ns)} s" if profile.repeat_ns else "at no time"
            found = f"a profile that begins again {again}, with its last opportunity at {seconds(times[-1])} s"
            raise UnfitError(found, "one that begins again at its last one, as traces do", "Export it as csv.")
        lines = chain.from_iterable([str(t_ns // MS_NS)] * number for t_ns, number in profile.packets)
        return "\n".join(lines) + "\n"


def _whole_ms(data: bytes, name: str) -> list[int]:
    lines = decoded(data, name).splitlines()
    if len(lines) > MOST_LINES:
        raise UnfitError(f"{len(lines)} lines", f"at most {MOST_LINES}", "Shorten the file.", name)
    times = []
    for at, line in enumerate(lines, 1):
        text = line.strip()
        if not text.isascii() or not text.isdecimal() or len(text) > 12:
            raise UnfitError(shown(text), "a whole number of milliseconds", "Correct the line.", f"{name}:{at}")
        times.append(int(text))
    if len({*times}) > MOST_STEPS:
        raise UnfitError(f"{len({*times})} different times", f"at most {MOST_STEPS}", "Shorten the file.", name)
    return times


DIPT_STATES = {"up": True, "down": False}
DIPT_EXPECTED = "relative_time_ms, and a link with its id and status, bandwidth_bps or delay_ms"


class Dipt(Format):
    """JSON of links that go up and down, and change their rate and delay: a direction for each link.

    A link is in the other state before its first event of a state, as there.
    """

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
                or status not in (None, *DIPT_STATES)
            ):
                raise UnfitError(f"event {at}", DIPT_EXPECTED, "Correct it.", name)
            steps = columns.setdefault(named, {"up": [], "rate_bps": [], "delay_ns": []})
            if isinstance(status, str):
                steps["up"].append((time_ms * MS_NS, DIPT_STATES[status]))
            for key, column, per_unit in (("bandwidth_bps", "rate_bps", 1), ("delay_ms", "delay_ns", MS_NS)):
                if (value := strict_json.count(link, key)) is not None:
                    steps[column].append((time_ms * MS_NS, value * per_unit))
            left += bool(link.keys() - {"id", "status", "bandwidth_bps", "delay_ms"})
        notes = (f"{left} events with ratios or extra delays were left out, as far as they go.",) if left else ()
        found = {link: _profile(steps) for link, steps in columns.items() if any(steps.values())}
        if not found:
            raise UnfitError("no event of a link", DIPT_EXPECTED, "Choose another format.", name)
        return Imported(found, notes)


def _profile(steps: dict[str, list[tuple[int, int]]]) -> Profile:
    up = sorted(steps["up"], key=lambda step: step[0])
    if up and up[0][0] > 0:
        up.insert(0, (0, not up[0][1]))
    rates, delays = (sorted(steps[name], key=lambda step: step[0]) for name in ("rate_bps", "delay_ns"))
    states = collapsed((t_ns, bool(state)) for t_ns, state in up)
    return Profile(rate_bps=collapsed(rates), delay_ns=collapsed(delays), up=states)
