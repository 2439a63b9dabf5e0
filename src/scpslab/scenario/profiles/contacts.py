"""Contact plans of ION, HDTN and dtn-tvg-util as profiles: a direction for each ordered pair of nodes."""

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import pairwise
from typing import Any

from scpslab.core import strict_json
from scpslab.core.names import shown
from scpslab.core.problems import UnfitError
from scpslab.scenario.profiles.format import Format, Options, json_object
from scpslab.scenario.profiles.profile import (
    SECOND_NS,
    WORDS,
    Imported,
    Profile,
    collapsed,
    decoded,
    number,
    refuse,
    seconds,
)


@dataclass(frozen=True)
class Contact:
    """When one node can send to another. `changes`: from when (ns) which rate (bit/s), delay (ns) and bit error rate
    hold; None: nothing is said. `where`: its place in the file.
    """

    source: str
    dest: str
    start_ns: int
    end_ns: int
    changes: tuple[tuple[int, int | None, int | None, float | None], ...]
    where: str


def profiles_of(contacts: Iterable[Contact], name: str, notes: tuple[str, ...] = ()) -> Imported:
    """The profiles of contacts; outside of them a direction is down.

    Raises:
        UnfitError: contacts of a pair overlap, or there is none.
    """
    pairs: dict[str, list[Contact]] = {}
    for contact in sorted(contacts, key=lambda one: (one.start_ns, one.end_ns)):
        if contact.end_ns <= contact.start_ns:
            found = f"a contact from {seconds(contact.start_ns)} s to {seconds(contact.end_ns)} s"
            raise UnfitError(found, "its end after its start", "Correct it.", contact.where)
        if contact.source == contact.dest:
            continue
        pair = pairs.setdefault(f"{contact.source}-{contact.dest}", [])
        if pair and contact.start_ns < pair[-1].end_ns:
            found = f"a contact at {seconds(contact.start_ns)} s, before that of {pair[-1].where} has ended"
            raise UnfitError(found, "contacts that do not overlap", "Merge them.", contact.where)
        pair.append(contact)
    if not pairs:
        raise UnfitError("no contact between two nodes", "at least one", "Choose another file.", name)
    return Imported({pair: _of_pair(found) for pair, found in pairs.items()}, notes)


def _of_pair(contacts: list[Contact]) -> Profile:
    changes = [change for contact in contacts for change in contact.changes]
    up = [(0, False)]
    for contact in contacts:
        up += [(contact.start_ns, True), (contact.end_ns, False)]
    return Profile(
        rate_bps=collapsed((at, rate) for at, rate, _, _ in changes if rate is not None),
        delay_ns=collapsed((at, delay) for at, _, delay, _ in changes if delay is not None),
        ber=collapsed((at, ber) for at, _, _, ber in changes if ber is not None),
        up=collapsed(up),
    )


def pieces(profile: Profile, rate_unit: int) -> list[tuple[int, int, int, int]]:
    """Contacts of one rate and delay each: from which second until which, the rate in units of so many bit/s, and the
    delay to the nearest second.

    Raises:
        UnfitError: contact plans cannot say the profile.
    """
    refuse(profile, "ber", "packets", "repeat_ns")
    times = {t_ns for name in ("rate_bps", "delay_ns") for t_ns, _ in profile.columns[name]}
    merged: list[tuple[int, int, int, int]] = []
    for begin_ns, stop_ns in _spans(profile):
        cuts = sorted({begin_ns, stop_ns, *(t_ns for t_ns in times if begin_ns < t_ns < stop_ns)})
        for start_ns, end_ns in pairwise(cuts):
            values = [_said(profile, name, start_ns) for name in ("rate_bps", "delay_ns")]
            same = merged and merged[-1][1] == start_ns and merged[-1][2:] == (values[0], round(values[1] / SECOND_NS))
            first_ns = merged.pop()[0] if same else start_ns
            merged.append((first_ns, end_ns, values[0], round(values[1] / SECOND_NS)))
    for start_ns, end_ns, rate, _ in merged:
        wholes = [(t_ns, SECOND_NS, f"a change at {seconds(t_ns)} s", "seconds") for t_ns in (start_ns, end_ns)]
        for value, unit, found, units in (*wholes, (rate, rate_unit, f"a rate of {rate} bit/s", "bytes per second")):
            if value % unit:
                raise UnfitError(found, f"whole {units}, as this format counts", "Round it in the profile.")
    return [(start // SECOND_NS, end // SECOND_NS, rate // rate_unit, delay) for start, end, rate, delay in merged]


def _said(profile: Profile, name: str, t_ns: int) -> int:
    if (value := profile.at(name, t_ns)) is None:
        raise UnfitError(f"no {WORDS[name]} at {seconds(t_ns)} s", "one for every contact", "Add it to the profile.")
    return int(value)


def _spans(profile: Profile) -> list[tuple[int, int]]:
    """From when until when a profile is up (ns)."""
    first = [(0, True)] if profile.up[:1] != ((0, False),) else []
    turns = collapsed([*first, *profile.up])
    if turns[-1][1]:
        found = f"a profile that stays up from {seconds(turns[-1][0])} s on"
        raise UnfitError(found, "one that ends down, as contacts do", "Add a last row with up 0.")
    return [(start, end) for (start, is_up), (end, _) in pairwise(turns) if is_up]


# ION counts bytes where everybody else counts bits.
BITS = 8
TIME = "%Y/%m/%d-%H:%M:%S"
# From when until when which delay holds, and its place in the file.
Ranges = dict[tuple[str, str], list[tuple[int, int, int, str]]]
NODE = re.compile(r"[0-9]{1,19}", re.ASCII)


class Ion(Format):
    """Plans of ionadmin's `a contact` and `a range`: rates in bytes per second, delays in seconds."""

    name, suffixes = "ion", (".ionrc", ".cp", ".contact")
    says = "a contact plan of ION: outside of contacts a link is down; rates are bytes per second in the file"

    def read(self, data: bytes, name: str, options: Options) -> Imported:
        """The plan; commands that are no contacts and ranges are left out."""
        lines = _ion_lines(decoded(data, name), name)
        stamps = [t_ns for _, words in lines for word in words if (t_ns := _absolute_ns(word)) is not None]
        base_ns, left = min(stamps, default=0), 0
        contacts: list[tuple[str, str, int, int, int, str]] = []
        ranges: Ranges = {}
        reference_ns = base_ns
        for subject, words in lines:
            if words[0] == "@" and len(words) > 1:
                reference_ns = _time_ns(words[1], 0, base_ns, subject) + base_ns
            elif words[0] == "d" and words[1:2] in (["contact"], ["range"]):
                raise UnfitError(f"d {words[1]}", "a plan that only adds", "Remove both lines.", subject)
            elif words[0] == "a" and words[1:2] in (["contact"], ["range"]):
                if len(words) < 7:
                    raise UnfitError(f"{len(words)} words", f"a {words[1]} and five more", "Complete it.", subject)
                start_ns, end_ns = (_time_ns(word, reference_ns, base_ns, subject) for word in words[2:4])
                source, dest = (_ion_node(word, subject) for word in words[4:6])
                if words[1] == "contact":
                    rate_bps = BITS * number(words[6], "bytes per second", subject)
                    contacts.append((source, dest, start_ns, end_ns, rate_bps, subject))
                else:
                    delay_ns = number(words[6], "seconds of light time", subject, SECOND_NS)
                    ranges.setdefault((source, dest), []).append((start_ns, end_ns, delay_ns, subject))
            else:
                left += 1
        _check_order(ranges)
        notes = ["Times count from the plan's reference time; rates are 8 times the file's bytes per second."]
        if left:
            notes.append(f"{left} lines that are neither contacts nor ranges were left out.")
        pairs = dict.fromkeys((source, dest) for source, dest, *_ in contacts if source != dest)
        if bare := ", ".join(f"{one}-{other}" for one, other in pairs if not _ranges(one, other, ranges)):
            notes.append(f"No range is said of {bare}: the link's own delay holds. ION uses no such contact.")
        return profiles_of((_ion_contact(one, ranges) for one in contacts), name, tuple(notes))

    def write(self, profile: Profile, options: Options) -> str:
        """The contacts of a direction between two nodes."""
        first, second = options.nodes
        lines = []
        for start_s, end_s, rate, delay_s in pieces(profile, BITS):
            when = f"+{start_s} +{end_s} {first} {second}"
            lines += [f"a contact {when} {rate}", f"a range {when} {delay_s}"]
        return "\n".join(lines) + "\n"


def _ion_lines(text: str, name: str) -> list[tuple[str, list[str]]]:
    words = ((f"{name}:{at}", line.split("#")[0].split()) for at, line in enumerate(text.splitlines(), 1))
    return [(subject, found) for subject, found in words if found]


def _ion_node(word: str, subject: str) -> str:
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


def _check_order(ranges: Ranges) -> None:
    for pair in ranges.values():
        for early, late in pairwise(sorted(pair)):
            if late[0] < early[1]:
                found = f"a range at {seconds(late[0])} s, before that of {early[3]} has ended"
                raise UnfitError(found, "ranges that do not overlap", "Correct them.", late[3])


def _ranges(source: str, dest: str, ranges: Ranges) -> list[tuple[int, int, int, str]]:
    """A range from the lower number to the higher counts for both ways, unless the other has its own (ionrc(5)), which
    is the last of those here.
    """
    both = ranges.get((dest, source), []) if int(dest) < int(source) else []
    return [*both, *ranges.get((source, dest), [])]


def _ion_contact(given: tuple[str, str, int, int, int, str], ranges: Ranges) -> Contact:
    """A contact with the delays of the ranges that hold in it; ION itself uses no contact without one."""
    source, dest, start_ns, end_ns, rate_bps, subject = given
    own = [one for one in _ranges(source, dest, ranges) if one[0] < end_ns and start_ns < one[1]]
    cuts = sorted({start_ns, *(t_ns for one in own for t_ns in one[:2] if start_ns < t_ns < end_ns)})
    changes: list[tuple[int, int | None, int | None, float | None]] = [(start_ns, rate_bps, None, None)]
    for t_ns in cuts if _ranges(source, dest, ranges) else ():
        holding = [one for one in own if one[0] <= t_ns < one[1]]
        if not holding:
            raise UnfitError(f"no range at {seconds(t_ns)} s", "one for the whole contact", "Add it.", subject)
        changes.append((t_ns, None, holding[-1][2], None))
    return Contact(source, dest, start_ns, end_ns, tuple(changes), subject)


MBIT = 10**6


class Hdtn(Format):
    """JSON: rates in bit/s (`rateBitsPerSec`; the older `rate` in Mbit/s), delays in seconds."""

    name, suffixes = "hdtn", (".hdtn",)
    says = "a contact plan of HDTN: outside of contacts a link is down; rates are bit/s"

    def read(self, data: bytes, name: str, options: Options) -> Imported:
        """The plan."""
        found = strict_json.items(json_object(data, name), "contacts", dict)
        contacts = [_hdtn_contact(given, f"{name}, contact {at}") for at, given in enumerate(found, 1)]
        return profiles_of(contacts, name)

    def write(self, profile: Profile, options: Options) -> str:
        """The contacts of a direction between two nodes."""
        contacts = []
        source, dest = options.nodes
        for at, (start_s, end_s, rate_bps, delay_s) in enumerate(pieces(profile, 1)):
            times = {"startTime": start_s, "endTime": end_s, "rateBitsPerSec": rate_bps, "owlt": delay_s}
            contacts.append({"contact": at, "source": source, "dest": dest, **times})
        return json.dumps({"contacts": contacts}, indent=1) + "\n"


def _hdtn_contact(given: strict_json.JsonObject, where: str) -> Contact:
    ends = [strict_json.count(given, key) for key in ("source", "dest")]
    times = [strict_json.number(given, key) for key in ("startTime", "endTime")]
    bps, mbps = strict_json.count(given, "rateBitsPerSec"), strict_json.count(given, "rate")
    rate_bps = bps if bps is not None or mbps is None else mbps * MBIT
    owlt_s = strict_json.number(given, "owlt") if "owlt" in given else 0.0
    if None in (*ends, *times, rate_bps, owlt_s) or any(not 0 <= (time or 0) < 10**9 for time in (*times, owlt_s)):
        expected = "source, dest, startTime, endTime, rateBitsPerSec and owlt, numbers of at least 0"
        raise UnfitError("a contact that lacks some of its keys", expected, "Correct it.", where)
    start_ns, end_ns = (round((time or 0) * SECOND_NS) for time in times)
    change = (start_ns, rate_bps, round((owlt_s or 0) * SECOND_NS), None)
    return Contact(str(ends[0]), str(ends[1]), start_ns, end_ns, (change,), where)


TVG_KINDS = ("Contact_v2", "PredictedContact_v2")
TVG_EXPECTED = "a contact as dtn-tvg-util writes it: nodes, times, and changes of rate, bit error rate and delay"


class Tvg(Format):
    """Time-varying graphs, JSON of version 2: rates in bit/s, delays in seconds, and bit error rates where contacts are
    factual; of predicted contacts the last generation counts.
    """

    name, suffixes = "tvg", (".tvg",)
    says = "a time-varying graph of dtn-tvg-util: outside of contacts a link is down"

    def read(self, data: bytes, name: str, options: Options) -> Imported:
        """The graph; its first contact begins at 0 s."""
        graph = json_object(data, name)
        if (kind := graph.get("contact_type")) not in TVG_KINDS:
            raise UnfitError(f"the contact_type {str(kind)[:40]}", " or ".join(TVG_KINDS), "Write it again.", name)
        listed = [
            (item, f"{name}, edge {at}")
            for at, edge in enumerate(strict_json.items(graph, "edges", dict), 1)
            for item in strict_json.items(edge, "contacts", list)
        ]
        first_s = min((_tvg_number(item[2], where) for item, where in listed if len(item) == 5), default=0.0)
        contacts = [_tvg_contact(item, where, kind == TVG_KINDS[0], first_s) for item, where in listed]
        return profiles_of(
            contacts, name, (f"Times count from {first_s:.9g} s of the file, where the first contact begins.",)
        )


def _tvg_number(value: object, where: str) -> float:
    if not isinstance(value, int | float) or isinstance(value, bool) or not 0 <= value < 10**11:
        raise UnfitError(str(value)[:40], TVG_EXPECTED, "Correct it.", where)
    return float(value)


def _tvg_contact(item: list[Any], where: str, is_factual: bool, first_s: float) -> Contact:
    if len(item) != 5 or not all(isinstance(node, str) for node in item[:2]) or not isinstance(item[4], list):
        raise UnfitError("another list", TVG_EXPECTED, "Correct it.", where)
    start_s, end_s = (_tvg_number(value, where) - first_s for value in item[2:4])
    last = item[4] if is_factual else (item[4] or [None])[-1]
    changes = last if is_factual else last[2] if isinstance(last, list) and len(last) == 3 else None
    wanted = 4 if is_factual else 3
    if not isinstance(changes, list) or not all(isinstance(one, list) and len(one) == wanted for one in changes):
        raise UnfitError("other changes", TVG_EXPECTED, "Correct it.", where)
    if not changes or _tvg_number(changes[0][0], where) > item[2]:
        text = f"a contact from {item[2]} s without a rate and a delay from its beginning"
        raise UnfitError(text, TVG_EXPECTED, "Add a change at its start.", where)
    found = []
    for change in changes:
        at_s, bps, *ber, delay_s = (_tvg_number(value, where) for value in change)
        at_ns = round(max(at_s - first_s, start_s) * SECOND_NS)
        found.append((at_ns, round(bps), round(delay_s * SECOND_NS), ber[0] if ber else None))
    return Contact(item[0], item[1], round(start_s * SECOND_NS), round(end_s * SECOND_NS), tuple(found), where)
