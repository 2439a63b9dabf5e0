"""Time-varying graphs of dtn-tvg-util, JSON of its version 2: rates in bit/s, delays in seconds, and bit error rates
where contacts are factual; of predicted contacts the last generation counts.
"""

from __future__ import annotations

from typing import Any

from scpslab.core import strict_json
from scpslab.core.problems import UnfitError
from scpslab.scenario.profiles.contacts import Contact, profiles_of
from scpslab.scenario.profiles.format import Format, Options, json_object
from scpslab.scenario.profiles.profile import SECOND_NS, Imported

KINDS = ("Contact_v2", "PredictedContact_v2")
EXPECTED = "a contact as dtn-tvg-util writes it: nodes, times, and changes of rate, bit error rate and delay"


class Tvg(Format):
    """A direction for each edge."""

    name, suffixes = "tvg", (".tvg",)
    says = "a time-varying graph of dtn-tvg-util: outside of contacts a link is down"

    def read(self, data: bytes, name: str, options: Options) -> Imported:
        """The graph; its first contact begins at 0 s."""
        graph = json_object(data, name)
        if (kind := graph.get("contact_type")) not in KINDS:
            raise UnfitError(f"the contact_type {str(kind)[:40]}", " or ".join(KINDS), "Write it again.", name)
        listed = [
            (item, f"{name}, edge {at}")
            for at, edge in enumerate(strict_json.items(graph, "edges", dict), 1)
            for item in strict_json.items(edge, "contacts", list)
        ]
        first_s = min((_number(item[2], where) for item, where in listed if len(item) == 5), default=0.0)
        contacts = [_contact(item, where, kind == KINDS[0], first_s) for item, where in listed]
        return profiles_of(
            contacts, name, (f"Times count from {first_s:.9g} s of the file, where the first contact begins.",)
        )


def _number(value: object, where: str) -> float:
    if not isinstance(value, int | float) or isinstance(value, bool) or not 0 <= value < 10**11:
        raise UnfitError(str(value)[:40], EXPECTED, "Correct it.", where)
    return float(value)


def _contact(item: list[Any], where: str, is_factual: bool, first_s: float) -> Contact:
    if len(item) != 5 or not all(isinstance(node, str) for node in item[:2]) or not isinstance(item[4], list):
        raise UnfitError("another list", EXPECTED, "Correct it.", where)
    start_s, end_s = (_number(value, where) - first_s for value in item[2:4])
    last = item[4] if is_factual else (item[4] or [None])[-1]
    changes = last if is_factual else last[2] if isinstance(last, list) and len(last) == 3 else None
    wanted = 4 if is_factual else 3
    if not isinstance(changes, list) or not all(isinstance(one, list) and len(one) == wanted for one in changes):
        raise UnfitError("other changes", EXPECTED, "Correct it.", where)
    found = []
    for change in changes:
        at_s, bps, *ber, delay_s = (_number(value, where) for value in change)
        at_ns = round(max(at_s - first_s, start_s) * SECOND_NS)
        found.append((at_ns, round(bps), round(delay_s * SECOND_NS), ber[0] if ber else None))
    return Contact(item[0], item[1], round(start_s * SECOND_NS), round(end_s * SECOND_NS), tuple(found), where)
