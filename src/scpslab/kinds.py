"""Kinds by name: a kind is a module of its own in every package that knows it, under the kind's name, and says there what `KIND` is."""

from __future__ import annotations

from collections.abc import Iterable
from importlib import import_module
from typing import Any

# What names of kinds have, and names of modules cannot: `linux-2.0` is linux_2_0.py.
NO_MODULE = str.maketrans("-.", "__")


def kinds_of(package: str, names: Iterable[str]) -> dict[str, Any]:
    """What a package has of each kind, in the order of the names."""
    return {name: import_module(f"{package}.{name.translate(NO_MODULE)}").KIND for name in names}
