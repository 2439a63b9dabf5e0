"""Networks of the project's topologies, as plans have them, and a topology of a user's own."""

from dataclasses import replace
from typing import Any

from scpslab.core import units
from scpslab.plan.network import NetworkPlan
from scpslab.scenario import topologies

FIELDS = {"rate": "rate_bps", "delay": "delay_ns", "overhead": "overhead_bytes"}
KINDS = {"rate": "rate", "delay": "duration", "overhead": "size", "limit": "size"}

# A file relay.py and a scenario beside it.
RELAY = """\
from scpslab.topology import Direction, Network, Parameters, Queue, duration, rate

PARAMETERS = Parameters(data_rate=rate("1 Mbit/s", "rate of the hop"), delay=duration("270 ms", "delay of the hop"))


def describe(p):
    net = Network("relay")
    net.host("rover", role="source")
    net.host("ground", role="sink")
    net.switch("sat")
    net.link(
        "rover", "ground", name="hop", via="sat", a_ip="10.0.0.1/24", b_ip="10.0.0.2/24",
        forward=Direction("data", p["data_rate"], 0, Queue(limit_bytes=64000), p["delay"]),
        reverse=Direction("ack", p["data_rate"], 0, Queue(limit_bytes=64000), p["delay"]),
    )
    return net
"""
ROVER = """\
kind: scenario
version: 1
title: A rover
topology: ./relay.py
workloads: [{kind: ping, name: ping, from: rover, to: ground}]
"""


def network_of(topology: str, **given: object) -> NetworkPlan:
    """The network of a topology with these parameters, and with these properties of the directions of its links: such
    as forward_rate, or forward_limit for the queue's.
    """
    module = topologies.module(topology)
    parameters = {name: value for name, value in given.items() if name in module.PARAMETERS.declared}
    network = module.describe(module.PARAMETERS.read(parameters))
    properties = {name: value for name, value in given.items() if name not in parameters}
    for links in (network.links, network.serial_links):
        links[:] = [
            replace(link, directions=tuple(_with(one, properties) for one in link.directions)) for link in links
        ]
    plan: NetworkPlan = network.plan()
    return plan


def _with(direction: Any, properties: dict[str, object]) -> Any:
    for name, value in properties.items():
        way, _, key = name.partition("_")
        number = units.parse(KINDS[key], value)
        if way == direction.name:
            changed = {"queue": direction.queue.limited(number)} if key == "limit" else {FIELDS[key]: number}
            direction = replace(direction, **changed)
    return direction
