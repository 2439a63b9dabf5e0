"""A user's Mininet script: what a plan holds of it, and the network that it describes when it runs in a guest."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence
from typing import Annotated, Literal

from scpslab.core.strict_json import JsonObject
from scpslab.plan import schema, values
from scpslab.plan.schema import Items, Part, Text

# A guest has so many nodes and links in its memory, and a script has so much to say of what it does without.
MOST_NODES, MOST_LINKS, MOST_NOTES = 200, 200, 100
# What a network of a script was made from.
SCRIPTS = "mn"
# The rate of a link that changes while it has none: it costs a packet nothing measurable.
UNLIMITED_BPS = 10**11
# How many files may come along with a script, and how large they may be together.
MOST_FILES, MOST_FILE_BYTES = 200, 1 << 20
Test = Literal["cli", "pingall", "iperf"]


def closing_link(links: Iterable[Sequence[str]], bridges: Iterable[str]) -> Sequence[str] | None:
    """The ends of the first link that closes a loop of bridges; None if there is none."""
    group = {name: name for name in bridges}
    for ends in links:
        first, second = (group.get(name) for name in ends)
        if first is not None and second is not None:
            if first == second:
                return ends
            group = {name: first if one == second else one for name, one in group.items()}
    return None


Base64 = Annotated[
    str, Text(f"at most {MOST_FILE_BYTES} bytes in base64", lambda text: len(text) <= 2 * MOST_FILE_BYTES)
]


class ScriptFile(Part):
    """A file beside a script, which its nodes see as well."""

    path: values.PlainText
    content: Base64


class MininetScript(Part):
    """A script, run in the guest outside of all nodes.

    `described`: the digest of its network; "" while it is asked for it.

    `topo` chooses one of the script's `topos`, with its arguments; `test` is what happens with it. `commands`: what
    CLI(net) reads. `arguments`: the script's own; `files`: what comes along.
    """

    file: values.Name
    code: values.PlainText
    topo: values.Label | None
    test: Test
    commands: values.PlainText
    described: values.KernelSeed
    arguments: tuple[values.PlainText, ...] = ()
    files: Annotated[tuple[ScriptFile, ...], Items(0, MOST_FILES)] = ()


class DescribedNode(Part):
    """A node. `may_loop`: a switch that stops what goes round."""

    name: values.Name
    kind: Literal["host", "router", "switch"]
    may_loop: bool | None = None


class DescribedEnd(Part):
    """Where a link meets a node, and what its interface sends with: Mininet's TCIntf in base units."""

    node: values.Name
    interface: values.Interface
    ip: values.IpWithPrefix | None
    mac: values.Mac | None
    rate_bps: values.Rate | None
    limit_packets: values.Amount
    delay_ns: values.Nanoseconds
    jitter_ns: values.Nanoseconds
    loss: values.Probability


class DescribedLink(Part):
    """A link. `changes`: the script may give it other numbers while it runs."""

    ends: tuple[DescribedEnd, DescribedEnd]
    changes: bool


class Described(Part):
    """A script's network. `notes`: what of it the lab does not do, in words."""

    nodes: Annotated[tuple[DescribedNode, ...], Items(1, MOST_NODES)]
    links: Annotated[tuple[DescribedLink, ...], Items(0, MOST_LINKS)]
    notes: Annotated[tuple[values.Label, ...], Items(0, MOST_NOTES)]

    @classmethod
    def read(cls, fields: object) -> Described:
        """The network that JSON's value states.

        Raises:
            PlanError: it is none.
        """
        return schema.read(cls, fields)

    def write(self) -> JsonObject:
        """What its JSON is to say."""
        return schema.write(self)

    @property
    def digest(self) -> str:
        """The digest of its nodes and links."""
        return hashlib.sha256(json.dumps(self.write() | {"notes": []}, sort_keys=True).encode()).hexdigest()
