"""Shards: `2/8` is the second of eight parts of a run, each for a machine of its own; a run without one takes what all of them kept."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

from scpslab.core.errors import UsageError
from scpslab.plan import Plan
from scpslab.running.parts import cut

MOST = 100_000
# Shards are no runs, so they are not where commands look for runs.
FOLDER = "shards"
# A shard's own status when all of its cells have a result: no other command takes it for a whole run.
DONE = "shard"


@dataclass(frozen=True)
class Shard:
    """Part `number` (from 1) of `of`."""

    number: int
    of: int

    @classmethod
    def parse(cls, text: str) -> Self:
        """The shard that a person writes as `k/n`.

        Raises:
            UsageError: it is none.
        """
        found = re.fullmatch(r"([0-9]{1,6})/([0-9]{1,6})", text, re.ASCII)
        shard = cls(int(found[1]), int(found[2])) if found else None
        if shard is None or not 1 <= shard.number <= shard.of <= MOST:
            raise UsageError(f'--shard: found "{text[:40]}"; expected k/n with 1 ≤ k ≤ n ≤ {MOST}, such as 2/8. Number the shards from 1.')
        return shard

    def __str__(self) -> str:
        return f"{self.number}/{self.of}"

    @property
    def suffix(self) -> str:
        """What the name of a run's folder ends with."""
        return f"-{self.number}-of-{self.of}"

    def cells(self, plans: Mapping[str, Plan]) -> tuple[str, ...]:
        """The cells of this shard."""
        return tuple(cut(plans, self.of)[self.number - 1])
