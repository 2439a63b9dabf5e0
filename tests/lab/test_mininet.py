"""`scpslab mn`: Mininet scripts as people write them, in virtual time; wrong, endless and hostile ones."""

import json
import re
import time

import pytest
from scipy import stats

from tests import golden
from tests.lab.command import ended

# Whole scripts: of those that behave as in Mininet the last line is "=>", the exit code and what is printed.
SCRIPTS, BEHAVES = golden.families(golden.FILE.with_name("mininet.txt")).values()
LOSSY = """
from mininet.net import Mininet
from mininet.link import TCLink
net = Mininet(link=TCLink)
h1, h2 = net.addHost('h1'), net.addHost('h2')
net.addLink(h1, h2, bw=10, loss=10)
net.start()
print(h1.cmd('ping -q -c 500 -i 0.1 -s 20', h2.IP()))
print(h1.cmd('ping -q -c 500 -i 0.1 -s 1400', h2.IP()))
"""
TOPOS = """
from mininet.topo import LinearTopo, SingleSwitchTopo
from mininet.topolib import TreeTopo
topos = {'tree': TreeTopo, 'linear': LinearTopo, 'single': lambda n=3: SingleSwitchTopo(n)}
"""
BEGIN = """
from mininet.net import Mininet
from mininet.topo import SingleSwitchTopo
net = Mininet(SingleSwitchTopo(2)); net.start()
"""
LOOP = """
from mininet.net import Mininet
net = Mininet()
switches = [net.addSwitch('s%d' % n) for n in range(3)]
for n in range(3):
    net.addLink(switches[n], switches[n - 1])
net.start()
"""
LINK = """
from mininet.net import Mininet
from mininet.link import TCLink
net = Mininet(link=TCLink)
h1, h2 = net.addHost('h1'), net.addHost('h2')
"""
# What scripts begin with that behave as in Mininet, or say so.
TWO = """
import os, re, signal, subprocess, sys, time
from mininet.net import Mininet
from mininet.topo import LinearTopo, SingleSwitchTopo
from mininet.link import TCLink, TCIntf
from mininet.util import custom
def rtt(host, other): return re.search(r'rtt.*= ([\\d.]+)', host.cmd('ping -c 2', other.IP()))[1]
"""
# Words of the golden file for what scripts begin with.
SHORT = {"TOPOS": TOPOS, "BEGIN": BEGIN, "LOOP": LOOP, "LINK": LINK, "MANY": BEGIN.replace("(2)", "(300)")}


def mn(folder, text, *words):
    """Runs a script; returns the exit code, what it printed, and the warnings and errors."""
    (folder / "net.py").write_text(text)
    command = ended("mn", "net.py", *words, folder=folder)
    return command.returncode, command.stdout, command.stderr


def test_loss_is_binomial_whatever_the_length_and_the_same_in_every_run(tmp_path):
    code, said, noted = mn(tmp_path, LOSSY, "--keep", "kept")
    assert code == 0, noted
    assert "whatever its length" in noted
    received = [int(count) for count in re.findall(r"500 packets transmitted, (\d+) received", said)]
    assert len(received) == 2
    for count in received:
        assert stats.binomtest(count, 500, 0.9 * 0.9).pvalue > 0.005
    accounts = [json.loads(line) for line in (tmp_path / "kept/records/accounting.jsonl").read_text().splitlines()]
    for account in accounts:
        assert account["closes"]
        assert account["policy_packets"] == account["offered_packets"] - account["delivered_packets"]
        assert stats.binomtest(account["policy_packets"], account["offered_packets"], 0.1).pvalue > 0.005

    assert mn(tmp_path, LOSSY) == (code, said, noted)
    assert mn(tmp_path, LOSSY, "--seed", "2")[1] != said


@pytest.mark.parametrize("name", BEHAVES)
def test_a_script_behaves_as_in_mininet(tmp_path, name):
    script, _, expected = BEHAVES[name].rpartition("\n=> ")
    expected_code, expected = expected.split(" ", 1)
    for file, text in {
        "helper.py": "word = 'imported'",
        "pages/page.html": "<b>hello</b>",
        "hub.py": SCRIPTS["hub"],
    }.items():
        (tmp_path / file).parent.mkdir(exist_ok=True)
        (tmp_path / file).write_text(text)
    code, said, noted = mn(tmp_path, f"{TWO}{script}\n", "--", "--bw", "7")
    assert re.search(expected, noted + said + noted, re.DOTALL), said + noted
    assert code == int(expected_code)
    assert name == "tc of its own" or "do not close" not in noted


def test_routers_addresses_and_files_are_those_of_the_script(tmp_path):
    code, said, noted = mn(tmp_path, SCRIPTS["router"], "--keep", "kept")
    assert code == 0, noted
    assert "ttl=63" in said
    assert "dropped 0.0" in said
    assert "cpu: ignored; computing takes no virtual time" in noted
    assert "c0: nobody listened at port 6653" in said
    assert (tmp_path / "kept/files/kept.txt").read_text().split() == ["of", "a", "node"] * 2


def test_lines_of_the_prompt_take_their_time(tmp_path):
    (tmp_path / "lines.txt").write_text("h1 sleep 3\nh1 ping -c 2 h2\niperf\n")
    code, said, noted = mn(tmp_path, TOPOS, "--topo", "single", "--commands", "lines.txt")
    assert (code, "2 packets transmitted, 2 received" in said) == (0, True), noted
    assert re.search(r"^4\.\d s of virtual time", noted)
    assert "iperf: found no link with a bw between h1 and h3" in said


@pytest.mark.parametrize(("topo", "count"), [("tree,2,2", 12), ("linear,3", 6), ("single", 6)])
def test_topos_are_chosen_as_with_mn_custom(tmp_path, topo, count):
    code, said, noted = mn(tmp_path, TOPOS, "--topo", topo, "--test", "pingall")
    assert code == 0, noted
    assert f"*** Results: 0% dropped ({count}/{count} received)" in said


@golden.each("wrong scripts of Mininet", "case name script")
def test_wrong_and_hostile_scripts_are_answered(case, tmp_path, name, script):
    """With an exit code, the last words of the script, and a message."""
    first, _, rest = script.partition(" ")
    code, said, noted = mn(tmp_path, f"{SHORT[first]}{rest}" if first in SHORT else script)
    case.hold(f"exit code {code}\n{''.join(said.splitlines()[-1:])[:200]}\n{noted}", tmp_path)
    assert "Traceback" not in noted
    assert "Traceback" not in said or name in ("no Python", "an exception")
    assert [path.name for path in tmp_path.iterdir()] == ["net.py"]


def test_an_endless_script_is_ended(tmp_path):
    started = time.monotonic()
    code, _, noted = mn(tmp_path, BEGIN + "while True: pass", "--max-wall", "5 s")
    assert code == 1
    assert "did not end within its wall limit of 5 s" in noted
    assert time.monotonic() - started < 60


def test_a_script_sees_nothing_of_the_machine(tmp_path):
    secret = tmp_path / "secret"
    secret.write_text("of the machine")
    reads = (
        f"import os\nfor path in ({str(secret)!r}, '/etc/shadow'):\n    print(path, "
        "os.path.exists(path))\nprint(open('/etc/shadow').read())\n"
    )
    code, said, noted = mn(tmp_path, BEGIN + reads)
    assert code == 0, noted
    assert f"{secret} False" in said
    assert "root:*:" in said
