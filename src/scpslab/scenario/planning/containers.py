"""Which image a node is, and what its container may use, where a scenario asks for Docker containers."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace

from scpslab.core.installation import version
from scpslab.plan.nodes import Container, Host, Node, Router, ScpsRouter, Switch
from scpslab.scenario.stacks import STACKS, NodePlan
from scpslab.scenario.workloads import Workload

# More than any node needs; what uses more is broken, and shall not take the lab with it.
NODE_MEMORY_BYTES, NODE_PROCESSES = 256 << 20, 128
# What a guest needs besides for dockerd, and the images in its memory.
DOCKER_MEMORY_MIB = 1280


def with_containers(
    nodes: Iterable[Node],
    workloads: tuple[Workload, ...],
    hosts: Mapping[str, NodePlan],
    gateways: Collection[str] = (),
) -> tuple[Node, ...]:
    """Every node with its `container` (docs/plan-format.md), but the switches.

    `hosts` says what is planned for the hosts, where anything is; `gateways` are the nodes that make the devices of
    one.
    """
    nodes = tuple(nodes)
    others = _ends(workloads, is_load=False)
    loads = _ends(workloads, is_load=True) - others
    mirrors = {node.mirror_to for node in nodes if isinstance(node, Switch)} - others

    def container(node: Host | Router | ScpsRouter) -> Container:
        own = hosts[node.name].image if node.name in hosts else None
        if own is not None:
            return _container(own.image, own.memory_bytes, is_admin=own.device, has_tun=own.device)
        makes_device = STACKS[node.stack].makes_device or node.name in gateways
        # For its device; and for a receive buffer that a fixed window needs, which is more than the machine allows
        # everybody.
        is_admin = makes_device or (node.name in hosts and hosts[node.name].receive_window_bytes is not None)
        image = f"scpslab/{_kind(node, node.name in mirrors, node.name in loads)}:{version()}"
        return _container(image, NODE_MEMORY_BYTES, is_admin, has_tun=makes_device)

    return tuple(node if isinstance(node, Switch) else replace(node, container=container(node)) for node in nodes)


def _container(image: str, memory_bytes: int, is_admin: bool, has_tun: bool) -> Container:
    return Container(
        image=image,
        memory_bytes=memory_bytes,
        pids=NODE_PROCESSES,
        capabilities=("NET_ADMIN",) if is_admin else (),
        devices=("/dev/net/tun",) if has_tun else (),
    )


def _ends(workloads: tuple[Workload, ...], *, is_load: bool) -> set[str]:
    chosen = [workload for workload in workloads if workload.is_load is is_load]
    return {end for workload in chosen for end in (workload.sender, workload.receiver)}


def _kind(node: Host | Router | ScpsRouter, is_mirror: bool, is_load: bool) -> str:
    if isinstance(node, (Router, ScpsRouter)):
        return "router"
    if image := STACKS[node.stack].image_folder:
        return image
    if is_load:
        return "traffic"
    return "monitor" if is_mirror else "tcp-host"
