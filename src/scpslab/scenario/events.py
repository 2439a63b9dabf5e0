"""What a scenario file may say of what happens while a cell runs: links change, commands run, services end."""

from collections.abc import Callable, Iterator
from typing import Annotated, Any, Literal, Self

from pydantic import Discriminator, Field, Tag, model_validator

from scpslab.core.problems import Problem, UnfitError
from scpslab.documents.parts import Part, key
from scpslab.documents.quantities import Duration, Name, PositiveDuration, Rate
from scpslab.plan import events as planned
from scpslab.plan.events import CHANGES
from scpslab.plan.network import NetworkPlan
from scpslab.scenario.kinds import at_keys, planned_from

# From a link and a direction to the seed of what a step draws there.
Draw = Callable[[str, str], str]


class After(Part):
    """A step that follows a line of a file of its cell.

    The cell runs until the line is written, and then again from its beginning with the step at that instant; as the
    same cell has the same bytes in engine virtual, it is there again. A cell without such a line fails.

    Attributes:
        log: The file: records/NAME.jsonl or logs/NAME.log.
        matches: A regular expression of Python; the first line counts that it is found in.
        delay: Time from the line to the step.
    """

    log: str = key(example="records/tcp-ws1.jsonl")
    matches: str = key(example='"ca_state": "recovery"')
    delay: Duration = key("0 s", example="2 s")

    @model_validator(mode="after")
    def _fits(self) -> Self:
        for word, rule in ((self.log, planned.LOG), (self.matches, planned.PATTERN)):
            if not rule.holds(word):
                raise UnfitError(f'"{word}"', rule.what)
        return self


class Happening(Part):
    """When a step of events comes.

    Attributes:
        at: Time of the step, counted from the epoch.
        after: In place of `at`: the step comes `delay` (default `0 s`) after the first line of `log`
            (records/NAME.jsonl or logs/NAME.log) in which the regular expression `matches` is found; only in engine
            virtual ([after a line](profiles.md#events-after-a-line)).
    """

    at: Duration | None = key(None, example="5 s")
    after: After | None = key(None, example={"log": "records/tcp-ws1.jsonl", "matches": '"ca_state": "recovery"'})

    @model_validator(mode="after")
    def _has_an_instant(self) -> Self:
        if (self.at is None) is (self.after is None):
            raise UnfitError("no time" if self.at is None else "at and after", "exactly one of at, after")
        return self

    def follows(self) -> planned.After | None:
        """What it follows, as the plan has it."""
        return planned_from(planned.After, self.after) if self.after else None


class LinkStep(Happening):
    """A link changes while traffic flows.

    Attributes:
        link: Link.
        direction: Direction. Default: both.
        ber: Bit error rate from then on, with independent errors.
        delay: One-way delay from then on.
        rate: Rate from then on; the direction must already have a rate.
        state: down: start an outage, in which everything that arrives is lost; up: end it.
    """

    link: Name = key(example="hop")
    direction: Name | None = key(None, example="forward")
    ber: float | None = key(None, least=0, most=0.5, example=1e-5)
    delay: Duration | None = key(None, example="300 ms")
    rate: Rate | None = key(None, example="1 Mbit/s")
    state: Literal["down", "up"] | None = key(None, example="down")

    @model_validator(mode="after")
    def _is_one_change(self) -> Self:
        given = self.changes
        if len(given) != 1:
            raise UnfitError(" and ".join(given) or "no change", f"exactly one of {', '.join(CHANGES)}")
        return self

    @property
    def changes(self) -> list[planned.Change]:
        """What it changes: one thing."""
        return [name for name in CHANGES if getattr(self, name) is not None]

    def plan(self, network: NetworkPlan, draw: Draw) -> planned.LinkStep:
        """Its part of the plan."""
        names = [one.name for link in network.links if link.name == self.link for one in link.directions]
        directions = tuple(names) if self.direction is None else (self.direction,)
        (change,) = self.changes
        # The directions' errors are independent of each other.
        seeds = tuple(draw(self.link, name) for name in directions)
        return planned.LinkStep(
            t_ns=self.at,
            after=self.follows(),
            link=self.link,
            directions=directions,
            change=change,
            value=getattr(self, change),
            seeds=seeds if change == "ber" else None,
        )

    def problems(self, network: NetworkPlan) -> Iterator[Problem]:
        """What does not fit the network."""
        keys: dict[str, str] = {"directions": "direction", "value": self.changes[0]}
        found = self.plan(network, lambda link, direction: "").problems(network)
        return at_keys(found, **keys)


class RunStep(Happening):
    """A command runs in a node's shell. Its output is in the logs, its exit code in records/events.jsonl.

    Attributes:
        node: Host or router.
        command: The command; sh runs it.
        timeout: Time after which the command is ended, and the cell counts as incomplete.
        required: Whether the cell waits for the command; programs that it leaves running end with the cell.
        expect: Exit code of a required command; a cell in which it ends with another one counts as incomplete.
    """

    node: Name = key(example="ws1")
    command: Annotated[str, Field(min_length=1)] = key(example="ping -c 3 10.2.0.2")
    timeout: PositiveDuration = key("300 s", example="60 s")
    required: bool = key(True, example=False)
    expect: int = key(0, least=0, most=255, example=1)

    def plan(self, network: NetworkPlan, draw: Draw) -> planned.RunStep:
        """Its part of the plan."""
        return planned_from(
            planned.RunStep, self, t_ns=self.at, after=self.follows(), do="run", expect=self.expect or None
        )

    def problems(self, network: NetworkPlan) -> Iterator[Problem]:
        """What does not fit the network."""
        return at_keys(self.plan(network, lambda link, direction: "").problems(network))


class ServiceStep(Happening):
    """A service is stopped, or killed: it does not come back, and the cell goes on without it.

    Attributes:
        service: Service, by its name.
        signal: terminate: ask it to end, and it may tidy up; kill: end it as a power failure does.
    """

    service: Name = key(example="far")
    signal: Literal["kill", "terminate"] = key("terminate", example="kill")

    def plan(self, network: NetworkPlan, draw: Draw) -> planned.ServiceStep:
        """Its part of the plan."""
        return planned_from(planned.ServiceStep, self, t_ns=self.at, after=self.follows(), do="service")

    def problems(self, network: NetworkPlan) -> Iterator[Problem]:
        """None: the network has no services."""
        yield from ()


def _happening(value: Any) -> str:
    given = value if isinstance(value, dict) else getattr(value, "__dict__", {})
    if "service" in given:
        return "of a service"
    return "of a node" if given.keys() & {"node", "command"} else "of a link"


Event = Annotated[
    Annotated[LinkStep, Tag("of a link")]
    | Annotated[RunStep, Tag("of a node")]
    | Annotated[ServiceStep, Tag("of a service")],
    Discriminator(_happening),
]
