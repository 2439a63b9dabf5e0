"""A direction's profile in a plan: which table says what it does over time, and how the table is meant."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Annotated, Literal

from scpslab.core.problems import Problem
from scpslab.plan.error_models import NO_MODEL, Errors
from scpslab.plan.links import Direction, Link
from scpslab.plan.schema import Part, Text
from scpslab.plan.values import AbsolutePath, Period, Seed

# A bit error rate counts as a share of the largest one, in so many parts.
WHOLE_WEIGHT = 1 << 16
LARGEST_TABLE = 1 << 20

Column = Literal["rate", "delay", "ber", "up", "packets"]
Table = Annotated[str, Text(f"a table of at most {LARGEST_TABLE} characters", lambda text: len(text) <= LARGEST_TABLE)]


class Profile(Part):
    """`file` and the digest that its content must have, or the `table` itself: CSV as docs/profiles.md has it.

    `columns`: what it changes. `delay`: in steps, or in straight lines between them. `when_down`: whether packets are
    lost, or wait until the direction is up. `reorder`: whether a packet may overtake others where the delay falls.
    `repeat_ns`: in place of the table's own. `until_ns`: the end of the cell, after which the link's own values hold.
    """

    columns: tuple[Column, ...]
    delay: Literal["steps", "linear"]
    when_down: Literal["lose", "hold"]
    reorder: bool
    until_ns: Period
    file: AbsolutePath | None = None
    sha256: Seed | None = None
    table: Table | None = None
    repeat_ns: Period | None = None

    @property
    def stored_file(self) -> tuple[str, str] | None:
        """The file and its digest; None where the table is in the plan."""
        return (self.file, self.sha256) if self.file is not None and self.sha256 is not None else None

    @property
    def paces(self) -> bool:
        """Whether it says when packets leave, and not only what becomes of them then."""
        return bool({"rate", "packets"} & {*self.columns}) or ("up" in self.columns and self.when_down == "hold")

    def misfits(
        self, link: Link, direction: Direction, errors: Errors | None, changes: Collection[str]
    ) -> Iterator[Problem]:
        """What does not fit the direction, its errors, and the changes that events make there (rate, delay, ber)."""
        queue = direction.queue
        if self.paces and (queue is None or not queue.serialises):
            beside = f"the discipline {queue.discipline}" if queue else "no queue"
            found = f"a profile that says when packets leave, beside {beside}"
            yield Problem(
                (), found, "a rate and a drop-tail queue", "Choose another discipline, or say when_down: lose."
            )
        if "delay" in self.columns:
            if link.via is None:
                yield Problem(
                    (), "delays of a link without a relay", "a link that goes through a switch", "Choose one."
                )
            if direction.delay_table is not None or direction.jitter_ns:
                found = f"delays beside {'delay_table' if direction.delay_table is not None else 'jitter'}"
                yield Problem((), found, "one of them", "Remove one.")
        is_plain = errors is None or (errors.model in ("independent", NO_MODEL) and errors.action == "drop")
        if "ber" in self.columns and not is_plain:
            found = f"bit error rates beside the error model {errors.model if errors else ''} or the action flip"
            yield Problem((), found, "independent errors that drop packets", "Remove errors, or the column ber.")
        clashes = {"rate": self.paces, "delay": "delay" in self.columns, "ber": "ber" in self.columns}
        for change in changes:
            if clashes.get(change):
                found = f"an event that changes the {change}, as the profile does"
                yield Problem((), found, "one of them", "Write the change into the profile.")
