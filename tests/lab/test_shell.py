"""`scpslab shell` at a real terminal: Mininet's walkthrough, Ctrl-C, and the end of a session in every way."""

import os
import re
import signal
import time

import pytest
import yaml

from scpslab import scenario
from scpslab.core.scratch import MEMORY
from scpslab.scenario import planning
from tests import golden
from tests.lab.command import ended
from tests.lab.terminal import CTRL_C, CTRL_D, CTRL_Z, PROMPT, Terminal, left_of
from tests.lab.test_docker import needs_images

INTERRUPTED = 130


def shown(folder, typed, *words):
    """What a session shows whose lines come from a pipe, and its messages."""
    command = ended("shell", "point_to_point", *words, folder=folder, typed=typed)
    assert command.returncode == 0, command.stderr
    return command.stdout.replace("\r", ""), command.stderr


def script_in(folder):
    """The steps of a transcript."""
    return yaml.safe_load((folder / "transcript.yaml").read_text())["events"]


@pytest.fixture(scope="module")
def fy97(tmp_path_factory):
    """A session on the FY97 network, which has routers, switches and a monitor without an address."""
    with Terminal("fy97", "--keep", str(tmp_path_factory.mktemp("fy97"))) as terminal:
        yield terminal
        terminal.type("exit\n")
        assert terminal.ends_within(10) == 0
        # The kernel says nothing to the user.
        assert "Power down" not in terminal.text


def pinged(answer):
    """The counts of pingall's last line: received and sent."""
    counts = re.search(r"\*\*\* Results: \d+% dropped \((\d+)/(\d+) received\)", answer)
    assert counts, answer
    return int(counts[1]), int(counts[2])


def test_the_walkthrough_display_commands(fy97):
    """Each shows what Mininet's shows; help speaks of this prompt and of nodes that are there."""
    assert "ws1, ws2, ws3, ws4, r1, r2" in fy97.banner
    fy97.type("help\n")
    help_text = fy97.read_until("stops the lab.")
    fy97.read_until(PROMPT)
    assert "mininet>" not in help_text
    words = (f"{PROMPT}ws1 ping -c 3 ws3", "pingall", "iperf", "capture", "link")
    assert [word for word in words if word not in help_text] == []
    assert "ws1" in fy97.do("nodes")
    assert "ws1 ws1-lan1:lan1-ws1" in fy97.do("net")
    assert "<LabNode ws1: ws1-lan1:10.1.0.1 pid=" in fy97.do("dump")
    assert "inet 10.1.0.1" in fy97.do("ws1 ifconfig -a")
    assert "lan1-ws1: flags=" in fy97.do("lan1 ifconfig -a")
    assert "actions=NORMAL" in fy97.do("dpctl dump-flows")
    assert fy97.do("py ws1.IP()") == "10.1.0.1\n"
    assert fy97.do("sh echo in the lab") == "in the lab\n"


def test_the_walkthrough_traffic(fy97):
    """Nodes without an address are named and left out; a shell keeps its variables and its background commands."""
    assert "1 received" in fy97.do("ws1 ping -c 1 ws2")
    answer = fy97.do("pingall")
    assert pinged(answer) == (20, 20)
    assert "Left out, because they have no address: ws4" in answer
    assert pinged(fy97.do("pingpair")) == (2, 2)
    assert re.search(r"ws2 \(5\d\d\S* ms\)", fy97.do("pingpairfull"))
    fy97.do("ws2 cd /tmp; python3 -m http.server 80 &")
    fy97.do("ws1 sleep 2")
    assert "Directory listing" in fy97.do("ws1 curl -s ws2")
    fy97.do("ws2 kill %python3")
    assert fy97.do("ws2 pwd").endswith("/tmp\n")


def test_iperf_measures(fy97):
    """TCP less than the hop's 2 Mbit/s; datagrams at their rate; wrong words are refused with the right ones."""
    answer = fy97.do("iperf ws1 ws2")
    rates = [
        float(figure) * {"K": 1e3, "M": 1e6}[unit] for figure, unit in re.findall(r"'([\d.]+) ([KM])bits/sec'", answer)
    ]
    assert len(rates) == 2, answer
    # A busy machine is slower than the network.
    assert all(1e5 < rate < 2.5e6 for rate in rates), answer
    assert re.search(r"Results: \['1M', '[\d.]+ [KM]bits/sec', '1\.\d+ Mbits/sec'\]", fy97.do("iperfudp 1M ws1 ws2"))
    assert 'found "ws1 ws4"; expected two nodes with an address' in fy97.do("iperf ws1 ws4")
    assert "expected a client and a server: iperf ws1 ws3" in fy97.do("iperf ws1")
    assert fy97.do("sh pgrep -c iperf").strip() == "0"


def test_links_go_down_and_up(fy97):
    """By their name, by their ends as in Mininet, or by the switch that they go through."""
    for down, up in (
        ("link hop down", "link hop up"),
        ("link ws1 lan1 down", "link lan1 ws1 up"),
        ("link r1 r2 down", "link sat r1 up"),
    ):
        assert fy97.do(down) == ""
        assert "0 received" in fy97.do("ws1 ping -c 1 -W 2 ws2")
        assert fy97.do(up) == ""
        assert "1 received" in fy97.do("ws1 ping -c 1 -W 5 ws2")


@golden.each("wrong lines of a session")
def test_wrong_lines_are_answered_and_the_session_goes_on(case, fy97):
    case.hold(fy97.do(case))
    assert fy97.do("ws1 hostname") == "ws1\n"


@pytest.mark.parametrize("line", ["ws1 ping ws2", "pingall 60", "iperf ws1 ws2", "ws1 cat", "sh sleep 600"])
def test_ctrl_c_ends_a_command_and_nothing_else(fy97, line):
    """Nodes, switches and a capture that runs outlive it."""
    fy97.do("capture ws2")
    if line.startswith("pingall"):
        fy97.do("link hop down")
    fy97.type(line + "\n")
    fy97.read_until("\n")
    time.sleep(2)
    fy97.type(CTRL_C)
    fy97.read_until(PROMPT, 10)
    fy97.do("link hop up")
    assert "1 received" in fy97.do("ws1 ping -c 1 ws2")
    assert fy97.do("sh pgrep -c tcpdump").strip() == "1"
    assert "ends" in fy97.do("capture ws2")


def test_ctrl_z_and_ctrl_c_at_the_prompt_do_nothing(fy97):
    # Python shows the prompt before it waits for keys, and takes note of a Ctrl-C between the two at the next key only.
    time.sleep(1)
    fy97.type(CTRL_Z + CTRL_C)
    fy97.read_until(PROMPT)
    assert fy97.do("ws1 hostname") == "ws1\n"


def test_a_command_that_ignores_ctrl_c_is_left_behind(fy97):
    """At the third one, with a new shell for the node."""
    fy97.type("ws3 trap '' INT; while :; do sleep 1; done\n")
    for _ in range(3):
        time.sleep(1)
        fy97.type(CTRL_C)
    assert "the command did not end" in fy97.read_until(PROMPT, 10)
    assert fy97.do("ws3 hostname") == "ws3\n"


def test_the_end_of_a_node_s_shell_is_not_that_of_the_session(fy97):
    assert "the shell of the node ended" in fy97.do("ws1 exit")
    assert fy97.do("ws1 hostname") == "ws1\n"


def test_lines_typed_while_a_command_runs_do_not_disturb_the_next_one(fy97):
    fy97.type("ws1 sleep 2\n")
    time.sleep(1)
    fy97.type("echo a\necho b\nunfinish")
    fy97.read_until(PROMPT)
    fy97.do("")
    assert fy97.do("ws1 hostname") == "ws1\n"
    assert fy97.do("ws1 echo done") == "done\n"


def test_programs_know_the_nodes_by_name(fy97):
    """Also where the prompt does not put an address in the name's place."""
    assert "1 received" in fy97.do('ws1 sh -c "ping -c 1 ws2"')
    assert fy97.do("ws2 getent hosts r1").split() == ["10.1.0.254", "r1"]


def test_hosts_have_the_settings_of_a_scenario(fy97):
    """So a transcript repeats a session in the same TCP, and no transfer inherits what an earlier one has learnt."""
    (cell,) = scenario.cells(scenario.load("fy97/fig04:kernel", ["sweep={}", "repeats=1", "hosts={}"]))
    (settings,) = [node.sysctls for node in planning.plan(cell).network.nodes if node.name == "ws1"]
    assert settings["net.ipv4.tcp_no_metrics_save"] == "1"
    for name, value in settings.items():
        assert fy97.do(f"ws1 sysctl -n {name}").split() == value.split()


def test_a_shell_in_a_node_is_typed_at(fy97):
    fy97.type("ws1 sh\n")
    time.sleep(1)
    fy97.type("echo $((6 * 7))\n")
    fy97.read_until("42", 10)
    fy97.type("exit\n")
    fy97.read_until(PROMPT, 10)
    assert fy97.do("ws1 hostname") == "ws1\n"


def test_what_tc_replaces_is_said_and_marked(fy97):
    """Once; link then shows which direction is no longer as it says. What the lab changes itself is not meant."""
    assert fy97.do("link hop rate 1 Mbit/s") == ""
    answer = fy97.do("r1 tc qdisc replace dev r1-hop root netem delay 1ms")
    assert "*** hop forward: tc has changed r1-hop" in answer
    assert 'type "link hop forward rate 1 Mbit/s"' in answer
    assert "***" not in fy97.do("ws1 true")
    marked = [
        line.split()[:2] for line in fy97.do("link").splitlines() if "no longer so: tc has changed r1-hop" in line
    ]
    assert marked == [["hop", "forward"]]
    # What tc has changed in place is the lab's again; what it has removed is not.
    assert fy97.do("link hop forward rate 2 Mbit/s") == ""
    assert "no longer so" not in fy97.do("link")
    assert "tc has changed ws3-lan1" in fy97.do("ws3 tc qdisc del dev ws3-lan1 root")
    assert "Start the lab again" in fy97.do("link ws3 lan1 rate 10 Mbit/s")


def test_link_says_why_packets_were_lost(fy97):
    fy97.do("link hop forward down")
    fy97.do("ws1 ping -c 3 -W 1 ws2")
    fy97.do("link hop forward up")
    table = fy97.do("link")
    assert re.search(r"hop +forward .* lost (queue \d+, )?outage \d+", table), table


def test_no_line_waits_for_the_next_key(fy97):
    """The kernel now and then misses that there is input."""
    for number in range(1500):
        assert fy97.do(f"py {number + 1}", 5) == f"{number + 1}\n"


def test_a_program_gets_what_is_typed(fy97):
    fy97.type("ws1 cat\n")
    fy97.read_until("\n")
    time.sleep(1)
    fy97.type("to the program\n")
    fy97.read_until("to the program", 10)
    fy97.read_until("to the program", 10)
    fy97.type(CTRL_D)
    fy97.read_until(PROMPT, 10)


def assert_nothing_is_left(terminal, tree, *, of_memory=True):
    """No process, and no folder in memory."""
    assert len(tree) > 5, "the lab kernel and its processes were not found"
    assert left_of(tree, 5) == []
    assert not of_memory or list(MEMORY.glob(f"scpslab-{terminal.pid}-*")) == []


@pytest.mark.parametrize("keys", ["exit\n", "quit\n", CTRL_D])
def test_the_user_leaves(keys):
    with Terminal("point_to_point") as terminal:
        tree = terminal.tree()
        terminal.type(keys)
        assert terminal.ends_within(10) == 0
        assert_nothing_is_left(terminal, tree)


@pytest.mark.parametrize("how", ["closed", "closed, hang-up ignored", "closed in a ping", "SIGTERM", "SIGKILL"])
def test_a_session_that_is_ended_from_outside_ends_its_lab_and_keeps_what_was_typed(how, tmp_path):
    keep = tmp_path / "kept"
    with Terminal("point_to_point", "--keep", str(keep), ignore_hangup=how.endswith("ignored")) as terminal:
        terminal.do("capture h2")
        terminal.do("link hop forward ber 1e-7")
        terminal.do("h1 ping -c 2 h2")
        if "ping" in how:
            terminal.type("h1 ping h2\n")
        time.sleep(2)
        tree = terminal.tree()
        if how.startswith("closed"):
            terminal.close()
        else:
            os.kill(terminal.pid, getattr(signal, how))
        assert terminal.ends_within(10) == (-signal.SIGKILL if how == "SIGKILL" else INTERRUPTED)
        assert_nothing_is_left(terminal, tree, of_memory=how != "SIGKILL")

    kept = script_in(keep)
    assert [step.get("command", step.get("ber")) for step in kept][:2] == [1e-7, "ping -c 2 10.0.0.2"]
    assert len((keep / "h2.pcap").read_bytes()) > 4 * 98
    (cell,) = scenario.cells(scenario.load(str(keep / "transcript.yaml")))
    assert len(planning.plan(cell).cell.events) == len(kept)


def test_a_transcript_says_what_was_interrupted_and_captures_do_not_overwrite_each_other(tmp_path):
    keep = tmp_path / "kept"
    with Terminal("point_to_point", "--keep", str(keep)) as terminal:
        for _ in range(2):
            terminal.do("capture h1")
            terminal.do("h1 ping -c 1 h2")
            terminal.do("capture h1")
        terminal.type("h1 ping h2\n")
        time.sleep(2)
        terminal.type(CTRL_C)
        terminal.read_until(PROMPT, 10)
        terminal.do("iperf h1 h2")
        terminal.type("exit\n")
        assert terminal.ends_within(10) == 0
        assert str(keep / "transcript.yaml") in terminal.text

    steps = script_in(keep)
    assert [(step["command"], step.get("required", True)) for step in steps] == [
        ("ping -c 1 10.0.0.2", True),
        ("ping -c 1 10.0.0.2", True),
        ("ping 10.0.0.2", False),
        ("iperf -s -p 5001", False),
        ("iperf -p 5001 -t 5 -c 10.0.0.2", True),
    ]
    assert sorted(path.name for path in keep.iterdir()) == ["h1-2.pcap", "h1.pcap", "transcript.yaml"]


def test_commands_of_a_pipe_are_typed(tmp_path):
    """As with Mininet: a file of commands on standard input is a session, and it ends with the file."""
    commands = "h1 ping -c 1 h2\nh1 sleep 1; echo rested\nlink hop forward ber 1e-5\nlink\n"

    answers, _ = shown(tmp_path, commands, "--keep", tmp_path)

    assert f"{PROMPT}h1 ping -c 1 h2" in answers
    assert "1 received" in answers
    assert "\nrested" in answers
    assert re.search(r"hop +forward +state up +ber 1e-05", answers)
    assert ["link" in step for step in script_in(tmp_path)] == [False, False, True]


def test_a_transcript_with_typing_errors_runs_and_means_the_same(run, tmp_path):
    """Commands that are not there are left out; what only bash understands stays; who reads finds nothing."""
    wrong = ["h1 pign -c 1 h2", "h1 pign h2 &", "h1 ls | pign"]
    right = ["h1 time sleep 0.1", "h1 for i in {1..2}; do echo $i; done", "h1 ping -c 1 h2", "h1 cat"]

    shown(tmp_path, "\n".join([*wrong, *right, ""]), "--keep", tmp_path)

    kept = ["bash -c 'time sleep 0.1'", "bash -c 'for i in {1..2}; do echo $i; done'", "ping -c 1 10.0.0.2", "cat"]
    assert [step["command"] for step in script_in(tmp_path)] == kept
    assert run(tmp_path / "transcript.yaml").ended == (1, 0, 0)


def test_captures_are_kept_without_being_asked_for(tmp_path):
    """In a folder that is named at the beginning, and made only for a capture."""
    for commands, kept in (
        ("h1 true\n", []),
        ("capture h2\nh1 ping -c 1 h2\ncapture h2\n", ["h2.pcap", "transcript.yaml"]),
    ):
        answers, messages = shown(tmp_path, commands)
        assert "Captures come to session-1," in messages
        assert sorted(path.name for path in tmp_path.glob("session-1/*")) == kept
    assert "session-1/h2.pcap" in answers


def test_a_script_for_the_guest_s_shell_is_typed(tmp_path):
    """With here-documents, loops, and lines for Mininet's prompt."""
    script = "cat <<END\none\ntwo\nEND\nfor i in 1 2\ndo\necho n$i\ndone\n"
    mininet = "mn --custom point_to_point.py --topo point_to_point\nh1 ping -c 1 h2\nexit\necho finished\n"

    answers, _ = shown(tmp_path, script + mininet, "--bash")

    assert [
        words for words in ("\none\ntwo\n", "\nn1\nn2\n", "1 received", "\nfinished\n") if words not in answers
    ] == []
    assert "Power down" not in answers


@needs_images
def test_a_container_s_address_is_known_whatever_its_image_has(tmp_path):
    """Its image has no ifconfig, which Mininet would ask. Names are known there too."""
    commands = "iperf h1 h2\npy h1.IP(), h2.IP()\nh1 getent hosts h2\n"

    answers, _ = shown(tmp_path, commands, "--containers", "docker")

    assert "\n('10.0.0.1', '10.0.0.2')\n" in answers
    assert re.search(r"\n10\.0\.0\.2 +h2\n", answers)
