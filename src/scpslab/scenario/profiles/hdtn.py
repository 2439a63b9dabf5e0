"""Contact plans of HDTN, JSON: rates in bit/s (`rateBitsPerSec`; the older `rate` in Mbit/s), delays in seconds."""

from __future__ import annotations

import json

from scpslab.core import strict_json
from scpslab.core.problems import UnfitError
from scpslab.scenario.profiles.contacts import Contact, profiles_of, spans
from scpslab.scenario.profiles.format import Format, Options, json_object
from scpslab.scenario.profiles.profile import SECOND_NS, Imported, Profile, seconds

MBIT = 10**6


class Hdtn(Format):
    """A direction for each pair of nodes with a contact."""

    name, suffixes = "hdtn", (".hdtn",)
    says = "a contact plan of HDTN: outside of contacts a link is down; rates are bit/s"

    def read(self, data: bytes, name: str, options: Options) -> Imported:
        """The plan."""
        found = strict_json.items(json_object(data, name), "contacts", dict)
        contacts = [_contact(given, f"{name}, contact {at}") for at, given in enumerate(found, 1)]
        return profiles_of(contacts, name)

    def write(self, profile: Profile, options: Options) -> str:
        """The contacts of a direction between two nodes."""
        contacts = []
        for number, (start_ns, end_ns) in enumerate(spans(profile, "a contact plan")):
            rate, delay = (profile.at(column, start_ns) for column in ("rate_bps", "delay_ns"))
            if rate is None or start_ns % SECOND_NS or end_ns % SECOND_NS:
                found = f"no rate, or a part of a second, at {seconds(start_ns)} s"
                raise UnfitError(found, "contacts with a rate, from whole second to whole second", "")
            source, dest = options.nodes
            times = {"startTime": start_ns // SECOND_NS, "endTime": end_ns // SECOND_NS}
            light = {"rateBitsPerSec": int(rate), "owlt": round((delay or 0) / SECOND_NS)}
            contacts.append({"contact": number, "source": source, "dest": dest, **times, **light})
        return json.dumps({"contacts": contacts}, indent=1) + "\n"


def _contact(given: strict_json.JsonObject, where: str) -> Contact:
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
