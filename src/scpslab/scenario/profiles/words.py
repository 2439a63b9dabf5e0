"""A profile explained in words, and drawn."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import TYPE_CHECKING

from scpslab.core import units
from scpslab.scenario.profiles.profile import MS_NS, SECOND_NS, WORDS, Profile, seconds

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FULL_PACKET_BITS = 8 * 1500
LABELS = {"rate_bps": ("rate (Mbit/s)", 1e6), "delay_ns": ("delay (ms)", 1e6), "ber": ("bit error rate", 1.0)}


def explained(profile: Profile) -> Iterator[str]:
    """Sentences, each a line."""
    stays = f"Its last change is at {seconds(profile.last_ns)} s; the last values stay."
    yield f"It lasts {seconds(profile.repeat_ns)} s and then begins again." if profile.repeat_ns else stays
    for name, steps in profile.columns.items():
        if not steps:
            yield f"{WORDS[name]}: nothing is said, so that the link's own holds."
        elif name == "packets":
            yield from _opportunities(profile)
        elif name == "up":
            yield from _states(profile)
        else:
            yield _values(name, steps, profile)


def _values(name: str, steps: tuple[tuple[int, float], ...], profile: Profile) -> str:
    values = [value for _, value in steps]
    least, most = (_text(name, value) for value in (min(values), max(values)))
    before = "" if steps[0][0] == 0 else f"; before {seconds(steps[0][0])} s the link's own holds"
    mean = ""
    if (end_ns := profile.repeat_ns or profile.last_ns) > steps[0][0]:
        ends = [*(t_ns for t_ns, _ in steps[1:]), end_ns]
        whole = sum(value * (end - t_ns) for (t_ns, value), end in zip(steps, ends, strict=True))
        mean = f", on average {_text(name, whole / (end_ns - steps[0][0]))}"
    count = f"{len(steps)} step{'s' if len(steps) > 1 else ''}"
    return f"{WORDS[name]}: {count} from {least} to {most}{mean}; each holds until the next{before}."


def _text(name: str, value: float) -> str:
    if name == "ber":
        return f"{value:.3g}"
    kind, unit = ("rate", "Mbit/s") if name == "rate_bps" else ("duration", "ms")
    is_short = value == int(value) and value < 1000
    return units.text(kind, int(value)) if is_short else f"{value / 1e6:.6g} {unit}"


def _opportunities(profile: Profile) -> Iterator[str]:
    counts = [number for _, number in profile.packets]
    end_ns = profile.repeat_ns or profile.last_ns + MS_NS
    total = sum(counts)
    mean = total * FULL_PACKET_BITS * SECOND_NS / end_ns / 1e6
    share, most = 100 * len(counts) * MS_NS / end_ns, max(counts)
    yield (
        f"opportunities: {total} for a full packet of 1500 bytes each in {seconds(end_ns)} s, {mean:.6g} Mbit/s if all "
        "are used."
    )
    yield (
        f"  They are at {len(counts)} instants ({share:.3g} % of its milliseconds), at most {most} at one "
        f"({most * FULL_PACKET_BITS / 1000:.6g} Mbit/s within that millisecond)."
    )
    yield (
        "  A packet leaves at the instant whose opportunities carry its last byte. What nobody waits for is lost: this "
        "is no rate."
    )


def _states(profile: Profile) -> Iterator[str]:
    states = profile.up if profile.up[0][0] == 0 else ((0, True), *profile.up)
    if profile.repeat_ns and not profile.up[0][0]:  # the next turn begins as this one did
        states = (*states, (profile.repeat_ns, states[0][1]))
    downs = [(t_ns, end) for (t_ns, is_up), (end, _) in pairwise(states) if not is_up]
    longest = max((end - t_ns for t_ns, end in downs), default=0)
    last = f"{'up' if states[-1][1] else 'down'} after {seconds(states[-1][0])} s"
    yield f"state: {len(downs)} times down and up again, for at most {seconds(longest)} s; {last}."


def drawn(profile: Profile, title: str) -> Figure:
    """A figure with a panel for each column that says something."""
    from matplotlib.figure import Figure  # noqa: PLC0415  # it takes as long to load as all the rest

    # The last values stay, and are seen to.
    end_s = (profile.repeat_ns or profile.last_ns * 1.05) / SECOND_NS or 1.0
    columns = [name for name, steps in profile.columns.items() if steps]
    figure = Figure(figsize=(8, 1 + 1.8 * len(columns)), layout="constrained")
    for axes, name in zip(figure.subplots(len(columns), 1, sharex=True, squeeze=False)[:, 0], columns, strict=True):
        steps = profile.columns[name]
        times = [t_ns / SECOND_NS for t_ns, _ in steps]
        if name == "packets":
            axes.vlines(times, 0, [number for _, number in steps], linewidth=0.5)
            axes.set_ylabel("full packets at once")
        else:
            label, factor = LABELS.get(name, ("state", 1.0))
            values = [value / factor for _, value in (*steps, steps[-1])]
            axes.step([*times, end_s], values, where="post")
            axes.set_ylabel(label)
            axes.set_ylim(0, 1.1 * max(values) or 1.0)
            if name == "up":
                axes.set_ylim(-0.1, 1.1)
                axes.set_yticks([0, 1], ["down", "up"])
    axes.set_xlim(0, end_s)
    axes.set_xlabel(f"time since the epoch (s){'; then all begins again' if profile.repeat_ns else ''}")
    figure.suptitle(title)
    return figure
