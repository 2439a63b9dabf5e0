"""Kind `gateway`: `scps gateway` on a router."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from ipaddress import IPv4Network
from typing import ClassVar, Literal

from scpslab.core.errors import ScenarioError
from scpslab.documents.parts import key
from scpslab.documents.quantities import Name, PositiveDuration, Rate, Size
from scpslab.documents.yaml_lines import Problem
from scpslab.plan.paths import NoPathError, Paths
from scpslab.scenario.services import Service, Site

# An interface's name has 15 letters at most, and no two gateways of a node share one.
DEVICE = "gw{number}"
# What every link of IPv4 carries whole (RFC 791 §3.1), and what a TUN device takes.
MTU_LEAST, MTU_MOST = 576, 65_535


class GatewayService(Service):
    """A gateway on a router (`scps gateway`): connections of unmodified programs are TCP on its LAN and SCPS-TP to the
    gateway at the other end, in UDP.

    What is not TCP passes. The routes to the far networks must be shorter prefixes than `far`, or default routes: those
    of `far` lead into the gateway.
    """

    former_keys: ClassVar = {**Service.former_keys, "congestion": "congestion_control", "loss": "loss_response"}

    kind: Literal["gateway"] = key(says="The kind of service.", example="gateway")
    name: Name = key(says="Name; its account is records/NAME.jsonl, its log logs/NAME-NODE.log.", example="near")
    node: Name = key(says="Router.", example="g1")
    peer: str = key(says="Address of the gateway at the other end.", example="10.9.0.2")
    far: tuple[str, ...] = key(says="Networks behind it.", example=["10.2.0.0/24"])
    rate: Rate | Literal["none"] = key(
        says="Rate of the link, all headers included; none for no rate control.", example="2 Mbit/s"
    )
    rtt: PositiveDuration | None = key(
        None,
        says="Round-trip time of the link; with the rate it gives the buffers. Default: "
        "the delays of the link to `peer`, both ways.",
        example="530 ms",
    )
    mtu: Size = key("1500 B", says="MTU of the link.", example="1500 B")
    congestion_control: Literal["none", "vj", "vegas"] = key(
        "none", says="Congestion control on the link.", example="vegas"
    )
    loss_response: Literal["congestion", "corruption"] = key(
        "corruption", says="The meaning of a loss on the link.", example="congestion"
    )
    buffer: Size | None = key(
        None,
        says="Each of a connection's four buffers. Default: twice the bandwidth-delay product, at least 256 KiB.",
        example="1 MB",
    )
    set_up: Literal["connect-first", "accept-first", "early"] = key(
        "connect-first",
        says="When a client is answered: after the server, at once, or at once with a closed window.",
        example="early",
    )
    timeout: PositiveDuration = key("30 s", says="Time in which it has to be ready.", example="60 s")

    def problems(self, known: Mapping[str, str]) -> Iterator[Problem]:
        """What would keep it from starting, or from ever getting a packet."""
        others = [ip for ip, node in known.items() if node != self.node]
        if self.peer not in others:
            expected = f"expected the address of another node, such as {others[0] if others else '10.9.0.2'}"
            yield ("peer",), f'found "{self.peer}"; {expected}. Give that of the other gateway.'
        if not self.far:
            expected = "expected those behind the other gateway, such as 10.2.0.0/24"
            yield ("far",), f"found no network; {expected}. Without one no connection comes to the gateway."
        for number, text in enumerate(self.far):
            try:
                IPv4Network(text)
            except ValueError:
                found = f'found "{text}"; expected an IPv4 network whose host bits are 0, such as 10.2.0.0/24'
                yield ("far", number), f"{found}. Correct the prefix."
        if not MTU_LEAST <= self.mtu <= MTU_MOST:
            expected = f"expected {MTU_LEAST} to {MTU_MOST} B"
            yield ("mtu",), f'found "{self.mtu.text}"; {expected}. Give the MTU of the link.'

    def derived(self, site: Site) -> Mapping[str, object]:
        """A device of its own, and the delays of the link where the scenario has no round-trip time."""
        return {
            "device": DEVICE.format(number=site.number),
            "rate_bps": None if self.rate == "none" else self.rate,
            "rtt_ns": self._delays_ns(site.setting.paths) if self.rtt is None else self.rtt,
            "seed": site.setting.seed("gateway", self.name),
        }

    def _delays_ns(self, paths: Paths) -> int:
        """The delays of the link to the other gateway, there and back."""
        try:
            link = paths.next_hop(self.node, self.peer).link
        except NoPathError as error:
            raise ScenarioError(
                f"services.{self.name}: {error}; expected a route to the other gateway. Give rtt, or a route."
            ) from error
        return max(1, sum(direction.delay_ns for direction in link.directions))


KIND = GatewayService
