"""Contact plans of ION (ionadmin's `a contact` and `a range`): rates in bytes per second, delays in seconds."""

from __future__ import annotations

import re
from datetime import UTC, datetime

from scpslab.core.names import shown
from scpslab.core.problems import UnfitError
from scpslab.scenario.profiles.contacts import Contact, profiles_of, spans
from scpslab.scenario.profiles.format import Format, Options
from scpslab.scenario.profiles.profile import SECOND_NS, Imported, Profile, decoded, number, seconds

# ION counts bytes where everybody else counts bits.
BITS = 8
TIME = "%Y/%m/%d-%H:%M:%S"
NODE = re.compile(r"[0-9]{1,19}", re.ASCII)


class Ion(Format):
    """A direction for each pair of nodes with a contact."""

    name, suffixes = "ion", (".ionrc", ".cp", ".contact")
    says = "a contact plan of ION: outside of contacts a link is down; rates are bytes per second in the file"

    def read(self, data: bytes, name: str, options: Options) -> Imported:
        """The plan; commands that are no contacts and ranges are left out."""
        lines = _lines(decoded(data, name), name)
        stamps = [t_ns for _, words in lines for word in words if (t_ns := _absolute_ns(word)) is not None]
        base_ns, left = min(stamps, default=0), 0
        contacts: list[tuple[str, str, int, int, int, str]] = []
        ranges: dict[tuple[str, str], list[tuple[int, int, int]]] = {}
        reference_ns = base_ns
        for subject, words in lines:
            if words[0] == "@" and len(words) > 1:
                reference_ns = _time_ns(words[1], 0, base_ns, subject) + base_ns
            elif words[0] == "d" and words[1:2] in (["contact"], ["range"]):
                raise UnfitError(f"d {words[1]}", "a plan that only adds", "Remove both lines.", subject)
            elif words[0] == "a" and words[1:2] in (["contact"], ["range"]) and len(words) >= 7:
                start_ns, end_ns = (_time_ns(word, reference_ns, base_ns, subject) for word in words[2:4])
                source, dest = (_node(word, subject) for word in words[4:6])
                if words[1] == "contact":
                    rate_bps = BITS * number(words[6], "bytes per second", subject)
                    contacts.append((source, dest, start_ns, end_ns, rate_bps, subject))
                else:
                    delay_ns = number(words[6], "seconds of light time", subject, SECOND_NS)
                    ranges.setdefault((source, dest), []).append((start_ns, end_ns, delay_ns))
            else:
                left += 1
        found = (_contact(one, ranges) for one in contacts)
        notes = ["Times count from the plan's reference time; rates are 8 times the file's bytes per second."]
        if left:
            notes.append(f"{left} lines that are neither contacts nor ranges were left out.")
        return profiles_of(found, name, tuple(notes))

    def write(self, profile: Profile, options: Options) -> str:
        """The contacts of a direction between two nodes."""
        first, second = options.nodes
        lines = []
        for start_ns, end_ns in spans(profile, "a contact plan"):
            rate, delay = (profile.at(name, start_ns) for name in ("rate_bps", "delay_ns"))
            if rate is None:
                raise UnfitError(f"no rate at {seconds(start_ns)} s", "one for every contact", "Add it to the profile.")
            inside = [t_ns for name in ("rate_bps", "delay_ns") for t_ns, _ in profile.columns[name]]
            if (
                any(start_ns < t_ns < end_ns for t_ns in inside)
                or rate % BITS
                or any(t_ns % SECOND_NS for t_ns in (start_ns, end_ns))
            ):
                found = f"changes within the contact at {seconds(start_ns)} s, or parts of bytes or seconds"
                raise UnfitError(found, "contacts of one rate and delay, in whole bytes per second and seconds", "")
            when = f"+{start_ns // SECOND_NS} +{end_ns // SECOND_NS} {first} {second}"
            lines.append(f"a contact {when} {int(rate) // BITS}")
            if delay is not None:
                # ION counts whole seconds.
                lines.append(f"a range {when} {round(delay / SECOND_NS)}")
        return "\n".join(lines) + "\n"


def _lines(text: str, name: str) -> list[tuple[str, list[str]]]:
    words = ((f"{name}:{at}", line.split("#")[0].split()) for at, line in enumerate(text.splitlines(), 1))
    return [(subject, found) for subject, found in words if found]


def _node(word: str, subject: str) -> str:
    if NODE.fullmatch(word) is None:
        raise UnfitError(shown(word), "the number of a node", "Correct the line.", subject)
    return str(int(word))


def _absolute_ns(word: str) -> int | None:
    try:
        return int(datetime.strptime(word, TIME).replace(tzinfo=UTC).timestamp()) * SECOND_NS
    except ValueError:
        return None


def _time_ns(word: str, reference_ns: int, base_ns: int, subject: str) -> int:
    """A time of the plan, counted from the earliest absolute one."""
    if word.startswith("+"):
        return reference_ns - base_ns + number(word[1:], "a time such as +60", subject, SECOND_NS)
    if (t_ns := _absolute_ns(word)) is None:
        raise UnfitError(shown(word), "a time such as +60 or 2026/11/29-20:00:00", "Correct the line.", subject)
    return t_ns - base_ns


def _contact(
    given: tuple[str, str, int, int, int, str], ranges: dict[tuple[str, str], list[tuple[int, int, int]]]
) -> Contact:
    """A contact with the ranges that hold in it: a range counts for both ways, unless the other has its own."""
    source, dest, start_ns, end_ns, rate_bps, subject = given
    own = ranges.get((source, dest)) or ranges.get((dest, source)) or []
    changes = [(start_ns, rate_bps, None, None)]
    delays = [
        (max(begin, start_ns), None, delay, None) for begin, end, delay in own if begin < end_ns and end > start_ns
    ]
    return Contact(source, dest, start_ns, end_ns, (*changes, *sorted(delays)), subject)
