"""Probes as plans know them: a folder a kind in scpslab.kinds."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, ClassVar, Literal

from scpslab.core.kinds import Registered, Registry
from scpslab.core.problems import Problem
from scpslab.plan.network import NetworkPlan
from scpslab.plan.schema import Kinds, Part
from scpslab.plan.values import Name, Period, Word

PROBES: Registry[type[Observer]] = Registry("probes", "plan")


class Observer(Registered, Part, registry=PROBES):
    """What every probe says: its name, which is its file's too."""

    name: Name
    kind: Word

    # The folder of its file.
    folder: ClassVar[Literal["records", "captures"]] = "records"

    @property
    def sampled_node(self) -> str | None:
        """The node whose connections it samples: SCPS programs there write traces for it."""
        return None

    @property
    def captured_node(self) -> str | None:
        """The node whose frames it captures: `captures/<name>.pcap`."""
        return None

    @property
    def captures_all(self) -> bool:
        """Whether it captures all frames of its node."""
        return False

    def problems(self, network: NetworkPlan) -> Iterable[Problem]:
        """Keys that name what the network has not."""
        return ()


class Sampling(Observer, is_mixin=True):
    """A probe that looks at something from time to time; each kind declares the key where it stands in its object."""

    interval_ns: Period


Probe = Annotated[Observer, Kinds("kind", PROBES)]
