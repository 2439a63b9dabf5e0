"""Which cells are run again to check the others: nobody can tell in advance."""

from __future__ import annotations

import hashlib
import hmac
import json
import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Self

from scpslab.core.errors import UsageError


def shuffled(items: Iterable[tuple[str, ...]], key: bytes, context: str = "") -> list[tuple[str, ...]]:
    """The items in an order that depends on a key and a context alone."""
    return sorted(items, key=lambda item: hmac.digest(key, json.dumps([context, *item]).encode(), hashlib.sha256))


@dataclass(frozen=True)
class Sample:
    """How many cells are taken: a share of them, or a number."""

    share: float | None
    number: int

    @classmethod
    def parse(cls, text: str) -> Self:
        """The sample that a person writes as "5%" or "12".

        Raises:
            UsageError: it is none.
        """
        found = re.fullmatch(r"([0-9]{1,6}(?:\.[0-9]{1,6})?) ?(%?)", text.strip(), re.ASCII)
        value = float(found[1]) if found else 0.0
        is_share = bool(found and found[2])
        if value <= 0 or (is_share and value > 100) or not (is_share or value.is_integer()):
            raise UsageError(f'--sample: found "{text[:40]}"; expected a share or a number of cells, such as 5% or 12. Correct it.')
        return cls(value / 100, 0) if is_share else cls(None, int(value))

    def of(self, cells: Sequence[str], key: bytes) -> list[str]:
        """The cells drawn with a key, at least one, in the order in which they are given."""
        count = math.ceil(self.share * len(cells)) if self.share is not None else self.number
        drawn = {cell for (cell,) in shuffled(((cell,) for cell in cells), key)[:count]}
        return [cell for cell in cells if cell in drawn]
