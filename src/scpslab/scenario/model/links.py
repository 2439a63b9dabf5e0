"""Directions of links: what a scenario may change of a topology's rates, queues and delays, and the errors it adds."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal, Self

from pydantic import Field, model_validator

from scpslab.documents.parts import OneOf, Part, PartOfKinds, key
from scpslab.documents.quantities import Count, Duration, PositiveDuration, Probability, QueueLimit, Rate, SizeOrZero
from scpslab.scenario.disciplines import DISCIPLINES, MARKING
from scpslab.scenario.errors import MODELS, ErrorModel


class Outage(Part):
    """A period in which nothing arrives."""

    from_: Duration = key(alias="from", says="Start, counted from the epoch.", example="10 s")
    to: Duration = key(says="End, counted from the epoch.", example="12 s")

    @model_validator(mode="after")
    def _has_length(self) -> Self:
        if self.to <= self.from_:
            raise ValueError(
                f'found an outage from "{self.from_.text}" to "{self.to.text}"; expected its end after its start'
            )
        return self


class Errors(PartOfKinds):
    """Stage 3 of a direction: bit errors, drop lists and outages.

    Settings that the chosen model has no use for are ignored, so that a sweep can go from model to model. On a serial
    link the wrong bits are changed in the byte stream, whatever `action` says, and PPP finds them; `drop_packets` and
    packet-loss are for links of packets.
    """

    KINDS: ClassVar = dict(MODELS)

    model: Annotated[str, OneOf(MODELS)] = key(
        "independent",
        says="The model that gives the distances between bit errors, or between lost packets (packet-loss).",
        example="clustered",
    )
    action: Literal["drop", "flip"] = key(
        "drop",
        says="drop: the frame check discards a packet with errors; flip: its bits are changed, and checksums must "
        "detect the change.",
        example="flip",
    )
    drop_packets: tuple[Count, ...] = key(
        (), says="Drop these packets of the direction, counted from 1.", example=[10, 11, 40]
    )
    drop_min_bytes: SizeOrZero = key(
        "0 B",
        says="For drop_packets and packet-loss, count only packets of at least this size on the wire: "
        "data, not acknowledgements.",
        example="500 B",
    )
    outages: tuple[Outage, ...] = key(
        (), says="Periods in which nothing arrives.", example=[{"from": "10 s", "to": "12 s"}]
    )

    @model_validator(mode="after")
    def _complete(self) -> Self:
        if found := self.settings.incomplete():
            raise ValueError(found)
        return self

    @property
    def settings(self) -> ErrorModel:
        """What is said of the chosen model."""
        settings: ErrorModel = self.of(self.model)
        return settings


class DelayStep(Part):
    """One step of a time-varying delay."""

    at: Duration = key(says="Time of the step, counted from the epoch.", example="5 s")
    delay: Duration = key(says="One-way delay from then on.", example="300 ms")


def _of_each(word: str) -> str:
    """What the disciplines say of a key of all of them."""
    return "".join(
        f"; {name}: {said}" for name, discipline in DISCIPLINES.items() if (said := getattr(discipline, word))
    )


class Queue(PartOfKinds):
    """The queue of stage 1. Missing keys keep the topology's values."""

    KINDS: ClassVar = dict(DISCIPLINES)

    discipline: Annotated[str, OneOf(DISCIPLINES)] | None = key(
        None, says=f"Queue discipline{_of_each('says')}.", example="red"
    )
    limit: QueueLimit | None = key(
        None, says=f"Most that may wait: bytes on the wire, or packets{_of_each('limit_says')}.", example="132.5 kB"
    )
    ecn: bool | None = key(None, says=f"Mark packets instead of dropping them ({', '.join(MARKING)}).", example=True)


class Direction(Part):
    """Overrides of one direction of a link.

    Missing keys keep the topology's values. Asymmetric links have overrides for each direction.

    A serial link has `rate` (baud), `delay` and `errors`; everything else is a parameter of its topology.
    """

    rate: Rate | None = key(None, says="Rate of the serialiser.", example="2 Mbit/s")
    overhead: SizeOrZero | None = key(
        None, says="Framing bytes of each packet on the wire, in addition to its IP length.", example="4 B"
    )
    queue: Queue | None = key(
        None, says="The queue before the serialiser.", example={"discipline": "red", "limit": "132.5 kB"}
    )
    delay: Duration | None = key(
        None, says="One-way delay; only on links that go through a relay, and on serial links.", example="265 ms"
    )
    delay_table: Annotated[tuple[DelayStep, ...], Field(max_length=100_000)] = key(
        (),
        says="A delay that changes in steps, in ascending order of time; packets are reordered only if jitter asks "
        "for it.",
        example=[{"at": "5 s", "delay": "300 ms"}],
    )
    jitter: PositiveDuration | None = key(
        None,
        says="Jitter: the delay of each packet is drawn, up to this much less or more, so that packets overtake "
        "each other.",
        example="20 ms",
    )
    duplicate: Probability | None = key(
        None, says="Probability that a delivered packet is delivered twice.", example=0.01
    )
    errors: Errors | None = key(
        None,
        says="Bit errors, drop lists and outages at the receiving end.",
        example={"model": "independent", "ber": 1e-6},
    )
