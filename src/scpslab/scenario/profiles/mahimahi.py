"""Mahimahi's traces, and LeoCC's delays beside them.

Each line is a time in whole milliseconds at which one full packet may leave; several lines may say the same time, and
after the last one everything begins again. A chance that nobody uses is lost: traces are delivery opportunities, not
rates (mahimahi, mm-link(1)). The file of delays has the one-way delay in whole milliseconds of each 10 ms (LeoCC).
"""

from __future__ import annotations

from collections import Counter
from itertools import chain

from scpslab.core.names import shown
from scpslab.core.problems import UnfitError
from scpslab.scenario.profiles.format import Format, Options
from scpslab.scenario.profiles.profile import MOST_STEPS, MS_NS, Imported, Profile, collapsed, decoded, seconds

MOST_LINES = 1 << 23


class Mahimahi(Format):
    """One direction of delivery opportunities."""

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
            notes.append(f"Delays hold for {seconds(options.delay_every_ns)} s each, and do not begin again earlier.")
            delay_ns = tuple(step for step in delay_ns if step[0] <= chances[-1] * MS_NS)
        return Imported(
            {"forward": Profile(packets=packets, delay_ns=delay_ns, repeat_ns=chances[-1] * MS_NS)}, (*notes,)
        )

    def write(self, profile: Profile, options: Options) -> str:
        """The trace of opportunities."""
        if not profile.packets or any(t_ns % MS_NS for t_ns, _ in profile.packets):
            found = "a profile without opportunities at whole milliseconds"
            raise UnfitError(found, "one with them: a rate would have to be averaged", "Export it as csv.")
        end_ns = profile.repeat_ns or profile.last_ns
        if profile.packets[-1][0] != end_ns:
            found = (
                f"a profile that begins again {seconds(end_ns - profile.packets[-1][0])} s after its last opportunity"
            )
            raise UnfitError(found, "no time between them, which a trace cannot say", "Export it as csv.")
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
