"""Directions of links: what a scenario may change of a topology's rates, queues and delays, and the errors it adds."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from scpslab import units
from scpslab.documents.parts import Part, key
from scpslab.documents.quantities import Count, Duration, PositiveDuration, Probability, QueueLimit, Rate, Size, SizeOrZero

ErrorModel = Literal["none", "independent", "clustered", "gilbert-elliott", "vector-file"]


class Outage(Part):
    """A time in which nothing arrives."""

    from_: Duration = key(alias="from", says="Start, since the network came up.", example="10 s")
    to: Duration = key(says="End, since the network came up.", example="12 s")

    @model_validator(mode="after")
    def _has_length(self) -> Self:
        if units.parse("duration", self.to) <= units.parse("duration", self.from_):
            raise ValueError(f'found an outage from "{self.from_}" to "{self.to}"; expected its end after its start')
        return self


class Errors(Part):
    """Stage 3 of a direction: bit errors, drop lists and outages.

    Settings that the chosen model has no use for are ignored, so that a sweep can go from model to model. On a serial link the wrong bits are changed
    in the byte stream, whatever `action` says, and PPP finds them; `drop_packets` is for links of packets.
    """

    model: ErrorModel = key("independent", says="Where the distances between bit errors come from.", example="clustered")
    ber: Probability = key(0.0, says="Bit error rate, probability per bit (independent, clustered).", example=1e-6)
    mean_errors_per_burst: float = key(4.0, says="clustered: mean bit errors of an error event; 4 fits the FY97 measurements.", least=1, example=4.0)
    mean_gap_in_burst: float = key(3.0, says="clustered: mean distance from one error of an event to the next, in bits.", least=1, example=3.0)
    p_good_bad: Probability = key(0.0, says="gilbert-elliott: probability per bit of going from the good state to the bad one.", example=1e-6)
    p_bad_good: Probability = key(0.0, says="gilbert-elliott: probability per bit of going from the bad state to the good one.", example=1e-3)
    ber_good: Probability = key(0.0, says="gilbert-elliott: bit error rate in the good state.", example=0.0)
    ber_bad: Probability = key(0.0, says="gilbert-elliott: bit error rate in the bad state.", example=1e-2)
    file: str | None = key(
        None,
        says="vector-file: stored error vector, relative to the scenario file; text with one distance in bits per line, "
        "or with the suffix .bits a bit map in which 1 is an error.",
        example="vectors/awgn-1e-5.bits",
    )
    action: Literal["drop", "flip"] = key(
        "drop", says="drop: the frame check discards a packet with errors; flip: its bits are changed and checksums must find it.", example="flip"
    )
    drop_packets: tuple[Count, ...] = key((), says="Drop exactly these packets of the direction, counted from 1.", example=[10, 11, 40])
    drop_min_bytes: SizeOrZero = key(
        "0 B", says="For drop_packets, count only packets of at least this size on the wire: data, not acknowledgements.", example="500 B"
    )
    outages: tuple[Outage, ...] = key((), says="Times in which nothing arrives.", example=[{"from": "10 s", "to": "12 s"}])

    @model_validator(mode="after")
    def _complete(self) -> Self:
        if self.model == "vector-file" and self.file is None:
            raise ValueError("found the model vector-file without a file; expected file, the name of an error vector")
        if self.model == "gilbert-elliott" and not (self.p_good_bad and self.p_bad_good):
            raise ValueError("found the model gilbert-elliott without transitions; expected p_good_bad and p_bad_good above 0")
        densest = self.mean_errors_per_burst / ((self.mean_errors_per_burst - 1) * self.mean_gap_in_burst + 1)
        if self.model == "clustered" and self.ber > densest:
            raise ValueError(f"found ber {self.ber:g} in clusters; expected at most {densest:g}, the rate inside a cluster")
        return self


class DelayStep(Part):
    """One step of a time-varying delay."""

    at: Duration = key(says="When, since the network came up.", example="5 s")
    delay: Duration = key(says="One-way delay from then on.", example="300 ms")


class Queue(Part):
    """Stage 1's queue; what is not named stays as the topology has it."""

    discipline: Literal["drop-tail", "red", "codel", "ack-filter"] | None = key(
        None, says="What is dropped, and when; ack-filter: a waiting acknowledgement, when a newer one of its connection comes.", example="red"
    )
    limit: QueueLimit | None = key(
        None,
        says="Most that may wait: bytes on the wire, or packets; ack-filter: bytes of the kernel's memory, some 800 for an acknowledgement.",
        example="132.5 kB",
    )
    ecn: bool | None = key(None, says="Mark packets instead of dropping them (red, codel).", example=True)
    red_min: Size | None = key(None, says="red: average queue at which dropping begins; a quarter of the limit if not given.", example="33 kB")
    red_max: Size | None = key(None, says="red: average queue at which every packet is dropped; half of the limit if not given.", example="66 kB")
    red_probability: Probability | None = key(None, says="red: probability of dropping just below red_max; 0.1 if not given.", example=0.1)
    codel_target: PositiveDuration | None = key(None, says="codel: acceptable time in the queue; 5 ms if not given. Must cover a packet time.", example="5 ms")
    codel_interval: PositiveDuration | None = key(
        None, says="codel: how long the target may be missed; 100 ms if not given. Should cover a round trip.", example="600 ms"
    )


class Direction(Part):
    """Overrides of one direction of a link; what is not named stays as the topology has it. Asymmetric links say so direction by direction.

    Of a serial link: `rate` (baud), `delay` and `errors`; the rest are parameters of its topology.
    """

    rate: Rate | None = key(None, says="Rate of the serialiser.", example="2 Mbit/s")
    overhead: SizeOrZero | None = key(None, says="Framing bytes that every packet costs on the wire beside its IP length.", example="4 B")
    queue: Queue | None = key(None, says="The queue before the serialiser.", example={"discipline": "red", "limit": "132.5 kB"})
    delay: Duration | None = key(None, says="One-way delay; only on links that go through a relay, and on serial links.", example="265 ms")
    delay_table: Annotated[tuple[DelayStep, ...], Field(max_length=100_000)] = key(
        (),
        says="A delay that changes in steps, times ascending; packets are not reordered, unless jitter asks for it.",
        example=[{"at": "5 s", "delay": "300 ms"}],
    )
    jitter: PositiveDuration | None = key(
        None,
        says="Disorder on purpose: the delay of every packet is drawn anew, up to this much less or more, so that packets overtake each other.",
        example="20 ms",
    )
    duplicate: Probability | None = key(None, says="Disorder on purpose: probability that a packet which arrives does so twice.", example=0.01)
    errors: Errors | None = key(None, says="Bit errors, drop lists and outages at the receiving end.", example={"model": "independent", "ber": 1e-6})
