"""Networks of containerlab: read as topology files that plan, with all that is left out, and written so that they read."""

import pytest

from scpslab.core.errors import ScenarioError
from scpslab.scenario import clab
from scpslab.scenario.topologies import OnDisk, module
from tests.cases import changed

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
        "mgmt", "topology.nodes.h1.exec.2", "topology.nodes.h2.ports", "topology.nodes.h3.exec.0", "no address of h3",
    ]  # fmt: skip
    assert not [line for line in text.splitlines() if line.startswith("import")]


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


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("name: lab", "name: 'x\"y'", 'name: found "x"y"; expected letters'),
        (
            "{kind: bridge}",
            "{kind: nokia_srlinux}",
            'topology.nodes.b1: found "nokia_srlinux"; expected the kind linux',
        ),
        ("{kind: bridge}", "{kind: [x]}", "topology.nodes.b1: found \"['x']\"; expected the kind linux"),
        ("10.0.1.1/24", "10.0.1.999/24", 'topology.nodes.h1.exec[1]: found "10.0.1.999/24"; expected an address'),
        ("h3:eth2", "h9:eth2", "topology.links[4].endpoints: found"),
        ("mtu: 9500", "mtu: big", 'topology.links[2].mtu: found "big"; expected a whole number'),
        ("mtu: 9500", "type: dummy", 'topology.links[2].type: found "dummy"; expected veth'),
        ("defaults: {kind: linux}", "defaults: 3", 'topology.defaults: found "3"; expected keys with values'),
    ],
)
def test_what_a_topology_cannot_have_is_told_at_its_line(old, new, said, tmp_path):
    (path := tmp_path / "lab.clab.yml").write_text(changed(LAB, (old, new)))
    with pytest.raises(ScenarioError) as error:
        clab.topology_of(path)
    assert said in str(error.value)
