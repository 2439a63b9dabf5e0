"""Changes of a link as a person types them, after Mininet's command `link`."""

from __future__ import annotations

import math
from collections.abc import Iterable

from scpslab.core import units
from scpslab.lab.changes import ChangeError
from scpslab.plan.links import Link

KINDS = "ber, delay or rate with a value, down, or up"
PACKET_BITS = 8 * 1500
# Words for a change in other programs (tc-netem, Mininet's TCLink), and what to type here.
OTHER_WORDS = {
    "bw": 'The capacity is the rate: "rate 1 Mbit/s".',
    "jitter": "Jitter is part of a scenario (links.NAME.DIRECTION.jitter), and cannot change at the prompt.",
    "duplicate": "Duplicates are part of a scenario, and cannot change at the prompt.",
    "queue": "A queue is part of a scenario, or a parameter of the topology (--set), and cannot change at the prompt.",
}


def read_change(words: list[str]) -> tuple[str, int | float | str]:
    """The words after a link's name as a change: its kind and its value in base units.

    Raises:
        ChangeError: the words are not a change.
        units.UnitError: a quantity cannot be read.
    """
    match words:
        case ["down" | "up" as state]:
            return "state", state
        case ["ber", text]:
            try:
                ber = float(text)
            except ValueError as error:
                raise ChangeError(f'link: found the bit error rate "{text}"; expected a number such as 1e-5') from error
            if not 0 <= ber <= 0.5:
                raise ChangeError(f"link: found the bit error rate {text}; expected 0 to 0.5")
            return "ber", ber
        case ["delay", *rest] if rest:
            return "delay", units.parse("duration", " ".join(rest))
        case ["rate", *rest] if rest:
            return "rate", units.parse("rate", " ".join(rest))
        case ["loss", *rest]:
            raise ChangeError(f'link: found "{" ".join(words)}"; expected {KINDS}. {_instead_of_loss(rest)}')
        case []:
            raise ChangeError(f"link: found no change; expected {KINDS}")
    hint = OTHER_WORDS.get(words[0], 'Type "help link".')
    raise ChangeError(f'link: found "{" ".join(words)}"; expected {KINDS}. {hint}')


def _instead_of_loss(words: list[str]) -> str:
    """The bit error rate that loses that share of full-sized packets."""
    try:
        share = float("".join(words).removesuffix("%")) / 100
    except ValueError:
        share = 0.0
    if not 0 < share < 1:
        return 'Packets are lost to bit errors: type "ber 1e-6", for example.'
    ber = -math.expm1(math.log1p(-share) / PACKET_BITS)
    return f'Packets are lost to bit errors: "ber {ber:.1e}" loses {100 * share:g} % of the packets of 1500 bytes, and fewer of the short ones.'


def link_between(links: Iterable[Link], first: str, second: str) -> str:
    """The link between two nodes, or between a node and the switch that the link goes through.

    Raises:
        ChangeError: there is none.
    """
    links = list(links)
    for link in links:
        if {first, second} <= {link.ends[0].node, link.ends[1].node, link.via} and first != second:
            return link.name
    ends = ", ".join(f"{link.name} ({link.ends[0].node} {link.ends[1].node})" for link in links)
    raise ChangeError(f"link: found no link between {first} and {second}; expected the two ends of one of {ends}")


def as_text(what: str, value: float | str) -> float | str:
    """A change's value as a scenario has it."""
    if what in ("delay", "rate"):
        return units.text({"delay": "duration", "rate": "rate"}[what], int(value))
    return value
