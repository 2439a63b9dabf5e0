"""Contacts of contact plans as profiles: a direction for each ordered pair of nodes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from scpslab.core.problems import UnfitError
from scpslab.scenario.profiles.profile import Imported, Profile, collapsed, seconds


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
    return Imported({pair: _profile(found) for pair, found in pairs.items()}, notes)


def _profile(contacts: list[Contact]) -> Profile:
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


def spans(profile: Profile, what: str) -> list[tuple[int, int]]:
    """From when until when a profile is up (ns).

    Raises:
        UnfitError: it never goes down again, so that its last contact has no end.
    """
    turns = [*profile.up]
    if turns[:1] != [(0, False)]:
        turns = [(0, True), *(turn for turn in turns if turn[0] > 0)]
    starts = [t_ns for t_ns, is_up in turns if is_up]
    ends = [t_ns for t_ns, is_up in turns[1:] if not is_up]
    if len(starts) != len(ends):
        raise UnfitError("a profile that stays up at its end", f"one that ends down: {what} has the end of a contact")
    return list(zip(starts, ends, strict=True))
