"""A file that a person writes: reads it with its line numbers, and checks it against its model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from scpslab.documents.complaints import Model, validated
from scpslab.documents.places import Places
from scpslab.documents.yaml_lines import Form, read_yaml


@dataclass(frozen=True)
class Document:
    """The data of a file, and the line of every value in it."""

    data: dict[str, Any]
    places: Places

    def held_against(self, model: type[Model]) -> Model:
        """The model of the data.

        Raises:
            ScenarioError: all errors of the data, one line each.
        """
        return validated(self.data, self.places, model)

    def extending(self, base: Document, merged: Sequence[str]) -> Document:
        """This document, plus the keys that only the base has.

        Keys in both are this document's; keys in `merged` are merged key by key.

        Complaints name the file that a value is from.
        """
        taken = {key: value for key, value in base.data.items() if key not in self.data}
        inner = {
            key: _beside(base.data[key], self.data[key]) for key in merged if key in base.data and key in self.data
        }
        paths = [
            at
            for at in base.places.lines
            if at[0] in taken or (at[0] in inner and len(at) > 1 and at[1] in inner[at[0]])
        ]
        own = {key: inner[key] | value if inner.get(key) else value for key, value in self.data.items()}
        return Document(taken | own, self.places.over(base.places, paths))


def read(path: Path, form: Form) -> Document:
    """A file's data.

    Raises:
        ScenarioError: no such file, not YAML, a key twice, or not a mapping.
    """
    data, lines = read_yaml(path, form)
    return Document(data, Places(path, lines))


def load(path: Path, form: Form, model: type[Model]) -> tuple[Model, Places]:
    """A file's model, and its places for complaints about conditions between its parts.

    Raises:
        ScenarioError: all errors of the file, one line each.
    """
    document = read(path, form)
    return document.held_against(model), document.places


def _beside(base: Any, own: Any) -> dict[str, Any]:
    """The keys of `base` that `own` lacks; none if one of the two is not a mapping."""
    if not isinstance(base, Mapping) or not isinstance(own, Mapping):
        return {}
    return {key: value for key, value in base.items() if key not in own}
