"""The kinds of things that a laboratory is made of: the one list of their names, and how a layer finds what it knows of
each.

A kind is a folder, `kinds/<family>/<kind>/`, with a file for every layer that knows it: `plan.py`, `lab.py`,
`scenario.py`, `metrics.py`; each says what `KIND` is there. Only the standard library is used here: the lab program
imports this module inside the guest too.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import TypeVar

T = TypeVar("T")

# A line for each kind, in the order in which references and tables have them; services of the lab's own start in it.
NAMES: dict[str, tuple[str, ...]] = {
    "workloads": (
        "bulk",
        "endpoint",
        "ftp",
        "fp",
        "iperf3",
        "ping",
        "background",
        "policy",
        "transport",
    ),
    "services": (
        "np-router",
        "host-gateway",
        "gateway",
        "command",
    ),
    "probes": (
        "capture",
        "tcp_info",
        "queue",
        "losses",
    ),
    "disciplines": (
        "drop-tail",
        "red",
        "codel",
        "ack-filter",
    ),
    "errors": (
        "none",
        "independent",
        "clustered",
        "gilbert-elliott",
        "vector-file",
        "packet",
    ),
    "stacks": (
        "kernel",
        "scps",
        "image",
    ),
}
# Kinds by the names that they had up to 0.3.0, in files of that time and in the names of random streams.
FORMER: dict[str, dict[str, str]] = {
    "workloads": {"congestion": "background"},
    "probes": {"verdicts": "losses"},
    "errors": {"packet-loss": "packet"},
}
# What names of kinds have, and names of folders cannot: `drop-tail` is drop_tail/.
NO_MODULE = str.maketrans("-.", "__")


class Layer(Mapping[str, T]):
    """What a layer has of each kind of a family, by name.

    A kind is loaded when it is asked for: its modules need what the layer's own modules say.
    """

    def __init__(self, family: str, layer: str) -> None:
        self.family, self.layer = family, layer
        self._loaded: dict[str, T] = {}

    def __getitem__(self, name: str) -> T:
        """The kind; raises KeyError for what is none."""
        if name not in self._loaded:
            if name not in self:
                raise KeyError(name)
            self._loaded[name] = import_module(
                f"scpslab.kinds.{self.family}.{name.translate(NO_MODULE)}.{self.layer}"
            ).KIND
        return self._loaded[name]

    def __contains__(self, name: object) -> bool:
        """Whether there is such a kind; nothing is loaded."""
        return name in NAMES[self.family]

    def __iter__(self) -> Iterator[str]:
        """The names, in their order."""
        return iter(NAMES[self.family])

    def load(self) -> None:
        """Loads every kind now."""
        for name in self:
            self[name]

    def __len__(self) -> int:
        """How many there are."""
        return len(NAMES[self.family])
