"""The kinds of things that a laboratory is made of: the one list of their names.

A kind is a folder, `kinds/<family>/<kind>/`, with a file for every layer that knows it: `plan.py`, `lab.py`,
`scenario.py`, `metrics.py`. Each registers what the layer has of the kind in a registry of that layer, which lets it be
imported at the first look. Kinds from elsewhere register themselves by the same call. The guest has this file too.
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

from scpslab.core.kinds import Registry

# A line for each kind, in the order in which references and tables have them; services of the lab's own start in it.
NAMES = {
    "workloads": (
        "bulk",
        "mix",
        "endpoint",
        "ftp",
        "fp",
        "iperf3",
        "ping",
        "background",
        "policy",
        "transport",
        "program",
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
# What names of kinds have, and names of folders cannot: `drop-tail` is drop_tail/.
NO_MODULE = str.maketrans("-.", "__")


def find(family: str, layer: str) -> Iterator[str]:
    """Imports what a layer has of a family's kinds, and says the names of all."""
    others = (one for folder in Registry.folders for one in sorted((folder / family).glob("[a-z]*/")))
    for name in (*NAMES[family], *dict.fromkeys(one.name.replace("_", "-") for one in others)):
        folder = name.translate(NO_MODULE)
        if any(Path(root, family, folder, f"{layer}.py").is_file() for root in __path__):
            import_module(f"{__name__}.{family}.{folder}.{layer}")
        yield name


def load(*layers: str) -> None:
    """Imports all that some layers have of the kinds, for who cannot wait until it is asked for."""
    for layer in layers:
        for family in NAMES:
            list(find(family, layer))


Registry.finder = find
