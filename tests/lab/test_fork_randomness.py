"""Random numbers of a cell: drawn after the fork, from its seed; drawn before it, the same in all of a template."""

import base64
import json
from pathlib import Path

import dpkt
import pytest

from scpslab.analysis.capture import read_packets
from scpslab.plan import Plan
from tests.lab.forks import is_completed, plans_of_file, prepared, run, with_seed
from tests.lab.ran import Cell, whole
from tests.lab.test_snapshots import ALL_KINDS, cells_of

# Programs of the guest draw from every generator that there is, two of each where one could be drawn ahead.
DRAW = r"""
import json, os, random, socket, ssl, subprocess, sys, tempfile

def said(*words):
    return subprocess.run(words, capture_output=True, text=True).stdout.strip()

def connected():
    with socket.create_connection((sys.argv[1], int(sys.argv[2])), 5) as connection:
        return connection.getsockname()[1]

def bound():
    with socket.socket() as listening:
        listening.bind(("", 0))
        return listening.getsockname()[1]

def made_interface():
    subprocess.run(["ip", "link", "add", "drawn0", "type", "dummy"], check=True)
    return open("/sys/class/net/drawn0/address").read().strip()

after = {
    "os.urandom": os.urandom(8).hex(),
    "/dev/urandom": said("od", "-An", "-N8", "-tx1", "/dev/urandom"),
    "/dev/random": said("od", "-An", "-N8", "-tx1", "/dev/random"),
    "kernel's uuid": open("/proc/sys/kernel/random/uuid").read(),
    "kernel's boot_id": open("/proc/sys/kernel/random/boot_id").read(),
    "Python's random": random.random(),
    "Python's SystemRandom": random.SystemRandom().random(),
    "tempfile": tempfile.mktemp(),
    "OpenSSL, in Python": ssl.RAND_bytes(8).hex(),
    "shuf": said("shuf", "-i", "1-1000000000", "-n", "1"),
    "mktemp": said("mktemp", "-u"),
    "port of a connection": connected(),
    "port that a program asked for": bound(),
    "MAC address": made_interface(),
}
before = {
    "address of the node": open("/sys/class/net/h1-hop/address").read().strip(),
    "hash of a text": hash("text"),
    "shell's RANDOM": said("bash", "-c", "echo $RANDOM"),
}
print(json.dumps({"after": after, "before": before}))
"""
SCENARIO = """
workloads:
  - {{kind: bulk, name: transfer, from: h1, to: h2, size: 20 kB, port: 5001, timeout: 100 s}}
events:
  - {{at: 0.5 s, node: h2, command: "iperf3 -s -p 5201", required: false}}
  - {{at: 1 s, node: h1, command: "echo {program} | base64 -d | python3 - 10.0.0.2 5201", required: true}}
probes:
  - {{kind: capture, node: h2}}
limits: {{lab_time: 200 s, wall_time: 200 s}}
"""
# The first port that the kernel gives a connection, ip_local_port_range.
EPHEMERAL = 32768
SEEDS = {"one": "a1" * 32, "other": "17" * 32, "again": "a1" * 32}


def drawn(folder: Path) -> dict[str, dict[str, object]]:
    """What a cell's program drew, and the numbers of its connections in a capture."""
    cell = Cell.of(folder)
    numbers: dict[str, dict[str, object]] = json.loads(cell.log("events-2-h1"))
    packets = cell.packets("h2")
    client, server = packets.destination_port == 5001, packets.source_port == 5001
    numbers["after"] |= {"port of the transfer": int(packets.source_port[client][0])}
    stamps = cell.options("h2", dpkt.tcp.TCP_OPT_TIMESTAMP)
    first = {
        "client": next(stamp for _, to, stamp in stamps if to == 5001),
        "server": next(stamp for from_, _, stamp in stamps if from_ == 5001),
    }
    for end, its in (("client", client), ("server", server)):
        numbers["after"] |= {
            f"sequence number of the {end}": int(packets.seq[its][0]),
            f"timestamp of the {end}": first[end],
        }
    return numbers


def carried_out(plans: dict[str, Plan], folder: Path) -> None:
    """Runs cells of one template."""
    with prepared(plans) as engine:
        statuses = run(engine, plans, folder)
        assert len(engine.templates()) == 1
    assert is_completed(statuses, plans), statuses


def thrice(plan: Plan) -> dict[str, Plan]:
    """One cell under three names, two of them with the same seed."""
    return {name: with_seed(plan, seed) for name, seed in SEEDS.items()}


def test_what_programs_draw_after_the_fork_comes_from_the_cell_s_seed(tmp_path):
    """Kernel, Python, OpenSSL, ports, sequence numbers, MAC addresses."""
    path = tmp_path / "drawing.yaml"
    path.write_text(whole(SCENARIO.format(program=base64.b64encode(DRAW.encode()).decode())))
    plans = thrice(next(iter(plans_of_file(path).values())))
    carried_out(plans, tmp_path / "cells")
    found = {name: drawn(tmp_path / "cells" / name) for name in plans}

    assert found["one"] == found["again"]
    assert [name for name, value in found["one"]["after"].items() if found["other"]["after"][name] == value] == []
    assert found["one"]["before"] == found["other"]["before"]


@pytest.mark.parametrize("kind", [kind for kind in ALL_KINDS if kind in {"fy97", "serial", "docker", "own-image"}])
def test_what_ran_before_the_fork_has_used_up_nothing(tmp_path, kind):
    """Also where pppd, or Docker and a stranger's image, ran before the fork."""
    plans = thrice(next(iter(cells_of(kind).values())))
    carried_out(plans, tmp_path)
    found = {}
    for name in plans:
        packets = read_packets(next(iter(sorted((tmp_path / name / "captures").glob("*.pcap")))))
        found[name] = {int(packets.seq[0])} | {int(port) for port in packets.source_port if port > EPHEMERAL}

    assert found["one"] == found["again"]
    assert not found["one"] & found["other"]
