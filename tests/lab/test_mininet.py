"""`scpslab mn`: Mininet scripts as people write them, in virtual time; wrong, endless and hostile ones."""

import json
import re
import time

import pytest
from scipy import stats

from tests import golden
from tests.lab.command import ended

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
# In the style of Mininet's own linuxrouter.py, and of what MiniEdit writes.
ROUTER = """
from mininet.topo import Topo
from mininet.net import Mininet
from mininet.node import Node, RemoteController, CPULimitedHost
class LinuxRouter(Node):
    def config(self, **params):
        super().config(**params)
        self.cmd('sysctl net.ipv4.ip_forward=1')
class NetworkTopo(Topo):
    def build(self, **_opts):
        router = self.addNode('r0', cls=LinuxRouter, ip='192.168.1.1/24')
        for n, ip in ((1, '192.168.1.1/24'), (2, '172.16.0.1/12')):
            s = self.addSwitch(f's{n}')
            self.addLink(s, router, intfName2=f'r0-eth{n}', params2={'ip': ip})
            network, prefix = ip.split('/')
            h = self.addHost(f'h{n}', ip=network[:-1] + '100/' + prefix, defaultRoute='via ' + network, cpu=.5)
            self.addLink(h, s)
net = Mininet(topo=NetworkTopo(), host=CPULimitedHost, controller=RemoteController, waitConnected=True)
net.start()
print(net['h1'].cmd('ping -c 1 172.16.0.100'))
print('dropped', net.pingAll())
open('kept.txt', 'w').write(net['h2'].cmd('echo of a node > shared.txt; cat shared.txt') + open('shared.txt').read())
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
# Scripts as people write them, and what they print, in this order: each behaves as it does in Mininet, or says so.
TWO = """
import os, re, signal, subprocess, sys, time
from mininet.net import Mininet
from mininet.topo import LinearTopo, SingleSwitchTopo
from mininet.link import TCLink, TCIntf
from mininet.util import custom
def rtt(host, other): return re.search(r'rtt.*= ([\\d.]+)', host.cmd('ping -c 2', other.IP()))[1]
"""
BEHAVES = {
    "links change": (
        """
net = Mininet(topo=LinearTopo(2), link=TCLink)
h1, h2 = net.get('h1', 'h2')
link = net.linksBetween(net['s1'], net['s2'])[0]
net.links[0].intf1.config(bw=10, delay='5ms', max_queue_size=20)
net.start()
print(rtt(h1, h2))
near, far = link.intf2, link.intf1
for number, end in enumerate((near, far)): end.config(bw=1, delay=f'{50 * (number + 1)}ms')
print(rtt(h1, h2), net.iperf((h1, h2), seconds=5)[0])
h2.cmd('iperf -s -u -i 1 > got.txt 2>&1 &')
h1.cmd('iperf -u -b 4M -t 9 -c', h2.IP(), '> sent.txt 2>&1 &')
h1.cmd('sleep 3'); near.config(bw=2, max_queue_size=30)
h1.cmd('sleep 3'); near.config(bw=8, loss=50); h1.cmd('sleep 4')
print(re.findall(r'([\\d.]+ .?bits)', open('got.txt').read())[:9])
near.config(bw=9, delay='20ms', jitter='10ms')
print(h1.cmd('ping -c 40 -i 0.1', h2.IP()).splitlines()[-1])
near.config(max_queue_size=10**6)
""",
        (
            r"5\.08\d\n.*15\d\.\d+ 9[45]\d Kbits/sec\n.*\['97\d Kbits', '97\d Kbits', .*'1\.9\d Mbits', '1\.9\d Mbits', .*"
            r"'2\.\d+ Mbits'\]\nrtt min/avg/max/mdev = 1[12]\d.* s1-eth2: found 1000000 packets"
        ),
        1,
    ),
    "settings and own classes": (
        """
from mininet.node import Host, CPULimitedHost
from mininet.link import Link
class Mine(Host):
    def config(self, hello='', **params):
        super().config(**params)
        self.cmd('echo', hello, '> /tmp/hello')
class Geo(TCLink):
    def __init__(self, node1, node2, **params):
        super().__init__(node1, node2, **{'delay': '270ms', **params})
os.system('sysctl -qw net.ipv4.tcp_congestion_control=reno')
net = Mininet(intf=custom(TCIntf, delay='10ms'))
h1, h2, h3 = net.addHost('h1', cls=Mine, hello='world'), net.addHost('h2', privateDirs=['/x']), net.addHost('h3')
s1 = net.addSwitch('core', dpid='99')
net.addLink(h1, s1, port2=7)
net.addLink(h2, s1, cls=Geo, max_queue_size=8.4)
net.addLink(h3, s1, cls1=custom(TCIntf, delay='1ms'))
net.start()
print(h1.cmd('cat /tmp/hello'), rtt(h1, h2), rtt(h1, h3), h1.cmd('sysctl -n net.ipv4.tcp_congestion_control net.ipv4.ip_forward'))
print(s1.dpctl('show', '| grep -E "dpid|eth7"'), h1.intf().link)
os.system('sysctl -qw net.ipv4.tcp_congestion_control=bbr')
net.stop()
""",
        (
            r"8 packets, as in Mininet.*world\s+560\.\d+ 31\.\d+ reno\s+0\s.*dpid:0{14}99\s+7\(core-eth7\).*h1-eth0<->core-eth7"
            r".*tcp_congestion_control: set after the hosts were made"
        ),
        0,
    ),
    "addresses": (
        """
net = Mininet(topo=SingleSwitchTopo(3), autoSetMacs=True)
h1, h2, h3 = net.hosts
h3.setIP('10.0.0.33', 8)
net.start()
print('known:', h1.cmd('arp -n'), net.ping([h1, h3]), h1.cmd('arp -n | grep -c ether'))
h2.setMAC('00:00:00:00:00:99'); h2.setIP('10.0.0.222/8'); h3.intf().rename('wan0')
print(net.pingAll(timeout='1'), h1.cmd('arp -n'), h3.cmd('ip -br addr'))
""",
        r"known: \s*0\.0 1\s.*0% dropped \(6/6.*0\.0 .*10\.0\.0\.222 +ether +00:00:00:00:00:99.*wan0@if\d+ +UP +10\.0\.0\.33/8",
        0,
    ),
    "programs": (
        """
import json, helper
net = Mininet(topo=SingleSwitchTopo(2)); net.start()
h1, h2 = net.hosts
print(sys.argv[1:], helper.word, h1.stdout.fileno() > 0, repr(h1.cmd('ip -br link show lo')[:2]))
h1.popen('ping -c 1 10.0.0.2 > $LOGNAME.txt', shell=True).wait()
print(open('root.txt').read().count('1 received'))
echo = h2.popen(['ping', '10.0.0.1']); time.sleep(3); echo.send_signal(signal.SIGINT); time.sleep(1)
print(echo.poll(), echo.communicate()[0].decode().count('3 received'))
server = h1.popen('python -m http.server 80'); time.sleep(1)
print(h2.cmd('curl -s http://10.0.0.1/pages/page.html'))
h1.cmd('yes | head -c 3000000 &'); print(h1.cmd('echo there')[-7:])
print(net['s1'].cmd('ls /nothing'), h2.cmd('traceroute 10.0.0.1'))
h2.popen('nft list tables')
try: input('who?')
except EOFError: print('nobody')
exit(3)
""",
        (
            r"\['--bw', '7'\] imported True 'lo'\n1\n0 1\n<b>hello</b>.*there.*traceroute: not in the guest; use --packages "
            r"traceroute.*cannot access '/nothing'.*nft: .* --packages nftables.*who\?nobody.* exit code 3"
        ),
        1,
    ),
    "rules, controllers": (
        """
from mininet.node import OVSSwitch, RemoteController, Controller
hub = subprocess.Popen(['python3', 'hub.py']); time.sleep(1)
class Own(Controller):
    def __init__(self, name, **params): super().__init__(name, command='pox.py', **params)
remote = lambda name: RemoteController(name, port=6653)
net = Mininet(topo=SingleSwitchTopo(3), switch=OVSSwitch, controller=[remote, Own], waitConnected=True)
net.start()
print(net.pingAll(timeout='1'), net['s1'].dpctl('dump-flows'), net['s1'].dpid)
hub.terminate()
print(net['s1'].vsctl('del-controller s1'), net['s1'].dpctl('del-flows'), time.sleep(1), net.ping(net.hosts[:2], timeout='1'))
""",
        r"pox.py: not in the guest.*0\.0 .*priority=10 actions=FLOOD\s+0{15}1\n.*100% dropped",
        0,
    ),
    "tc of its own": (
        """
net = Mininet(topo=SingleSwitchTopo(2), link=custom(TCLink, bw=4, delay='20ms'))
net.start()
s1, (h1, h2) = net['s1'], net.hosts
s1.cmd('ovs-vsctl set bridge s1 protocols=OpenFlow13')
print('still', rtt(h1, h2))
print('one', s1.cmd('tc qdisc add dev s1-eth2 parent 5:1 handle 10: pfifo'))
print('two', s1.cmd('tc qdisc replace dev s1-eth2 root tbf rate 2mbit burst 5000 latency 10ms'))
print(net.iperf((h1, h2), seconds=4)[0])
""",
        (
            r"still 8\d\..*s1: tc has not done .*one .*warning: .*: a command has changed s1-eth2.*two.*1\.[5-9]\d Mbits/sec"
            r".*accounts of a link do not close: .*Commands lose packets uncounted"
        ),
        0,
    ),
}
# A hub in OpenFlow 1.0: hello, features request, a rule that floods; and answers to echo requests.
HUB = """
import socket, struct
def message(kind, xid=0, body=b''): return struct.pack('!BBHI', 1, kind, 8 + len(body), xid) + body
server = socket.create_server(('127.0.0.1', 6653)); switch, _ = server.accept()
rule = struct.pack('!I36xQHHHHIHH', 0x3fffff, 0, 0, 0, 0, 10, 0xffffffff, 0xffff, 0) + struct.pack('!HHHH', 0, 8, 0xfffb, 0)
switch.sendall(message(0) + message(5, 1) + message(14, 2, rule))
while head := switch.recv(8, socket.MSG_WAITALL):
    _, kind, length, xid = struct.unpack('!BBHI', head)
    body = switch.recv(length - 8, socket.MSG_WAITALL) if length > 8 else b''
    if kind == 2: switch.sendall(message(3, xid, body))
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
    script, expected, expected_code = BEHAVES[name]
    for file, text in {"helper.py": "word = 'imported'", "pages/page.html": "<b>hello</b>", "hub.py": HUB}.items():
        (tmp_path / file).parent.mkdir(exist_ok=True)
        (tmp_path / file).write_text(text)
    code, said, noted = mn(tmp_path, TWO + script, "--", "--bw", "7")
    assert re.search(expected, noted + said + noted, re.DOTALL), said + noted
    assert code == expected_code
    assert name == "tc of its own" or "do not close" not in noted


def test_routers_addresses_and_files_are_those_of_the_script(tmp_path):
    code, said, noted = mn(tmp_path, ROUTER, "--keep", "kept")
    assert code == 0, noted
    assert "ttl=63" in said
    assert "dropped 0.0" in said
    assert "cpu of h1: ignored" in noted
    assert "c0: nobody listened at port 6653" in said
    assert (tmp_path / "kept/files/kept.txt").read_text().split() == ["of", "a", "node"] * 2


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
