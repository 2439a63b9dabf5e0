"""Scenarios that are drawn at random from everything that a scenario file may say, small enough to run in seconds."""

import random
from collections.abc import Callable, Iterator
from itertools import combinations_with_replacement
from pathlib import Path
from typing import Any

import yaml

from scpslab.core.errors import ScpslabError
from scpslab.plan.nodes import Host
from scpslab.running import RunOptions
from scpslab.running.run_plan import plan_run
from tests.lab.ran import whole
from tests.networks import network_of

PROJECT = Path(__file__).parents[2]
TOPOLOGIES = {
    "point_to_point": {"forward_delay": ["1 ms", "300 ms"], "return_rate": ["64 kbit/s", "1 Mbit/s"]},
    "fy97": {},
    "star": {"terminals": [1, 2, 4]},
    "shared_router": {},
    "gateway": {},
}
# The gateways of the topology of that name, for the hop between them.
GATEWAYS = [
    {"kind": "gateway", "name": "near", "node": "g1", "peer": "10.9.0.2", "far": ["10.2.0.0/24"], "rate": "2 Mbit/s"},
    {"kind": "gateway", "name": "far", "node": "g2", "peer": "10.9.0.1", "far": ["10.1.0.0/24"], "rate": "500 kbit/s"},
]
WEB = {
    "server_at": "from",
    "server": "exec python3 -m http.server {port}",
    "client": "exec curl -sS -o {out} http://{server}:{port}/file.bin",
}
WEB_OF_IPV6 = {
    "server": "exec python3 -m http.server --bind :: {port}",
    "client": "exec curl -sS -o {out} http://[{server}]:{port}/file.bin",
}
# Of each, the values that an axis gives what a star stands for at its points.
STARS = {
    "links.*.*.errors.ber": [0, 2e-5],
    "links.*.forward.delay": ["2 ms", "120 ms"],
    "hosts.*.preset": ["modern", "fy97-reno"],
}
FILES = {
    "policy.py": PROJECT / "tests" / "same_bytes" / "stop_and_wait.py",
    "transport.py": PROJECT / "tests" / "same_bytes" / "stop_and_wait_ends.py",
}
# Bursts and silence by turns, over and over: mahimahi's delivery opportunities.
OPPORTUNITIES = "# repeat_s: 0.1\nt_s,packets\n0.003,30\n0.004,2\n0.05,40\n0.09,1\n"
GAPS = "15653\n90541\n7\n42100\n230000\n"
Draw = random.Random


def _errors(draw: Draw) -> dict[str, Any]:
    models: dict[str, dict[str, Any]] = {
        "none": {},
        "independent": {"ber": draw.choice([1e-7, 1e-5, 5e-5, 1e-300])},
        "clustered": {"ber": draw.choice([1e-6, 1e-5]), "mean_errors_per_burst": draw.choice([1, 4, 30])},
        "packet": {"loss": draw.choice([0.001, "3 %"])},
        "vector-file": {"file": "gaps.txt"},
        "gilbert-elliott": draw.choice(
            [
                {"good_to_bad_per_bit": 1e-6, "bad_to_good_per_bit": 1e-5, "ber_bad": 0.5},
                {"good_to_bad_per_bit": 0.3, "bad_to_good_per_bit": 0.1, "ber_good": 1e-7, "ber_bad": 1e-5},
                {"clock": "time", "mean_good": "700 ms", "mean_bad": "30 ms", "ber_bad": 0.01},
            ]
        ),
    }
    model = draw.choice(list(models))
    errors = {"model": model, **models[model]}
    if draw.random() < 0.3:
        errors["action"] = "flip"
    if draw.random() < 0.2:
        errors["drop_packets"] = sorted(draw.sample(range(1, 60), 3))
    if draw.random() < 0.2:
        errors["outages"] = [{"from": "2 s", "to": "2300 ms"}, {"from": "4 s", "to": "4001 ms"}]
    return errors


def _direction(draw: Draw, has_rate: bool, has_relay: bool) -> dict[str, Any]:
    said: dict[str, Any] = {}
    if has_rate and draw.random() < 0.7:
        said["rate"] = draw.choice(["128 kbit/s", "1 Mbit/s", "4 Mbit/s", "100 Mbit/s"])
        said["overhead"] = draw.choice(["0 B", "4 B", "26 B"])
    if has_rate and draw.random() < 0.5:
        limit = draw.choice(["3 packets", "12 packets", "5 kB", "60 kB", "400 kB", "0.5 BDP"])
        discipline = draw.choice(["drop-tail", "drop-tail", "red", "codel", "ack-filter"])
        said["queue"] = {"discipline": discipline, "limit": limit if discipline == "drop-tail" else "60 kB"}
        if discipline in ("red", "codel") and draw.random() < 0.5:
            said["queue"]["ecn"] = True
    if has_relay:
        said["delay"] = draw.choice(["0 ms", "1 ms", "40 ms", "280 ms"])
        if draw.random() < 0.15:
            said["delay_table"] = [
                {"at": "0 s", "delay": "50 ms"},
                {"at": "2 s", "delay": "90 ms"},
                {"at": "3 s", "delay": "5 ms"},
            ]
        if draw.random() < 0.15:
            said["jitter"] = draw.choice(["0 ms", "1 ms"])
    said |= _treatment(draw, has_relay)
    if draw.random() < 0.6:
        said["errors"] = _errors(draw)
    return said


def _treatment(draw: Draw, has_relay: bool) -> dict[str, Any]:
    """What else happens to packets."""
    said: dict[str, Any] = {}
    if draw.random() < 0.15:
        said["duplicate"] = 0.03
    if draw.random() < 0.15:
        said["profile"] = _profile(draw, has_relay)
    if draw.random() < 0.1:
        said["policer"] = {"rate": draw.choice(["200 kbit/s", "3 Mbit/s"]), "burst": draw.choice(["2 kB", "30 kB"])}
    if draw.random() < 0.1:
        said["aggregate"] = draw.choice(["3 ms", "20 ms"])
    if draw.random() < 0.1:
        said["late"] = {"packets": sorted(draw.sample(range(1, 40), 2)), "by": draw.choice(["1 ms", "40 ms"])}
    return said


def _profile(draw: Draw, has_relay: bool) -> dict[str, Any]:
    if draw.random() < 0.2:
        return {"file": "opportunities.csv"}
    steps = []
    for at in sorted(draw.sample(range(0, 9000, 250), draw.randint(2, 6))):
        step: dict[str, Any] = {"at": f"{at} ms"}
        if draw.random() < 0.6:
            step["rate"] = draw.choice(["100 kbit/s", "700 kbit/s", "5 Mbit/s"])
        if has_relay and draw.random() < 0.6:
            step["delay"] = draw.choice(["3 ms", "30 ms", "200 ms"])
        if draw.random() < 0.3:
            step["ber"] = draw.choice([0, 1e-6, 3e-5])
        if draw.random() < 0.3 or len(step) == 1:
            step["state"] = draw.choice(["down", "up"])
        steps.append(step)
    # The last thing that a link does is to be up.
    steps.append({"at": "9 s", "state": "up"})
    said: dict[str, Any] = {"steps": steps}
    said |= {"delay": "linear"} if draw.random() < 0.4 else {}
    said |= {"when_down": "hold"} if draw.random() < 0.4 else {}
    return said | ({"repeat": "10 s"} if draw.random() < 0.3 else {})


def _event(draw: Draw, link: Any) -> dict[str, Any]:
    step: dict[str, Any] = {"at": f"{draw.randrange(500, 8000)} ms", "link": link.name}
    if draw.random() < 0.6:
        step["direction"] = draw.choice(link.directions).name
    changes = {
        "ber": lambda: draw.choice([0, 1e-5, 1e-4]),
        "delay": lambda: draw.choice(["1 ms", "100 ms"]),
        "rate": lambda: draw.choice(["64 kbit/s", "800 kbit/s", "20 Mbit/s"]),
        "state": lambda: draw.choice(["down", "up"]),
    }
    change = draw.choice(list(changes))
    return step | {change: changes[change]()}


def _workload(draw: Draw, number: int, hosts: list[str]) -> dict[str, Any]:
    first, second = draw.sample(hosts, 2)
    size = draw.choice(["1 B", "20 kB", "150 kB", "600 kB"])
    timeout = {"timeout": draw.choice(["2345 ms", "9 s", "40 s"])}
    kinds: dict[str, Callable[[], dict[str, Any]]] = {
        "bulk": lambda: {
            "size": size,
            "segment": draw.choice(["100 B", "512 B", "1400 B"]),
            **draw.choice([{}, {}, {"application": {"rate": "300 kbit/s"}}]),
            **timeout,
        },
        "mix": lambda: {"per_second": 2, "number": draw.choice([1, 5]), "sizes": {"1 kB": 3, "60 kB": 1}, **timeout},
        "program": lambda: {"size": size, **WEB, **timeout},
        "ftp": lambda: {
            "size": size,
            "command": draw.choice(["get", "put"]),
            "mode": draw.choice(["active", "passive"]),
            **timeout,
        },
        "fp": lambda: {"size": size, "command": draw.choice(["get", "put"]), **timeout},
        "iperf3": lambda: {
            **draw.choice(
                [
                    {"size": "100 kB"},
                    {"duration": "3 s"},
                    {"duration": "3 s", "udp_rate": "700 kbit/s", "segment": "900 B"},
                ]
            ),
            "parallel": draw.choice([1, 1, 3]),
            "reverse": draw.random() < 0.3,
            **timeout,
        },
        "ping": lambda: {
            "count": draw.choice([1, 20]),
            "interval": draw.choice(["12 ms", "250 ms"]),
            "payload": draw.choice(["16 B", "56 B", "3 kB"]),
        },
        "background": lambda: {
            "max_rate": draw.choice(["20 kbit/s", "2 Mbit/s"]),
            "redraw": "500 ms",
            "packet": draw.choice(["100 B", "1452 B"]),
        },
        "policy": lambda: {"policy": "policy.py", "size": draw.choice(["5 kB", "20 kB"]), **timeout},
        "transport": lambda: {"program": "transport.py", "size": draw.choice(["5 kB", "20 kB"]), **timeout},
    }
    kind = draw.choice(list(kinds))
    said = {"kind": kind, "name": f"w{number}", "from": first, "to": second, **kinds[kind]()}
    said["start"] = f"{draw.randrange(0, 3000)} ms" if draw.random() < 0.8 else {"random": "0 ms..3000 ms"}
    if kind != "ping":
        said["port"] = 7000 + 10 * number
    if kind != "background":
        said["required"] = draw.random() < 0.5
    return said


def _said(draw: Draw, most_workloads: int) -> dict[str, Any]:
    topology = draw.choice(list(TOPOLOGIES))
    parameters = {name: draw.choice(values) for name, values in TOPOLOGIES[topology].items() if draw.random() < 0.5}
    network = network_of(topology, **parameters)
    hosts = [node.name for node in network.nodes if isinstance(node, Host)]
    links = {
        link.name: {
            one.name: _direction(draw, one.rate_bps is not None, link.via is not None) for one in link.directions
        }
        for link in network.links
        if draw.random() < 0.7
    }
    stacks = [
        {"preset": "modern"},
        {"preset": "fy97-reno"},
        {"congestion_control": "bbr"},
        {"stack": "scps", "preset": "modern"},
    ]
    stacks += [{"stack": "scps", "preset": "fy97-vegas"}]
    said: dict[str, Any] = {
        "topology": topology,
        "parameters": parameters,
        "links": links,
        "hosts": {name: draw.choice(stacks) for name in hosts if draw.random() < 0.6},
        "workloads": [_workload(draw, number, hosts) for number in range(draw.randint(1, most_workloads))],
        "seed": draw.randrange(1, 10**6),
        "limits": {"lab_time": "3000 s", "wall_time": "240 s"},
    }
    if draw.random() < 0.5:
        said["events"] = [_event(draw, draw.choice(network.links)) for _ in range(draw.randint(1, 4))]
    if draw.random() < 0.8:
        ends = [workload[end] for workload in said["workloads"] for end in ("from", "to")]
        chosen = dict.fromkeys(ends) if draw.random() < 0.7 else draw.sample(hosts, draw.randint(1, 2))
        probes = [{"kind": "capture", "node": name, "name": f"c{name}"} for name in chosen]
        if draw.random() < 0.2:
            probes[0]["filter"] = draw.choice(["tcp", "udp and greater 200"])
        said["probes"] = probes
    said["services"] = [*GATEWAYS] if topology == "gateway" and draw.random() < 0.8 else []
    if draw.random() < 0.2:
        said["services"].append({"kind": "command", "name": "idle", "node": hosts[0], "command": "sleep 100000"})
    if draw.random() < 0.2:
        said["sweep"] = _sweep(draw, topology)
    return said


def _of_ipv6(said: dict[str, Any]) -> dict[str, Any]:
    """The same with addresses of IPv6, without what needs IPv4."""
    hosts = {name: host for name, host in said["hosts"].items() if host.get("stack") != "scps"}
    services = [one for one in said["services"] if one["kind"] != "gateway"]
    workloads = [one | (WEB_OF_IPV6 if one["kind"] == "program" else {}) for one in said["workloads"]]
    return {**said, "addresses": "ipv6", "hosts": hosts, "services": services, "workloads": workloads}


def _sweep(draw: Draw, topology: str) -> dict[str, Any]:
    """Two points of a star, over two networks where the topology has a number of terminals."""
    path = draw.choice(list(STARS))
    sweep: dict[str, Any] = {"star": {"set": [path], "values": STARS[path]}}
    if topology == "star":
        sweep["terminals"] = {"set": ["parameters.terminals"], "values": [2, 3]}
    return sweep


def scenario(seed: int, number: int, folder: Path, most_workloads: int = 6) -> tuple[Path, dict[str, Any]]:
    """The scenario of a number of a seed in a folder, and what it says: the first draw that is valid. In each sixth
    all workloads begin at once, and each sixth is of IPv6.
    """
    draw = random.Random(f"{seed} {number}")
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "gaps.txt").write_text(GAPS)
    (folder / "opportunities.csv").write_text(OPPORTUNITIES)
    for name, source in FILES.items():
        (folder / name).write_text(source.read_text())
    path = folder / "scenario.yaml"
    while True:
        said = _said(draw, most_workloads)
        if number % 6 == 4:
            said["workloads"] = [one | {"start": "1 s"} for one in said["workloads"]]
        if number % 6 == 5:
            said = _of_ipv6(said)
        path.write_text(whole(yaml.safe_dump(said, sort_keys=False)))
        try:
            plan_run(str(path), RunOptions())
        except ScpslabError:
            continue
        return path, said


def reached(said: dict[str, Any]) -> Iterator[str]:
    """What a draw reaches, in words that a table counts."""
    yield f"topology {said['topology']}"
    yield f"addresses {said.get('addresses', 'ipv4')}"
    kinds = sorted(one["kind"] for one in said["workloads"])
    yield from (f"workload {kind}" for kind in set(kinds))
    yield from (f"pair {first} + {second}" for first, second in set(_pairs(kinds)))
    for host in said["hosts"].values():
        yield f"stack {host.get('stack', 'kernel')}"
    for ways in said["links"].values():
        for way in ways.values():
            yield f"discipline {way.get('queue', {}).get('discipline', 'as the topology has it')}"
            yield f"errors {way.get('errors', {}).get('model', 'none said')}"
            keys = ("jitter", "duplicate", "delay_table", "profile", "policer", "aggregate", "late")
            yield from (f"direction {key}" for key in keys if key in way)
    yield from (f"service {service['kind']}" for service in said["services"])
    yield from (f"sweep {axis['set'][0]}" for axis in said.get("sweep", {}).values())
    for step in said.get("events", ()):
        yield f"event {next(key for key in ('ber', 'delay', 'rate', 'state') if key in step)}"
    yield from (f"probe {'capture with a filter' if 'filter' in one else 'capture'}" for one in said.get("probes", ()))


def _pairs(kinds: list[str]) -> Iterator[tuple[str, str]]:
    return (
        (first, second)
        for first, second in combinations_with_replacement(sorted(set(kinds)), 2)
        if first != second or kinds.count(first) > 1
    )
