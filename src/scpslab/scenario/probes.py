"""What observes, as scenarios and planning know it: a folder a kind in scpslab.kinds."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import BeforeValidator

from scpslab.core.kinds import Registered, Registry
from scpslab.core.problems import Problem, UnfitError
from scpslab.documents.parts import OneOfKinds, Part
from scpslab.plan import probes as planned
from scpslab.plan.network import NetworkPlan
from scpslab.scenario.kinds import at_keys, planned_from

KINDS: Registry[type[Observer]] = Registry("probes", "scenario")


class Observer(Registered, Part, registry=KINDS):
    """What a scenario says of a probe; each kind declares these keys where they stand among its own."""

    if TYPE_CHECKING:
        kind: str
        name: str | None

    @property
    def default_name(self) -> str:
        """Its name where the scenario gives none."""
        raise NotImplementedError

    @property
    def file_name(self) -> str:
        """The name that its file has."""
        return self.name or self.default_name

    @property
    def folder(self) -> str:
        """The folder that its file is in."""
        return planned.PROBES[self.kind].folder

    def problems(self, network: NetworkPlan) -> Iterator[Problem]:
        """What does not fit the network."""
        return at_keys(self.plan(network).problems(network))

    def asked(self) -> Iterator[Problem]:
        """What programs of this machine find wrong, for whoever validates a scenario: others may lack them."""
        return iter(())

    def plan(self, network: NetworkPlan) -> planned.Observer:
        """Its part of the plan."""
        return planned_from(planned.PROBES[self.kind], self, name=self.file_name, **self.derived(network))

    def derived(self, network: NetworkPlan) -> Mapping[str, object]:
        """What its part of the plan has besides the keys of the scenario, or in place of them."""
        return {}

    def memory_bytes(self, packets: int) -> int:
        """What it keeps in the guest's memory of so many packets."""
        return 0


def _not_gone(value: Any) -> Any:
    """Probes of former versions, which the record of packets has made needless."""
    if isinstance(value, dict) and (kind := value.get("kind")) in ("losses", "queue"):
        raise UnfitError(f'a probe of kind "{kind}"', "none: the record of packets has more", "Remove it.")
    return value


Probe = Annotated[Observer, OneOfKinds(KINDS), BeforeValidator(_not_gone)]
