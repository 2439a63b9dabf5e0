"""Plans of format 1, those of scpslab 0.3.0 and before: read as format 2 says the same."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

from scpslab.core.kinds import FORMER
from scpslab.plan.schema import PlanError

# What is no plan shows in the error of whoever asks it for a key.
Old: TypeAlias = dict[str, Any]
NETWORK = ("topology", "containers", "nodes", "links", "serial_links")
# Keys of workloads, services, steps and error models that have other names.
RENAMED = {
    "patience_ns": "timeout_ns",
    "congestion": "congestion_control",
    "p_good_bad": "good_to_bad_per_bit",
    "p_bad_good": "bad_to_good_per_bit",
}
OF_GATEWAYS = {"loss": "loss_response"}
OF_QUEUES = ("discipline", "limit_bytes", "limit_packets", "ecn")
OF_ROUTERS = ("ip", "device", "seed", "default_precedence", "hop_count", "hosts", "next_hops", "interfaces")


def upgraded(old: Old) -> Old:
    """The JSON of format 2 for that of format 1. What is no plan of either stays none: the reader of format 2 says so.

    Raises:
        PlanError: it is not built as plans are.
    """
    try:
        rest = {key: value for key, value in old.items() if key not in {"format", "cell", "limits", *NETWORK}}
        limits = dict(old["limits"])
        network = {key: old[key] for key in NETWORK} | {"memory_mib": limits.pop("memory_mib")}
        impairments: list[Old] = []
        for links in ("links", "serial_links"):
            network[links] = [_link(link, impairments) for link in old[links]]
        routers = [_router(node) for node in old["nodes"] if node["kind"] == "scps-router"]
        network["nodes"] = [_bare(node) for node in old["nodes"]]
        services = [_renamed(service, OF_GATEWAYS) for service in rest.pop("services", [])]
        lists: Old = {"services": [*routers, *services]}
        lists["events"] = [_renamed(step) for step in rest.pop("script", [])]
        for family in ("workloads", "probes"):
            lists[family] = [
                {**_renamed(part), "kind": FORMER[family].get(part["kind"], part["kind"])} for part in rest.pop(family)
            ]
        return {
            "format": 2,
            "network": network,
            "cell": {**old["cell"], "limits": limits, "impairments": impairments, **lists, **rest},
        }
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise PlanError(f"the plan: found format 1 without its {error}; expected every key of it") from error


def _link(link: Old, impairments: list[Old]) -> Old:
    directions = []
    for old in link["directions"]:
        direction = dict(old)
        errors, disorder = direction.pop("errors"), direction.pop("disorder", None)
        if queue := direction.get("queue"):
            direction["queue"] = _queue(queue)
        if "overhead_bytes" in direction:
            direction["jitter_ns"] = disorder["jitter_ns"] if disorder else 0
        found = {"errors": _errors(errors)} if errors else {}
        if disorder:
            found |= {"duplicate": disorder["duplicate"], "seed": disorder["seed"]}
        if found:
            impairments.append({"link": link["name"], "direction": direction["name"], **found})
        directions.append(direction)
    return {**link, "directions": directions}


def _renamed(old: Old, more: Mapping[str, str] = {}) -> Old:
    return {(RENAMED | dict(more)).get(key, key): value for key, value in old.items()}


def _errors(old: Old) -> Old:
    return {**old, "model": FORMER["errors"].get(old["model"], old["model"]), "settings": _renamed(old["settings"])}


def _queue(old: Old) -> Old:
    """Settings stood beside the other keys, those of other disciplines as null."""
    prefix = old["discipline"].replace("-", "_") + "_"
    settings = {
        key.removeprefix(prefix): value for key, value in old.items() if key not in OF_QUEUES and value is not None
    }
    return {key: old[key] for key in OF_QUEUES} | {"settings": settings}


def _router(node: Old) -> Old:
    return {"name": node["name"], "kind": "np-router", "node": node["name"], **{key: node[key] for key in OF_ROUTERS}}


def _bare(node: Old) -> Old:
    return {key: value for key, value in node.items() if node["kind"] != "scps-router" or key not in OF_ROUTERS}
