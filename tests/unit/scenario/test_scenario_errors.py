"""Everything that can be wrong with a scenario is one line: where, what was found, what was expected, what to do."""

import re

import pytest
import yaml

from scpslab import scenario
from tests.cases import changed, each, refusal, rows

SERIAL = """kind: scenario
version: 1
title: Serial
topology: sgls
links: {serial: {forward: {errors: {model: independent, ber: 1.0e-5}}}}
workloads:
  - {kind: ftp, name: transfer, from: satellite, to: ground, size: 100 kB}
"""
# Words of the tables for others: of places, and of what begins a part of a scenario.
SHORT = {
    "QUEUE": "HOP.queue",
    "HOP": "links.hop.forward",
    "LINE": "links.serial.forward",
    "DOCKER": "containers: docker",
    "RED": "discipline: red",
    "IMAGE": "stack: image, image: vendor/stack",
    "READY": "ready_port: 80",
    "BULK": "kind: bulk, name: transfer, from: h1, to: h2, size: 100 kB",
    "FLOW": "name: flow, from: h1, to: h2",
    "FP": "kind: fp, name: second, from: satellite, to: ground, size: 1 kB",
    "COMMAND": "kind: command, name: web, node: h2, command: a",
}
# Where the complaint is; what is there instead, or {place: what is there}; words of the complaint.
CASES = """
titel | {title: GONE, titel: Small} | found the unknown key ... Did you mean title?
kind | topology | found "topology"; expected
sweep.ber.set | {sweep.ber.values: GONE, sweep.ber.cases: {a: {seed: 1}}} | with keys of another form
version | 2 | found 2; expected at most 1, what this scpslab knows
version | "1" | found "1"; expected 1
workloads[0].size | 100000 | found 100000 (no unit) ... such as "1400 B"
workloads[0].size | "100" | found "100" (no unit) ... such as "1400 B"
workloads[0].size | 100 kb | unit "kb" ... expected one of B, kB
workloads[0].size | 0 B | found "0 B"; expected a size above 0
workloads[0].size | -5 B | (negative)
workloads[0].size | 0.5 B | whole number of B
workloads[0].size | "1e999999999 B" |
workloads[0].size | "1e30 B" | expected a size of at most
workloads[0].size | 1000 GB | at the slowest hop ... fit in timeout
probes | {workloads.0: {BULK, size: 900 MB, timeout: 2 h, segment: 100 B}} | captures of about
HOP.delay | -1 ms | found "-1 ms" (negative)
HOP.delay | 10000 h | found a delay of ... expected at most
HOP.errors.ber | 1.5 | found 1.5; expected at most 1
HOP.errors.ber | low | found "low"; expected a number
HOP.errors.ber | .nan | found nan; expected a finite number
HOP.errors.ber | -1.0e-06 | at least 0
HOP.errors.model | independend | Did you mean independent?
HOP.errors | {HOP.errors: {model: clustered, ber: 0.9}} | found ber 0.9 in clusters
HOP.errors | {HOP.errors.model: gilbert-elliott} | good_to_bad_per_bit and bad_to_good_per_bit above 0
HOP.errors | {HOP.errors.model: vector-file} | expected file
HOP.errors.file | {HOP.errors: {model: vector-file, file: none.bits}} | no file "none.bits"
HOP.errors.outages[0] | {HOP.errors.outages: [{from: 5 s, to: 2 s}]} | its end after its start
HOP.errors.drop_packets[0] | {HOP.errors.drop_packets: [0]} | found 0; expected at least 1
links.hup | {links.hup: {}} | found "hup" ... Did you mean hop?
links.hop.foward | {links.hop.foward: {}} | found "foward" ... Did you mean forward?
HOP.delay_table | [{at: 2 s, delay: 1 ms}, {at: 1 s, delay: 1 ms}] | found steps out of order
HOP.rate | 9601 bit/s | found "9601 bit/s" ... multiple of 8
HOP.rate | 2000000 | found 2000000 (no unit) ... such as "2 Mbit/s"
HOP.rate | 2 Mbits | unit "Mbits" ... expected one of bit/s
HOP.rate | 0 bit/s | found "0 bit/s" ... above 0
HOP.queue.limit | 50 | found 50 ... "50 packets"
HOP.queue.limit | 0 packets | 1 packet
HOP.queue.ecn | true | expected discipline red or codel
QUEUE | {QUEUE: {RED, red_min: 60 kB, red_max: 30 kB}} | to ascend
QUEUE | {QUEUE: {RED, limit: 2 MB, red_min: 2 kB, red_max: 1 MB}} | a red_max of 2001 B to about 271 ... or the limit
QUEUE | {QUEUE: {RED, limit: 2 packets}} | found red_min 750 B, red_max 1500 B; expected a red_min of more than 1000 B
QUEUE | {QUEUE: {RED, limit: 100 MB}} | found red_min 25000000 B, red_max 50000000 B ... 25000001 B to about
QUEUE.red_probability | {QUEUE: {RED, limit: 200 kB, red_probability: 1.0e-9}} | expected 0, or more than 2.3e-05
topology | point_to_pont | Did you mean point_to_point?
parameters.datarate | 1 Mbit/s | Did you mean data_rate?
parameters.mtu | 20 B | found an MTU of 20 B; expected 68 B
hosts.h3 | {hosts.h3: {}} | found "h3"; expected one of h1, h2
hosts.sat | {hosts.sat: {}} | found "sat"; expected one of h1, h2
hosts.h1.stack | skps | found "skps"
hosts.h1 | {hosts.h1: {stack: scps-ri}} | found stack scps-ri, which left after version 0.3.0 ... as image
hosts.h1.preset | fy98-reno | Did you mean fy97-reno?
hosts.h1.congestion_control | {hosts.h1: {congestion_control: cubik}} | found "cubik" ... Did you mean cubic?
hosts.h1.stack | {hosts.h1: {IMAGE}} | found stack image ... Add containers: docker.
hosts.h1.image | {hosts.h1: {stack: image, image: vendor stack}} | expected
workloads[0].kind | {DOCKER, hosts.h1: {IMAGE}} | bulk with the stack image on h1 ... Use kind endpoint.
workloads[0].kind | endpoint | found endpoint ... Add containers: docker
workloads[0].kind | {DOCKER, hosts.h1: {stack: scps}, workloads.0.kind: endpoint} | stack scps on h1 ... kind bulk.
hosts.h1.rto_min | 1500 us | found "1500 us"; expected whole milliseconds. Correct the value.
hosts.h1.rto_min | {hosts.h1: {stack: scps, rto_min: 0.4 ms}} | found "0.4 ms"; expected whole milliseconds
hosts.h1.initial_rto | {hosts.h1: {stack: scps, initial_rto: 1500 us}} | whole milliseconds
hosts.h1.rto_max | {hosts.h1: {stack: scps, rto_max: 1500 us}} | whole milliseconds
hosts.h1.ack_delay | {hosts.h1: {stack: scps, ack_delay: 1500 us}} | whole milliseconds
hosts.h1.ack_floor | {hosts.h1: {stack: scps, ack_floor: 500 us}} | whole milliseconds
hosts.h1.sack | "no" | found "no"; expected true or false
hosts.h1.initial_window | 0 | found 0; expected at least 1
workloads[0].kind | bilk | found "bilk" ... Did you mean bulk?
workloads[0] | {workloads.0.kind: GONE} | found no kind
workloads | [] | neither workloads nor events
workloads[0].from | h3 | found "h3"; expected one of h1, h2
workloads[0].to | r2 | found "r2"; expected one of h1, h2
workloads[0].to | h1 | found "h1" at both ends
HOP.errors.mean_errors_per_burst | {HOP.errors: {model: clustered, ber: 0, mean_errors_per_burst: 1.0e+16}} | at most 1e+15
HOP.errors.mean_gap_in_burst | {HOP.errors: {model: clustered, ber: 0, mean_gap_in_burst: 1.0e+16}} | at most 1e+15
QUEUE.limit | 99999999999999999999 packets | at least "1 packet", and at most
events[0].command | {events: [{at: 1 s, node: h1, command: "a\\0b"}]} | or NUL; expected a character
events[0].delay | {HOP.jitter: 20 ms, events: [{at: 1 s, link: hop, delay: 10 ms}]} | jitter of 20 ms; expected at most 10 ms, the delay
events[0].delay | {HOP.jitter: 20 ms, events: [{at: 1 s, link: hop, direction: forward, delay: 10 ms}]} | jitter of 20 ms
workloads[0].segment | 1460 B | at most the 1448 B
workloads[0].segment | 50 B | parameter mtu to 102 B
workloads[0].port | 70000 | found 70000; expected at most 65535
workloads[1].port | {workloads.1: {BULK, name: second}} | found port 5001 of h2, where transfer listens
workloads[1].name | {workloads.1: {BULK, port: 6001}} | found the name "transfer"
workloads[0].name | {workloads.0.name: accounting} | found the name "accounting"
workloads[0].name | {workloads.0.name: events} | found the name "events"
events[0].service | {services: [{COMMAND, name: web}], events: [{at: 1 s, service: wep}]} | found "wep" ... Did you mean web?
services[0].node | {services: [{COMMAND, node: h9}]} | found "h9"; expected
services[0].name | {services: [{COMMAND, name: transfer}]} | which a workload or another service has
services[1].ready_port | {services: [{COMMAND, READY}, {COMMAND, name: b, READY}]} | which another service on h2 waits for
services[0].command | {services: [{COMMAND, READY, ready_command: a}]} | found ready_port and ready_command; expected one
services[0].kind | {services: [{COMMAND, kind: daemon}]} | found "daemon"; expected
workloads[0].name | ../transfer | expected a name
workloads[0] | {workloads.0: {FLOW, kind: iperf3}} | found neither of duration and size
workloads[0].duration | {workloads.0: {FLOW, kind: iperf3, duration: 1500 ms}} | whole seconds
workloads[0].payload | {workloads.0: {FLOW, kind: ping, payload: 15 B}} | found "15 B"; expected 16 B to 65507 B
workloads[0].payload | {workloads.0: {FLOW, kind: ping, payload: 65508 B}} | expected 16 B to 65507 B
workloads[0].interval | {workloads.0: {FLOW, kind: ping, interval: 2500 us}} | found "2500 us"; expected whole milliseconds
workloads[0].interval | {workloads.0: {FLOW, kind: ping, interval: 400 us}} | expected whole milliseconds
workloads[0] | {workloads.0: {FLOW, kind: background}} | neither of level and max_rate
workloads[0].level | {workloads.0: {FLOW, kind: background, level: 50}} | at least 100
workloads[0].packet | {workloads.0: {FLOW, kind: background, level: 150, packet: 2 kB}} | MTU of 1500 B
workloads[0].redraw | {workloads.0: {FLOW, kind: background, level: 150, redraw: 100 ms}} | expected at most 10000
probes[0].kind | captur | found "captur" ... Did you mean capture?
probes[0].node | h4 | found "h4"
probes[0].interval | 1 s | found the unknown key "interval" ... snaplen
probes[0].direction | {probes.0: {kind: queue, link: hop, direction: up}} | one of forward, return
probes[0].link | lan | found "lan"; expected one of hop
sweep.ber | {sweep.ber.set: ["links.hop.*.errors.bre"]} | errors.bre: found the unknown key ... mean ber?
sweep.ber | {sweep.ber.set: [title.x.y]} | found "x" after title, which is a plain value
sweep.ber | {sweep.ber.set: [links.hip.forward.errors.ber]} | links.hip: found "hip"
sweep.ber | {sweep.ber.set: [workloads.transfr.size]} | Did you mean transfer
sweep.ber | {sweep.ber.set: ["limits.*"]} | found "*" after limits
sweep.ber | {sweep.ber.values: [0, 2]} | =2: HOP.errors.ber: found 2; expected at most 1
sweep.ber | {sweep.ber.values: [0, 0]} | found a value twice
sweep.ber.values | [] | at least one
sweep.ber.values | GONE | found nothing
sweep | {sweep: {size: {set: [workloads.transfer.size], values: [1 kB, 1kB]}}} | found two cells
skip[0].beer | {skip: [{beer: 0}]} | Did you mean ber?
skip | [{}] | found every combination skipped
repeats | 0 | found 0; expected at least 1
repeats | two | found "two"; expected a whole number
seed | -7 | found -7; expected at least 0
limits.lab_time | 0 s | found "0 s"; expected a duration above 0
limits.lab_time | 1500 ms | found "1500 ms"; expected whole seconds. Correct the value.
limits.wall_time | 1500 ms | expected whole seconds
limits.memory | 1 MB | found "1 MB"; expected at least 128 MiB
checks[0] | {checks: [{metric: goodput_bps}]} | found no bound
checks[0] | {checks: [{metric: x, at_least: "5"}]} | found the bound "5"
containers | podman | found "podman"; expected one of process, docker
checks[0].of | {checks: [{metric: x, of: y, at_least: 1}]} | found "y"
limits | [1] | found a list; expected keys with values
limits | soon | found "soon"; expected keys with values
limits | null | found nothing; expected keys with values
"""
SERIAL_CASES = """
LINE.queue | {LINE.queue.limit: 10 kB} | rate, delay and errors only
LINE.overhead | 4 B | rate, delay and errors only
LINE.jitter | 1 ms | rate, delay and errors only
LINE.duplicate | 0.01 | rate, delay and errors only
sweep.twice | {sweep: {twice: {cases: {a: {LINE.delay: 1 ms}, b: {LINE.delay: 1 ms, LINE.duplicate: 0.01}}}}} | found duplicate
LINE.errors.drop_packets | [3] | bytes only
LINE.errors.model | {LINE.errors: {model: packet, loss: 0.01}} | bytes only
probes[0].link | {probes: [{kind: losses, link: serial, direction: forward}]} | found
workloads[0].name | {workloads.0.name: serial} | another record has
workloads[0].size | 1 GB | fit in timeout
workloads[0].kind | {hosts.ground: {stack: scps, bets: true}} | which has bets
workloads[0] | {workloads.0: {FP, command: delete, record: 1 MB}} | fits into it
workloads[0] | {workloads.0: {FP, command: insert, stop: abort}} | with get or put
workloads[0] | {workloads.0: {FP, stop: abort, stop_at: 100 kB}} | less than the file
workloads[0].data_timeout | {workloads.0: {FP, data_timeout: 1500 ms}} | whole seconds
workloads[0].wait_timeout | {workloads.0: {FP, wait_timeout: 1500 ms}} | whole seconds
workloads[0].bets | {workloads.0: {FP, bets: true}} | scps at both ends
workloads[0].segment | {hosts.ground: {stack: scps}, workloads.0: {FP, segment: 1461 B}} | at most the 1448 B
workloads[1].port | {workloads.1: {FP, kind: ftp}} | found port 21 of satellite
"""


def steps(path: str) -> list[str | int]:
    """The keys and numbers of `workloads[0].size`."""
    return [int(step) if step.isdigit() else step for step in re.findall(r"[^.\[\]]+", path)]


def spoilt(text: str, changes: dict[str, object]) -> str:
    """The scenario with these values at these places, each key in a line of its own; GONE takes its key away."""
    data = yaml.safe_load(text)
    for path, value in changes.items():
        here = data
        *way, last = steps(path)
        for step in way:
            here = here[step] if isinstance(step, int) else here.setdefault(step, {})
        if value == "GONE":
            del here[last]
        elif isinstance(here, list) and last == len(here):
            here.append(value)
        else:
            here[last] = value
    return yaml.safe_dump(data, sort_keys=False)


def line_of(text: str, path: str) -> str:
    """`LINE: ` of the nearest key of a path that the text has."""
    node, line = yaml.compose(text), ""
    for step in steps(path):
        if isinstance(node, yaml.MappingNode):
            inner = next((pair for pair in node.value if pair[0].value == str(step)), None)
        elif isinstance(node, yaml.SequenceNode) and isinstance(step, int) and step < len(node.value):
            inner = (node.value[step], node.value[step])
        else:
            inner = None
        if inner is None:
            break
        line, node = f"{inner[0].start_mark.line + 1}: ", inner[1]
    return line


def spoilings(table: str):
    """The places, changes and words of a table."""
    for short, whole in SHORT.items():
        table = re.sub(rf"\b{short}\b", whole, table)
    for where, change, words in rows(table):
        value = yaml.safe_load(change)
        yield where, value if isinstance(value, dict) else {where: value}, words.split(" ... ")


def complaints(load, text: str) -> str:
    said = refusal(load, text)
    form = re.compile(r".*small\.yaml.*: found .*; expected .*[.?]")
    assert [line for line in said.splitlines() if not form.fullmatch(line)] == []
    return said


@pytest.mark.parametrize(
    ("base", "where", "changes", "words"),
    [
        pytest.param(base, *case, id=f"{case[0]}-{number}")
        for base, table in ((None, CASES), (SERIAL, SERIAL_CASES))
        for number, case in enumerate(spoilings(table))
    ],
)
def test_wrong_scenario_is_told_at_its_line(base, where, changes, words, small, load):
    text = spoilt(base or small, changes)
    said = complaints(load, text)
    place = f"{line_of(text, where)}{where}"
    assert any(place in line and all(word in line for word in words) for line in said.splitlines()), (place, said)


# What YAML itself forbids, or we do: text for text of the small scenario.
@each(
    "old new words",
    r"""
seed: 7 | seed: 7\nseed: 8 | 20: seed: found the key a second time
ber: 1e-6} | ber: 1e-6, ber: 1e-5} | 8: links.hop.forward.errors.ber: found the key a second
seed: 7 | 7: seed | 19: top level: found the key "7"
seed: 7 | on: 7 | 19: top level: found the key "on"
title: Small | title: &t Small\nsource: *t | 4: found an alias
limits: {lab_time | limits: {<<: {wall_time: 1 s}, lab_time | 20: limits: found the key "<<"
lab_time: 4000 s} | lab_time: 4000 s | begins in line 20; expected YAML: ',' or '}'. Correct the line.
title: Small | title: [Small | that begins in line 3; expected YAML: ',' or ']'
title: Small | title:\tSmall\n\tseed: 1 | that cannot start any token
title: Small | title: !!python/object:os.system x | 3: found
""",
)
def test_what_is_no_yaml_of_ours_is_told_at_its_line(old, new, words, small, load):
    assert words in complaints(load, changed(small, (old, new)))


def test_all_errors_are_told_at_once(small, load):
    wrong = [("size: 100 kB", "size: 100"), ("ber: 1e-6}", "ber: 7}"), ("repeats: 2", "repeats: none")]
    said = refusal(load, changed(small, *wrong, ("node: h2", "noode: h2")))
    assert len(said.splitlines()) == 5  # node is missing and noode unknown


def test_same_error_at_many_points_is_told_once(small, load):
    axis = "sweep:\n  size: {set: [workloads.transfer.size], values: [1 kB, 2 kB, 0 B]}\n"
    assert refusal(load, changed(small, ("repeats: 2", ""), ("sweep:\n", axis))).count("\n") == 0


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("", "found no mapping"),
        (b"\xff\xfe\x00", "not UTF-8"),
        ("a: " + "[" * 5000 + "]" * 5000, "deeper nesting"),
        (
            "kind: campaign\nversion: 1\ntitle: Two\nruns: [{scenario: fy97/fig04}]\n",
            ":1: kind: found \"campaign\"; expected 'scenario'. Name a file of this kind, or correct the word.",
        ),
    ],
)
def test_a_file_that_is_no_scenario_is_told_once(content, says, load):
    said = refusal(load, content)
    assert says in said
    assert "\n" not in said


@each(
    "name says",
    """
fy97/fiig04 | found no such file
fy97/fiig04 | Did you mean fy97/fig04?
mine | scenario "mine": found a folder; expected one of mine/small.yaml,
mine/smal.yaml | found no such file; expected one of mine/small.yaml,
mine/small | found no such file; expected the whole name of one. Did you mean mine/small.yaml?
mine/smal.yaml | Did you mean mine/small.yaml?
/dev/null | scenario "/dev/null": found no ordinary file;
""",
)
def test_a_path_that_is_no_file_is_answered_with_the_files_of_its_folder(name, says, small, tmp_path, monkeypatch):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "small.yaml").write_text(small)
    monkeypatch.chdir(tmp_path)
    assert says in refusal(scenario.load, name)


@each(
    "override words",
    """
workloads.transfer.size=100 | --set workloads.transfer.size=100: workloads[0].size: found 100 (no unit)
workloads.transfer.size | found "workloads.transfer.size"; expected KEY=VALUE
workloads.transfr.size=1 kB | Did you mean transfer?
workloads.transfer.size.x=1 | plain value
repeats=[ | expected a value as in a scenario file
hosts.h1.congestion_control=cubik | --set hosts.h1.congestion_control=cubik: hosts.h1.congestion_control
hosts.h9.congestion_control=cubic | --set hosts.h9.congestion_control=cubic: hosts.h9
nothing.at.all=1 | found the unknown key "nothing"
links..data=1 | single dots
sweep.beer=[0] | found the axis "beer"; expected one of ber. Did you mean ber?
sweep.ber=[2] | --set sweep.ber=[2]: sweep.ber=2: links.hop.forward.errors.ber: found 2; expected at most 1
sweep.ber=[] | found an empty list; expected at least one value
sweep=7 | sweep: found 7; expected keys with values
""",
)
def test_wrong_override_is_told_at_the_option(override, words, small, load):
    said = refusal(load, small, override)
    assert words in said
    assert said.startswith("--set ")


@each(
    "variant words",
    """
{set: {workloads.transfer.size: 7}} | :22: variants.little.set.workloads.transfer.size: workloads[0].size: found 7 (no
{set: {workloads.x.size: 1 kB}} | :22: variants.little.set.workloads.x.size: found
{sweep: {beer: [0]}} | :22: variants.little.sweep.beer: found the axis
{sweep: {ber: [3]}} | sweep.ber=3: links.hop.forward.errors.ber: found 3
{repeats: 0} | :22: variants.little.repeats: found 0
""",
)
def test_wrong_variant_is_told_at_its_line(variant, words, small, write):
    path = write(f"{small}variants:\n  little: {variant}\n")
    assert words in refusal(lambda: scenario.cells(scenario.load(f"{path}:little")))


def test_unknown_variant(small, write):
    assert 'found no "demo"; expected none here' in refusal(scenario.load, f"{write(small)}:demo")


def test_the_serial_scenario_itself_is_right(load):
    load(SERIAL)
