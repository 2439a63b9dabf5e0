"""A topology of the user's own: a Python file beside a scenario, in any folder; its mistakes are told with file and
line. Networks of containerlab: read as topology files that plan, with all that is left out, and written so that
they read.
"""

import json
import os

import pytest
import yaml

from scpslab import plan as plans
from scpslab import scenario
from scpslab.core import folders
from scpslab.scenario import clab, planning
from scpslab.scenario.recorded import Recorded
from scpslab.scenario.topologies import OnDisk, TopologyError, module
from tests import golden
from tests.cases import changed, refusal
from tests.networks import RELAY, ROVER


@pytest.fixture
def place(tmp_path, monkeypatch):
    """A folder with a scenario and its topology, and a current folder that is another one."""
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "mine").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    (tmp_path / "mine" / "relay.py").write_text(RELAY)
    (tmp_path / "mine" / "rover.yaml").write_text(ROVER)
    return tmp_path / "mine"


def load(place, overrides=(), **options):
    return scenario.load(str(place / "rover.yaml"), overrides, OnDisk(**options))


def test_jitter_of_a_topology_is_drawn(place):
    """A plan without a seed for it would be refused."""
    text = RELAY.replace('limit_bytes=64000), p["delay"])', 'limit_bytes=64000), p["delay"], jitter_ns=1000)', 1)
    (place / "relay.py").write_text(text)
    (cell,) = scenario.cells(load(place))
    planned = planning.plan(cell)
    assert [(one.direction, one.seed is not None) for one in planned.cell.impairments] == [("data", True)]
    assert plans.read(json.loads(plans.text(planned))) == planned


def complaint(place, **options):
    return refusal(load, place, **options).replace(f"{place}/", "")


def kept(place, *overrides, sweep=""):
    """The scenario with a sweep, and the files that a run of it keeps."""
    (place / "rover.yaml").write_text(ROVER + sweep)
    loaded = load(place, overrides)
    return loaded, scenario.own_files(loaded, scenario.cells(loaded))


def test_a_path_counts_from_the_scenario_s_folder_and_the_plan_has_the_network(place, told):
    (cell,) = scenario.cells(load(place, ["parameters.data_rate=2 Mbit/s"]))
    plan = planning.plan(cell)
    assert plan.network.topology == "relay"
    assert [direction.rate_bps for direction in plan.network.links[0].directions] == [2_000_000, 2_000_000]
    assert load(place, ["topology=../mine/relay.py"]).network == load(place).network
    assert load(place, [f"topology={place}/relay.py"]).network == load(place).network
    told("topology of one's own", "unknown parameter", load, place, ["parameters.rate=1 Mbit/s"])


def test_a_path_is_never_a_name_of_the_project_s(place):
    (place / "fy97.py").write_text(RELAY)
    assert load(place, ["topology=./fy97.py"]).network.name == "relay"
    assert scenario.load("fy97/fig04").network.name == "fy97"


@golden.each("topology by a wrong name")
def test_a_name_that_names_nothing_is_answered_with_what_could_be_meant(case, place):
    (place / "folder.py").mkdir()
    (place / "loop.py").symlink_to("loop.py")
    (place / "large.py").write_bytes(b"#" * (1 << 20) + b"\n")
    (place / "rover.yaml").write_text(ROVER.replace("./relay.py", case))
    found = case.hold(complaint(place), place)
    assert found.startswith("rover.yaml:4: topology: ")
    assert found.count("; expected ") == 1


@golden.each("topology file", "case before after")
def test_a_mistake_in_the_file_is_told_with_its_line(case, place, before, after):
    spoilt = changed(RELAY, (before, after))
    (place / "relay.py").write_text(
        spoilt.replace("PARAMETERS =", "import itertools; COUNT = itertools.count(); PARAMETERS =")
        if "COUNT" in after
        else spoilt
    )
    found = case.hold(complaint(place), place)
    assert found.startswith("rover.yaml:4: topology: relay.py")
    assert "Traceback" not in found
    assert len(found.splitlines()) == 1


def test_a_file_that_is_no_topology_is_not_run(place):
    (place / "relay.py").write_text(f"open({str(place / 'was_here')!r}, 'w').close()\n")
    assert "found no PARAMETERS and no describe" in complaint(place)
    assert not (place / "was_here").exists()


def test_what_the_file_prints_does_not_come_between_our_output_and_nothing_compiled_is_left(place, capsys):
    (place / "relay.py").write_text(changed(RELAY, ("    net.switch", "    print('here I am')\n    net.switch")))
    load(place)
    said = capsys.readouterr()
    assert said.out == ""
    assert "here I am" in said.err
    assert sorted(file.name for file in place.iterdir()) == ["relay.py", "rover.yaml"]


def test_a_file_that_others_may_write_or_own_is_run_only_when_it_is_trusted(place, monkeypatch, told):
    (place / "relay.py").chmod(0o666)
    told("topology of others", "writable", load, place)
    assert load(place, is_trusted=True).network.name == "relay"

    (place / "relay.py").chmod(0o644)
    owner = (place / "relay.py").stat().st_uid
    monkeypatch.setattr(os, "geteuid", lambda: owner + 1)
    monkeypatch.setattr(folders, "ROOT", owner + 2)
    monkeypatch.delenv("SUDO_UID", raising=False)
    assert f"relay.py: found a file of user {owner}; expected" in complaint(place)
    assert load(place, is_trusted=True).network.name == "relay"


SWEEP = "sweep: {rate: {set: [parameters.data_rate], values: [1 Mbit/s, 2 Mbit/s]}}\n"


def test_a_run_keeps_the_file_and_every_network_of_its_cells_which_plan_the_same_elsewhere(place, tmp_path, told):
    loaded, own = kept(place, "topology=../mine/relay.py", sweep=SWEEP)
    assert own.contents["relay.py"] == (place / "relay.py").read_bytes()
    recorded = Recorded(own.contents["topologies.json"])
    assert [(one.topology, one.parameters["data_rate"]) for one in recorded.record.networks] == [
        ("./relay.py", 1_000_000),
        ("./relay.py", 2_000_000),
    ]
    # Nothing is run there.
    there = tmp_path / "there" / "rover.yaml"
    there.parent.mkdir()
    there.write_text(scenario.resolved_yaml(loaded, own.renamed))
    again = scenario.load(str(there), topologies=recorded)
    assert list(map(planning.plan, scenario.cells(again))) == list(map(planning.plan, scenario.cells(loaded)))
    told("topology of one's own", "no record", scenario.load, str(there), ["parameters.delay=1 ms"], recorded)


def test_two_topologies_are_compared_in_one_sweep(place, tmp_path):
    undelayed = (', delay=duration("270 ms", "delay of the hop")', ""), ('p["delay"]', "0")
    (place / "slow.py").write_text(changed(RELAY, ("1 Mbit/s", "9600 bit/s"), *undelayed))
    cases = f"{{fast: {{topology: ./relay.py}}, slow: {{topology: {place / 'slow.py'}}}}}"
    loaded, own = kept(place, sweep=f"sweep: {{network: {{cases: {cases}}}}}\n")
    assert set(own.contents) == {"relay.py", "slow.py", "topologies.json"}
    (there := tmp_path / "there.yaml").write_text(scenario.resolved_yaml(loaded, own.renamed))
    again = scenario.load(str(there), topologies=Recorded(own.contents["topologies.json"]))
    for found in (again, loaded):
        plans = map(planning.plan, scenario.cells(found))
        assert [plan.network.links[0].directions[0].rate_bps for plan in plans] == [1_000_000, 9600]
    assert yaml.safe_load(there.read_text())["sweep"]["network"]["cases"]["slow"] == {"topology": "./slow.py"}


def test_two_files_of_one_name_are_refused(place, told):
    (place / "other").mkdir()
    (place / "other" / "relay.py").write_text(RELAY + "# other\n")
    cases = "sweep: {network: {cases: {one: {topology: ./relay.py}, two: {topology: ./other/relay.py}}}}\n"
    told("topology of one's own", "two files of one name", kept, place, sweep=cases)


def test_a_scenario_on_a_topology_of_the_project_keeps_no_files():
    loaded = scenario.load("fy97/fig04:kernel-test")
    assert scenario.own_files(loaded, scenario.cells(loaded)).contents == {}


@golden.each("record of networks that was changed", "case old new")
def test_a_record_that_somebody_changed_is_refused(case, place, old, new):
    _, own = kept(place)
    record = own.contents["topologies.json"].replace(old.encode(), new.encode())
    assert case.hold(refusal(Recorded, record, error=TopologyError)).startswith("topologies.json: ")


LAB = """name: lab
mgmt: {network: x}
topology:
  defaults: {kind: linux}
  nodes:
    h1: {image: alpine, exec: ["ip addr add 10.0.1.1/24 dev eth1", "ip route add 10.0.2.0/24 via 10.0.1.254", "apk add x"]}
    r1: {exec: [sysctl -w net.ipv4.ip_forward=1, ip addr add 10.0.1.254/24 dev eth1, ip addr add 10.0.2.254/24 dev eth2]}
    h2: {exec: ["ip link set eth1 up", "ip a add dev eth1 10.0.2.1/24", "ip route add default via 10.0.2.254"], ports: ["1:1"]}
    b1: {kind: bridge}
    h3: {exec: ["echo 'a\\nimport os'"]}
  links:
    - endpoints: ["h1:eth1", "r1:eth1"]
    - {endpoints: [{node: r1, interface: eth2}, {node: h2, interface: eth1}], mtu: 9500}
    - endpoints: ["h3:eth1", "h2:eth2"]
    - endpoints: ["h3:eth2", "b1:eth1"]
"""


def network(path, folder):
    text, left_out = clab.topology_of(path)
    (folder / "lab.py").write_text(text)
    return OnDisk().find("./lab.py", folder).described({}), left_out, text


def test_a_file_is_a_topology_and_what_is_left_out_is_said(tmp_path):
    (tmp_path / "lab.clab.yml").write_text(LAB)
    found, left_out, text = network(tmp_path / "lab.clab.yml", tmp_path)

    assert [(node.name, node.kind) for node in found.nodes[:5]] == [
        ("h1", "host"), ("r1", "router"), ("h2", "host"), ("b1", "switch"), ("h3", "host"),
    ]  # fmt: skip
    assert [[end.ip for end in link.ends] for link in found.links] == [
        ["10.0.1.1/24", "10.0.1.254/24"], ["10.0.2.254/24", "10.0.2.1/24"], ["10.200.3.1/30", "10.200.3.2/30"], [None, None],
    ]  # fmt: skip
    assert [link.via for link in found.links] == ["relay1", "relay2", "relay3", None]
    assert found.routes == [("h1", "10.0.2.0/24", "10.0.1.254"), ("h2", "default", "10.0.2.254")]
    assert [one.partition(":")[0] for one in left_out] == [
        "mgmt", "topology.nodes.h2.ports", "topology.nodes.h1.exec[3]", "topology.nodes.h3.exec[1]", "no address of h3",
        "no address of h3",
    ]  # fmt: skip
    assert not [line for line in text.splitlines() if line.startswith("import")]


INHERITED = """name: lab
topology:
  defaults: {exec: [ip link set eth1 up], group: ends}
  kinds: {linux: {env: {A: b}, exec: [sysctl -w net.ipv4.ip_forward=1]}, bridge: {}}
  groups: {ends: {exec: [ip route add default via 10.0.0.2]}, b: {kind: bridge}}
  nodes:
    PC1: {exec: [ip a a 10.0.0.1/24 dev eth1]}
    r1: {group: none, exec: [ip addr replace 10.0.0.2/24 dev eth1, ip addr add 10.0.1.2/24 dev eth2]}
    sw: {group: b}
  links:
    - {endpoints: ["PC1:eth1", "r1:eth1"], vars: {x: 1}}
    - endpoints: ["PC1:eth2", "r1:eth2"]
    - endpoints: ["r1:eth3", "sw:eth1"]
    - endpoints: ["PC1:eth4", "host:veth1"]
    - {type: mgmt-net, endpoint: {node: PC1, interface: eth5}, host-interface: x}
"""


def test_nodes_inherit_as_in_containerlab(tmp_path):
    """Values of the node before those of its group, of its kind and of all; commands of all of them, in turn."""
    (tmp_path / "lab.clab.yml").write_text(INHERITED)
    found, left_out, _ = network(tmp_path / "lab.clab.yml", tmp_path)

    nodes = [(node.name, node.kind) for node in found.nodes[:3]]
    assert nodes == [("pc1", "router"), ("r1", "router"), ("sw", "switch")]
    assert found.routes == [("pc1", "default", "10.0.0.2")]
    assert left_out == [
        "topology.kinds.linux.env",
        "the name PC1: the node is called pc1",
        "topology.links[1].vars",
        "no address of PC1:eth2; the link has 10.200.2.0/30 in place of 10.0.1.2/24",
        "no address of r1:eth3",
        "topology.links[4]: a link to the machine that runs the lab",
        "topology.links[5]: a link to the machine that runs the lab",
    ]


def test_what_containerlab_cannot_have_is_said(tmp_path):
    """Its bridges run no commands, and netem has no discipline of ours."""
    (tmp_path / "lab.py").write_text(
        "from scpslab.topology import Direction, Network, Parameters, Queue\n\nPARAMETERS = Parameters()\n\n\n"
        "def describe(p):\n    net = Network('lab')\n    net.host('a')\n    net.switch('lan')\n    net.host('b')\n"
        "    red = Queue(discipline='ack-filter', limit_bytes=9000)\n    one = Direction('up', 8000, 4, red)\n"
        "    two = Direction('down', 8000, 0, Queue(limit_bytes=9000))\n    net.link('a', 'lan', name='one', a_ip='10.0.0.1/24', forward=one, reverse=two)\n"
        "    net.link('b', 'lan', name='two', a_ip='10.0.0.2/24')\n    return net\n"
    )
    text = clab.written(OnDisk().find("./lab.py", tmp_path).described({}).plan())
    assert [line for line in text.splitlines() if line.startswith("#")] == [
        "# Left out: framing (one, up)",
        "# Left out: discipline (one, up)",
        "# Left out: what a bridge delays (one, down)",
    ]


@pytest.mark.parametrize("name", ["fy97", "point_to_point", "shared_router"])
def test_what_is_written_reads_as_the_same_network(name, tmp_path):
    described = module(name)
    given = described.describe(dict(described.PARAMETERS.read({})))
    (tmp_path / "out.clab.yml").write_text(clab.written(given.plan()))
    found, _, _ = network(tmp_path / "out.clab.yml", tmp_path)

    relays = {link.via for link in given.links}
    nodes = [(node.name, node.kind) for node in given.nodes if node.name not in relays]
    assert [(node.name, node.kind) for node in found.nodes if not node.name.startswith("relay")] == nodes
    addresses = [{(end.node, end.ip) for end in link.ends} for link in given.links]
    assert [{(end.node, end.ip) for end in link.ends} for link in found.links] == addresses


@golden.each("network of containerlab", "case old new")
def test_what_a_topology_cannot_have_is_told_at_its_line(case, old, new, tmp_path):
    (path := tmp_path / "lab.clab.yml").write_text(changed(LAB, (old, new)))
    case.hold(refusal(clab.topology_of, path), tmp_path)


def test_a_group_that_is_no_word_is_none_of_the_groups(tmp_path):
    (path := tmp_path / "lab.clab.yml").write_text(changed(LAB, ("{kind: bridge}", "{kind: bridge, group: [x]}")))
    assert "net.switch('b1')" in clab.topology_of(path)[0]
