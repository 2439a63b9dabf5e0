"""Kind `gateway`: `scps gateway` on a router."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from ipaddress import IPv4Network
from typing import Literal

from scpslab.core import units
from scpslab.core.errors import ScenarioError
from scpslab.core.problems import Problem
from scpslab.documents.parts import key
from scpslab.documents.quantities import Name, PositiveDuration, Quantity, Rate, Size
from scpslab.plan.network import NetworkPlan
from scpslab.plan.paths import NoPathError, Way, slowest
from scpslab.scenario.scps_ends import rate_that_fits
from scpslab.scenario.services import Service, Site
from scpslab.scenario.stacks import CarefulResume

# An interface's name has 15 letters at most, and no two gateways of a node share one.
DEVICE = "gw{number}"
# What every link of IPv4 carries whole (RFC 791 §3.1), and what a TUN device takes.
MTU_LEAST, MTU_MOST = 576, 65_535
# Buffers of `scps gateway` have as much.
LEAST_BUFFER_BYTES = 1 << 18
# A stated round-trip time may be off by a tenth.
NEAR = 10


class GatewayService(Service, kind="gateway"):
    """A gateway on a router (`scps gateway`): connections of unmodified programs are TCP on its LAN and SCPS-TP to the
    gateway at the other end, in UDP.

    What is not TCP passes. The routes to the far networks must be shorter prefixes than `far`, or default routes: those
    of `far` lead into the gateway.

    Attributes:
        kind: The kind of service.
        name: Name; its account is records/NAME.jsonl, its log logs/NAME-NODE.log.
        node: Router.
        peer: Address of the gateway at the other end.
        far: Networks behind it.
        rate: Rate of the link, all headers included; none for no rate control. Default: that of the path to `peer`,
            less the framing of full packets.
        rtt: Round-trip time of the link; with the rate it gives the buffers. Default: the delays of the path to `peer`,
            both ways.
        mtu: MTU of the link.
        congestion_control: Congestion control on the link.
        loss_response: The meaning of a loss on the link.
        careful_resume: Careful Resume (RFC 9959) on the link, with congestion control. Default: off.
        buffer: Each of a connection's four buffers. Default: twice the bandwidth-delay product of the faster direction,
            at least 256 KiB.
        set_up: When a client is answered: after the server, at once, or at once with a closed window.
        timeout: Time in which it has to be ready.
    """

    kind: Literal["gateway"] = key(example="gateway")
    name: Name = key(example="near")
    node: Name = key(example="g1")
    peer: str = key(example="10.9.0.2")
    far: tuple[str, ...] = key(example=["10.2.0.0/24"])
    rate: Rate | Literal["none"] | None = key(None, example="2 Mbit/s")
    rtt: PositiveDuration | None = key(None, example="530 ms")
    mtu: Size = key("1500 B", example="1500 B")
    congestion_control: Literal["none", "vj", "vegas"] = key("none", example="vegas")
    loss_response: Literal["congestion", "corruption"] = key("corruption", example="congestion")
    careful_resume: CarefulResume | None = key(None, example={"window": "750 kB", "rtt": "600 ms"})
    buffer: Size | None = key(None, example="1 MB")
    set_up: Literal["connect-first", "accept-first", "early"] = key("connect-first", example="early")
    timeout: PositiveDuration = key("30 s", example="60 s")

    def problems(self, network: NetworkPlan) -> Iterator[Problem]:
        """What would keep it from starting, or from ever getting a packet."""
        others = [ip.split("/")[0] for node, ip in network.addresses() if node != self.node]
        if self.peer not in others:
            expected = f"the address of another node, such as {others[0] if others else '10.9.0.2'}"
            yield Problem(("peer",), f'"{self.peer}"', expected, "Give that of the other gateway.")
        if not self.far:
            expected, advice = "those behind the other gateway, such as 10.2.0.0/24", "Without one no connection comes"
            yield Problem(("far",), "no network", expected, f"{advice} to the gateway.")
        for number, text in enumerate(self.far):
            try:
                IPv4Network(text)
            except ValueError:
                expected = "an IPv4 network whose host bits are 0, such as 10.2.0.0/24"
                yield Problem(("far", number), f'"{text}"', expected, "Correct the prefix.")
        if not MTU_LEAST <= self.mtu <= MTU_MOST:
            expected = f"{MTU_LEAST} to {MTU_MOST} B"
            yield Problem(("mtu",), f'"{self.mtu.text}"', expected, "Give the MTU of the link.")
        if self.careful_resume is not None and self.congestion_control == "none":
            found, expected = "it without congestion control, where no window grows", "congestion_control vj or vegas"
            yield Problem(("careful_resume",), found, expected, "Add congestion_control, or leave careful_resume out.")

    def derived(self, site: Site) -> Mapping[str, object]:
        """A device of its own, and of the path to the other gateway what the scenario leaves out."""
        path = self._path(site.network)
        rate_bps = None if self.rate == "none" else self.rate or path.rate_that_fits(self.mtu)
        rtt_ns = self.rtt or max(1, path.rtt_ns)
        return {
            "device": DEVICE.format(number=site.number),
            "rate_bps": rate_bps,
            "rtt_ns": rtt_ns,
            "buffer_bytes": self.buffer or path.buffer_bytes(rate_bps, rtt_ns),
            "careful_resume": None if self.careful_resume is None else self.careful_resume.program,
            "seed": site.setting.seed("gateway", self.name),
        }

    def doubts(self, network: NetworkPlan) -> Iterator[Problem]:
        """A rate or a round-trip time that the path to the other gateway has not."""
        path = self._path(network)
        do = "Leave it out, and it follows the path."
        if (
            isinstance(self.rate, Quantity)
            and path.rate_bps
            and not path.rate_bps <= 2 * self.rate <= 2 * path.rate_bps
        ):
            found = f'"{self.rate.text}" on a path of {units.text("rate", path.rate_bps)}'
            yield Problem(("rate",), found, "that rate, or half of it at least", do)
        if self.rtt and abs(self.rtt - path.rtt_ns) * NEAR > path.rtt_ns:
            found = f'"{self.rtt.text}" on a path of {units.text("duration", path.rtt_ns)} there and back'
            yield Problem(("rtt",), found, "that time", do)

    def _path(self, network: NetworkPlan) -> _Path:
        """The path to the other gateway, and back."""
        paths = network.paths
        far = next(node for node, ip in network.addresses() if ip.split("/")[0] == self.peer)
        try:
            there = paths.path(self.node, far, self.peer)
            return _Path(there, paths.path(far, self.node, paths.source(self.node, self.peer)))
        except NoPathError as error:
            raise ScenarioError(
                f"services.{self.name}: {error}; expected routes between the gateways. Add the route of {error.node}."
            ) from error


@dataclass(frozen=True)
class _Path:
    """The ways between two gateways."""

    there: Way
    back: Way

    @property
    def rate_bps(self) -> int | None:
        """That of the way there; None: it has none."""
        return _rate(self.there)

    @property
    def rtt_ns(self) -> int:
        """The delays of both ways."""
        return sum(hop.delay_ns for hop in (*self.there, *self.back))

    def rate_that_fits(self, mtu_bytes: int) -> int | None:
        """The rate of full packets that just fills the slowest hop."""
        return rate_that_fits({"mtu": mtu_bytes}, self.there, timestamps=True)

    def buffer_bytes(self, rate_bps: int | None, rtt_ns: int) -> int | None:
        """What holds twice the product of the faster way; None where the rate gives that."""
        there_bps, back_bps = (_rate(way) or 0 for way in (self.there, self.back))
        if rate_bps and there_bps >= back_bps:
            return None
        return max(LEAST_BUFFER_BYTES, 2 * max(there_bps, back_bps) * rtt_ns // (8 * 10**9))


def _rate(way: Way) -> int | None:
    """The rate of a way's slowest hop; None: none is limited."""
    return hop.direction.rate_bps if (hop := slowest(way)) else None
