"""Plan: everything a cell needs, complete, in base units."""

from __future__ import annotations

from typing import Any

from scpslab import units
from scpslab.planning.containers import DOCKER_MEMORY_MIB, add_containers
from scpslab.planning.links import apply_overrides
from scpslab.planning.probes import plan_probe
from scpslab.planning.scps import ScpsAddresses, add_routes
from scpslab.planning.script import plan_script
from scpslab.planning.workloads import plan_workload
from scpslab.scenario import Cell
from scpslab.seeds import stream
from scpslab.stacks import KernelHost, NodePlan, plan_node
from scpslab.topology.layout import layout

FORMAT = 1
SECOND_NS = 10**9


def plan(cell: Cell) -> dict[str, Any]:
    """The plan of a cell (docs/plan-format.md)."""
    network = layout(cell.network)
    hosts = {node["name"]: plan_node(cell.model.hosts.get(node["name"], KernelHost())) for node in network["nodes"] if node["kind"] == "host"}
    links = [*network["links"], *network["serial_links"]]
    apply_overrides(links, cell)
    scps = ScpsAddresses([name for name, planned in hosts.items() if planned.stack == "scps"])
    add_routes(network["nodes"], links, scps)
    for node in network["nodes"]:
        if node["name"] in hosts:
            _configure(node, hosts[node["name"]])
    in_docker = cell.model.containers == "docker"
    if in_docker:
        add_containers(network["nodes"], cell.model.workloads, hosts)
    for end in (end for link in network["serial_links"] for end in link["ends"]):
        end["route"] = hosts[end["node"]].route_options()
    addresses = {end["node"]: end["ip"].split("/")[0] for link in links for end in link["ends"] if end["ip"]}
    limits = cell.model.limits
    return {
        "format": FORMAT,
        "cell": {
            "id": cell.id,
            # Without the variant: a cell is the same cell in the demo and in the whole experiment.
            "scenario": cell.scenario.base_name,
            "axes": dict(cell.axes),
            "repeat": cell.repeat,
            "kernel_seed": stream(cell.scenario.seed, "kernel", cell.id),
        },
        "limits": {
            "virtual_s": -(-units.parse("duration", limits.virtual) // SECOND_NS),
            "wall_s": -(-units.parse("duration", limits.wall) // SECOND_NS),
            "memory_mib": (units.parse("size", limits.memory) >> 20) + (DOCKER_MEMORY_MIB if in_docker else 0),
            **({"late_ns": units.parse("duration", limits.lateness)} if limits.lateness else {}),
        },
        "containers": cell.model.containers,
        **network,
        "workloads": [plan_workload(workload, cell, addresses, hosts, scps) for workload in cell.model.workloads],
        "probes": [plan_probe(probe, links) for probe in cell.model.probes],
        # Not there without one: a plan is part of what results are kept under.
        **({"script": plan_script(cell, links)} if cell.model.script else {}),
    }


def _configure(node: dict[str, Any], planned: NodePlan) -> None:
    node["stack"] = planned.stack
    node["sysctls"] = planned.sysctls
    for route in node["routes"]:
        route.update(planned.route_options())
