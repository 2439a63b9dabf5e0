"""Everything that can be wrong with a scenario is one line: where, what was found, what was expected, what to do."""

import re
from pathlib import Path

import pytest

from scpslab import scenario
from scpslab.core.errors import ScenarioError

SMALL = (Path(__file__).parents[2] / "data" / "small-scenario.yaml").read_text()

BULK = "{kind: bulk, name: transfer, from: h1, to: h2, size: 100 kB}"

TWO_SERVICES = """services:
  - {kind: command, name: a, node: h2, command: a, ready_port: 80}
  - {kind: command, name: b, node: h2, command: b, ready_port: 80}
"""


def spoil(old: str, new: str) -> str:
    assert old in SMALL
    return SMALL.replace(old, new)


# What is changed in the small scenario, and the line number, key path and words that the complaint must have.
CASES = {
    "unknown key": (("title: Small", "titel: Small"), "3: titel: found the unknown key", "Did you mean title?"),
    "missing key": (("title: Small\n", ""), "title: found nothing; expected this key"),
    "unknown kind of file": (("kind: scenario", "kind: topology"), '1: kind: found "topology"; expected'),
    "an axis of two forms": (
        ("values: [0, 1e-6, 1e-5]", "cases: {a: {seed: 1}}"),
        '17: sweep.ber.set: found "set" together with keys of another form',
    ),
    "unknown version": (
        ("version: 1", "version: 2"),
        "2: version: found 2; expected at most 1, what this scpslab knows",
    ),
    "version as text": (("version: 1", 'version: "1"'), '2: version: found "1"; expected 1'),
    "empty title": (("title: Small", 'title: ""'), "3: title: ", "at least one"),
    "number without unit": (
        ("size: 100 kB", "size: 100000"),
        "13: workloads[0].size: found 100000 (no unit)",
        'such as "1400 B"',
    ),
    "text without unit": (
        ("size: 100 kB", 'size: "100"'),
        '13: workloads[0].size: found "100" (no unit)',
        'such as "1400 B"',
    ),
    "unknown unit": (("size: 100 kB", "size: 100 kb"), 'unit "kb"', "expected one of B, kB"),
    "size 0": (("size: 100 kB", "size: 0 B"), '13: workloads[0].size: found "0 B"; expected a size above 0'),
    "negative size": (("size: 100 kB", "size: -5 B"), "13: workloads[0].size", "(negative)"),
    "part of a byte": (("size: 100 kB", "size: 0.5 B"), "13: workloads[0].size", "whole number of B"),
    "absurd size": (("size: 100 kB", "size: 1e999999999 B"), "13: workloads[0].size"),
    "more than 64 bits": (("size: 100 kB", "size: 1e30 B"), "13: workloads[0].size", "expected a size of at most"),
    "too large for the time": (
        ("size: 100 kB", "size: 1000 GB"),
        "13: workloads[0].size",
        "at the slowest hop",
        "fit in patience",
    ),
    "capture over the memory": (
        ("size: 100 kB}", "size: 900 MB, patience: 2 h, segment: 100 B}"),
        "14: probes",
        "found captures of about",
        "Raise limits.memory",
    ),
    "negative delay": (
        ("      errors:", "      delay: -1 ms\n      errors:"),
        '8: links.hop.data.delay: found "-1 ms" (negative)',
    ),
    "absurd delay": (
        ("      errors:", "      delay: 10000 h\n      errors:"),
        "8: links.hop.data.delay: found a delay of",
        "expected at most",
    ),
    "bit error rate above 1": (
        ("ber: 1e-6}", "ber: 1.5}"),
        "8: links.hop.data.errors.ber: found 1.5; expected at most 1",
    ),
    "bit error rate as text": (
        ("ber: 1e-6}", 'ber: "low"}'),
        '8: links.hop.data.errors.ber: found "low"; expected a number',
    ),
    "bit error rate not a number": (
        ("ber: 1e-6}", "ber: .nan}"),
        "8: links.hop.data.errors.ber: found nan; expected a finite number",
    ),
    "negative bit error rate": (("ber: 1e-6}", "ber: -1e-6}"), "8: links.hop.data.errors.ber", "at least 0"),
    "unknown error model": (
        ("model: independent", "model: independend"),
        "8: links.hop.data.errors.model",
        "Did you mean independent?",
    ),
    "denser than a cluster": (
        ("model: independent, ber: 1e-6", "model: clustered, ber: 0.9"),
        "8: links.hop.data.errors: found ber 0.9 in clusters",
    ),
    "gilbert-elliott without transitions": (
        ("independent", "gilbert-elliott"),
        "8: links.hop.data.errors",
        "p_good_bad and p_bad_good above 0",
    ),
    "vector file not named": (
        ("model: independent", "model: vector-file"),
        "8: links.hop.data.errors",
        "expected file",
    ),
    "vector file not there": (
        ("model: independent", "model: vector-file, file: none.bits"),
        "8: links.hop.data.errors.file",
        'no file "none.bits"',
    ),
    "outage that ends before it starts": (
        ("ber: 1e-6}", "ber: 1e-6, outages: [{from: 5 s, to: 2 s}]}"),
        "8: links.hop.data.errors.outages[0]",
        "its end after its start",
    ),
    "packet 0": (
        ("ber: 1e-6}", "ber: 1e-6, drop_packets: [0]}"),
        "8: links.hop.data.errors.drop_packets[0]: found 0; expected at least 1",
    ),
    "unknown link": (("  hop:", "  hup:"), '6: links.hup: found "hup"', "Did you mean hop?"),
    "unknown direction": (("    data:", "    date:"), '7: links.hop.date: found "date"', "Did you mean data?"),
    "delay table out of order": (
        ("      errors:", "      delay_table: [{at: 2 s, delay: 1 ms}, {at: 1 s, delay: 2 ms}]\n      errors:"),
        "8: links.hop.data.delay_table: found steps out of order",
    ),
    "rate that is no multiple of 8": (
        ("      errors:", "      rate: 9601 bit/s\n      errors:"),
        '8: links.hop.data.rate: found "9601 bit/s"',
        "multiple of 8",
    ),
    "rate 0": (
        ("      errors:", "      rate: 0 bit/s\n      errors:"),
        '8: links.hop.data.rate: found "0 bit/s"',
        "above 0",
    ),
    "queue limit without unit": (
        ("      errors:", "      queue: {limit: 50}\n      errors:"),
        "8: links.hop.data.queue.limit: found 50",
        '"50 packets"',
    ),
    "queue limit 0": (
        ("      errors:", "      queue: {limit: 0 packets}\n      errors:"),
        "8: links.hop.data.queue.limit",
        "1 packet",
    ),
    "marking on drop-tail": (
        ("      errors:", "      queue: {ecn: true}\n      errors:"),
        "8: links.hop.data.queue.ecn",
        "expected discipline red or codel",
    ),
    "red the wrong way round": (
        ("      errors:", "      queue: {discipline: red, red_min: 60 kB, red_max: 30 kB}\n      errors:"),
        "8: links.hop.data.queue",
        "expected them to ascend",
    ),
    "red thresholds too far apart": (
        ("      errors:", "      queue: {discipline: red, limit: 2 MB, red_min: 2 kB, red_max: 1 MB}\n      errors:"),
        "8: links.hop.data.queue: found red_min 2000 B, red_max 1000000 B; expected a red_max of 2001 B to about 271",
        "correct them, or the limit",
    ),
    "red below a packet": (
        ("      errors:", "      queue: {discipline: red, limit: 2 packets}\n      errors:"),
        "8: links.hop.data.queue: found red_min 750 B, red_max 1500 B; expected a red_min of more than 1000 B",
    ),
    "red of a huge queue": (
        ("      errors:", "      queue: {discipline: red, limit: 100 MB}\n      errors:"),
        (
            "8: links.hop.data.queue: found red_min 25000000 B, red_max 50000000 B; "
            "expected a red_max of 25000001 B to about"
        ),
    ),
    "red probability that tc cannot state": (
        ("      errors:", "      queue: {discipline: red, limit: 200 kB, red_probability: 1.0e-9}\n      errors:"),
        "8: links.hop.data.queue.red_probability: found 1e-09 over 50000 B; expected 0, or more than 2.3e-05",
    ),
    "unknown topology": (("point_to_point", "point_to_pont"), "4: topology", "Did you mean point_to_point?"),
    "unknown parameter": (
        ("links:", "parameters: {datarate: 1 Mbit/s}\nlinks:"),
        "5: parameters.datarate",
        "Did you mean data_rate?",
    ),
    "parameter without unit": (
        ("links:", "parameters: {data_rate: 9600}\nlinks:"),
        "5: parameters.data_rate: found 9600 (no unit)",
        '"2 Mbit/s"',
    ),
    "parameter of 0": (
        ("links:", "parameters: {data_rate: 0 bit/s}\nlinks:"),
        '5: parameters.data_rate: found "0 bit/s"; expected at least 1 bit/s',
    ),
    "MTU too small": (
        ("links:", "parameters: {mtu: 20 B}\nlinks:"),
        "5: parameters.mtu: found an MTU of 20 B; expected 68 B",
    ),
    "unknown host": (("  h1: {preset", "  h3: {preset"), '10: hosts.h3: found "h3"; expected one of h1, h2'),
    "settings of a switch": (("  h1: {preset", "  sat: {preset"), '10: hosts.sat: found "sat"; expected one of h1, h2'),
    "unknown stack": (("h1: {preset", "h1: {stack: skps, preset"), '10: hosts.h1.stack: found "skps"'),
    "stack that left": (
        ("h1: {preset: fy97-reno", "h1: {stack: scps-ri"),
        "10: hosts.h1: found stack scps-ri, which left after version 0.3.0",
        "such as image",
    ),
    "unknown preset": (
        ("h1: {preset: fy97-reno", "h1: {preset: fy98-reno"),
        "10: hosts.h1.preset",
        "Did you mean fy97-reno?",
    ),
    "unknown congestion control": (
        ("h1: {preset: fy97-reno", "h1: {congestion: cubik"),
        '10: hosts.h1.congestion: found "cubik"',
        "Did you mean cubic?",
    ),
    "image of processes": (
        ("h1: {preset: fy97-reno", "h1: {stack: image, image: vendor/stack"),
        "10: hosts.h1.stack: found stack image",
        "Add containers: docker.",
    ),
    "no name of an image": (
        ("h1: {preset: fy97-reno", 'h1: {stack: image, image: "vendor stack"'),
        "10: hosts.h1.image",
    ),
    "bulk transfer of an image": (
        ("hosts:\n  h1: {preset: fy97-reno", "containers: docker\nhosts:\n  h1: {stack: image, image: vendor/stack"),
        "14: workloads[0].kind: found bulk with the stack image on h1",
        "Use kind endpoint.",
    ),
    "endpoint of processes": (
        ("kind: bulk", "kind: endpoint"),
        "13: workloads[0].kind: found endpoint",
        "Add containers: docker",
    ),
    "endpoint of scps": (
        (
            "hosts:\n  h1: {preset: fy97-reno}\n  h2: {preset: fy97-reno}\nworkloads:\n  - {kind: bulk",
            "containers: docker\nhosts:\n  h1: {stack: scps}\nworkloads:\n  - {kind: endpoint",
        ),
        "13: workloads[0].kind: found endpoint with the stack scps on h1",
        "Use kind bulk.",
    ),
    "flag as text": (
        ("h1: {preset", 'h1: {sack: "no", preset'),
        '10: hosts.h1.sack: found "no"; expected true or false',
    ),
    "window of 0 segments": (
        ("h1: {preset", "h1: {initial_window: 0, preset"),
        "10: hosts.h1.initial_window: found 0; expected at least 1",
    ),
    "unknown workload kind": (
        ("kind: bulk", "kind: bilk"),
        '13: workloads[0].kind: found "bilk"',
        "Did you mean bulk?",
    ),
    "workload without kind": (("{kind: bulk, ", "{"), "13: workloads[0]: found no kind"),
    "no workloads": (("workloads:\n  - " + BULK, "workloads: []"), "12: workloads", "neither workloads nor a script"),
    "unknown sender": (("from: h1", "from: h3"), '13: workloads[0].from: found "h3"; expected one of h1, h2'),
    "unknown receiver": (("to: h2", "to: r2"), '13: workloads[0].to: found "r2"; expected one of h1, h2'),
    "both ends the same": (("to: h2", "to: h1"), '13: workloads[0].to: found "h1" at both ends'),
    "segment larger than the MTU": (
        ("size: 100 kB", "size: 100 kB, segment: 1460 B"),
        "13: workloads[0].segment",
        "at most the 1448 B",
    ),
    "segment smaller than the kernel's least": (
        ("size: 100 kB", "size: 100 kB, segment: 50 B"),
        "13: workloads[0].segment",
        "parameter mtu to 102 B",
    ),
    "port out of range": (
        ("size: 100 kB", "size: 100 kB, port: 70000"),
        "13: workloads[0].port: found 70000; expected at most 65535",
    ),
    "port twice": (
        (BULK, BULK + "\n  - " + BULK.replace("transfer", "second")),
        "14: workloads[1].port: found port 5001 of h2",
    ),
    "name twice": (
        (BULK, BULK + "\n  - " + BULK.replace("size", "port: 6001, size")),
        '14: workloads[1]: found the name "transfer"',
    ),
    "name of the lab's own record": (
        ("name: transfer", "name: accounting"),
        '13: workloads[0]: found the name "accounting"',
    ),
    "service on no node": (
        ("workloads:", "services: [{kind: command, name: web, node: h9, command: sleep 1}]\nworkloads:"),
        '12: services[0].node: found "h9"; expected',
    ),
    "service with a workload's name": (
        ("workloads:", "services: [{kind: command, name: transfer, node: h2, command: sleep 1}]\nworkloads:"),
        '12: services[0].name: found the name "transfer", which a workload or another service has',
    ),
    "two services behind one port": (
        (
            "workloads:",
            TWO_SERVICES + "workloads:",
        ),
        "14: services[1].ready_port: found 80, which another service on h2 waits for",
    ),
    "a service with two words on when it is ready": (
        (
            "workloads:",
            (
                "services: [{kind: command, name: web, node: h2, command: sleep 1, ready_port: 80, ready_command: "
                '"true"}]\nworkloads:'
            ),
        ),
        "12: services[0].command: found ready_port and ready_command; expected one of them",
    ),
    "unknown kind of service": (
        ("workloads:", "services: [{kind: daemon, name: web, node: h2, command: sleep 1}]\nworkloads:"),
        '12: services[0].kind: found "daemon"; expected',
    ),
    "name of the script's record": (("name: transfer", "name: script"), '13: workloads[0]: found the name "script"'),
    "name that is no file name": (("name: transfer", "name: ../transfer"), "13: workloads[0].name", "expected a name"),
    "iperf3 without an end": (
        (BULK, "{kind: iperf3, name: flow, from: h1, to: h2}"),
        "13: workloads[0]: found neither of duration and size",
    ),
    "iperf3 with part of a second": (
        (BULK, "{kind: iperf3, name: flow, from: h1, to: h2, duration: 1500 ms}"),
        "13: workloads[0].duration",
        "whole seconds",
    ),
    "congestion without a rate": (
        (BULK, "{kind: congestion, name: noise, from: h1, to: h2}"),
        "13: workloads[0]: found neither of level and max_rate",
    ),
    "congestion level below 100": (
        (BULK, "{kind: congestion, name: noise, from: h1, to: h2, level: 50}"),
        "13: workloads[0].level",
        "at least 100",
    ),
    "congestion packets over the MTU": (
        (BULK, "{kind: congestion, name: noise, from: h1, to: h2, level: 150, packet: 2 kB}"),
        "13: workloads[0].packet",
        "the MTU of 1500 B",
    ),
    "unknown probe kind": (
        ("kind: capture", "kind: captur"),
        '15: probes[0].kind: found "captur"',
        "Did you mean capture?",
    ),
    "unknown node": (("node: h2", "node: h4"), '15: probes[0].node: found "h4"'),
    "key of another kind of probe": (
        ("node: h2", "node: h2, interval: 1 s"),
        '15: probes[0].interval: found the unknown key "interval"',
        "snaplen",
    ),
    "probe of an unknown direction": (
        ("{kind: capture, node: h2}", "{kind: queue, link: hop, direction: up}"),
        '15: probes[0].direction: found "up"; expected one of data, ack',
    ),
    "capture on a link that is elsewhere": (
        ("node: h2", "node: h2, link: lan"),
        '15: probes[0].link: found "lan"; expected one of hop',
    ),
    "sweep path that does not exist": (
        ("errors.ber]", "errors.bre]"),
        "17: sweep.ber=",
        "links.hop.data.errors.bre: found the unknown key",
        "Did you mean ber?",
    ),
    "sweep path through a plain value": (
        ("links.hop.*.errors.ber]", "title.x.y]"),
        '17: sweep.ber: title.x.y: found "x" after title, which is a plain value',
    ),
    "sweep of an unknown link": (("links.hop.*", "links.hip.data"), "17: sweep.ber=", 'links.hip: found "hip"'),
    "sweep of an unknown workload": (
        ("links.hop.*.errors.ber]", "workloads.transfr.size]"),
        "17: sweep.ber",
        "Did you mean transfer",
    ),
    "sweep star in the wrong place": (
        ("links.hop.*.errors.ber]", "limits.*]"),
        "17: sweep.ber",
        'found "*" after limits',
    ),
    "swept value that cannot be": (
        ("values: [0, 1e-6, 1e-5]", "values: [0, 2]"),
        "17: sweep.ber=2: links.hop.data.errors.ber: found 2; expected at most 1",
    ),
    "swept value twice": (("values: [0, 1e-6, 1e-5]", "values: [0, 0]"), "17: sweep.ber: found a value twice"),
    "no values": (("values: [0, 1e-6, 1e-5]", "values: []"), "17: sweep.ber.values", "at least one"),
    "axis without values": (
        ("{set: [links.hop.*.errors.ber], values: [0, 1e-6, 1e-5]}", "{set: [seed]}"),
        "17: sweep.ber.values: found nothing",
    ),
    "cells of one name": (
        (
            "ber: {set: [links.hop.*.errors.ber], values: [0, 1e-6, 1e-5]}",
            "size: {set: [workloads.transfer.size], values: [1 kB, 1kB]}",
        ),
        "16: sweep: found two cells",
    ),
    "skip of an unknown axis": (
        ("repeats: 2", "skip: [{beer: 0}]\nrepeats: 2"),
        "18: skip[0].beer",
        "Did you mean ber?",
    ),
    "everything skipped": (("repeats: 2", "skip: [{}]\nrepeats: 2"), "skip: found every combination skipped"),
    "repeats 0": (("repeats: 2", "repeats: 0"), "18: repeats: found 0; expected at least 1"),
    "repeats as text": (("repeats: 2", "repeats: two"), '18: repeats: found "two"; expected a whole number'),
    "negative seed": (("seed: 7", "seed: -7"), "19: seed: found -7; expected at least 0"),
    "limit of 0": (("virtual: 4000 s", "virtual: 0 s"), '20: limits.virtual: found "0 s"; expected a duration above 0'),
    "too little memory": (
        ("virtual: 4000 s", "memory: 1 MB"),
        '20: limits.memory: found "1 MB"; expected at least 128 MiB',
    ),
    "check without a bound": (
        ("repeats: 2", "checks: [{metric: goodput_bps}]\nrepeats: 2"),
        "18: checks[0]: found no bound",
    ),
    "bound without unit": (
        ("repeats: 2", 'checks: [{metric: x, at_least: "5"}]\nrepeats: 2'),
        '18: checks[0]: found the bound "5"',
    ),
    "containers of another kind": (
        ("repeats: 2", "containers: podman\nrepeats: 2"),
        '18: containers: found "podman"; expected one of process, docker',
    ),
    "check of an unknown workload": (
        ("repeats: 2", "checks: [{metric: x, of: y, at_least: 1}]\nrepeats: 2"),
        '18: checks[0].of: found "y"',
    ),
    "list for a mapping": (
        ("limits: {virtual: 4000 s}", "limits: [1]"),
        "20: limits: found a list; expected keys with values",
    ),
    "text for a mapping": (
        ("limits: {virtual: 4000 s}", "limits: soon"),
        '20: limits: found "soon"; expected keys with values',
    ),
    "nothing for a mapping": (
        ("limits: {virtual: 4000 s}", "limits:"),
        "20: limits: found nothing; expected keys with values",
    ),
    "key twice": (("seed: 7", "seed: 7\nseed: 8"), "20: seed: found the key a second time"),
    "nested key twice": (
        ("ber: 1e-6}", "ber: 1e-6, ber: 1e-5}"),
        "8: links.hop.data.errors.ber: found the key a second time",
    ),
    "key that is no text": (("seed: 7", "7: seed"), '19: top level: found the key "7"'),
    "key that YAML reads as a flag": (("seed: 7", "on: 7"), '19: top level: found the key "on"'),
    "alias": (("title: Small", "title: &t Small\nsource: *t"), "4: found an alias"),
    "merge": (("limits: {virtual", "limits: {<<: {wall: 1 s}, virtual"), '20: limits: found the key "<<"'),
    "not YAML": (
        ("limits: {virtual: 4000 s}", "limits: {virtual: 4000 s"),
        "found '<stream end>'",
        "expected YAML: ',' or '}'. Correct the line.",
    ),
    "list without its end": (("title: Small", "title: [Small"), "that begins in line 3; expected YAML: ',' or ']'"),
    "tabulator": (("title: Small", "title:\tSmall\n\tseed: 1"), "found character '\\t' that cannot start any token"),
    "tag that builds objects": (("title: Small", "title: !!python/object:os.system x"), "3: found", "expected YAML"),
}


@pytest.mark.parametrize("name", CASES)
def test_wrong_scenario_is_told_at_its_line(name, load):
    (old, new), where, *words = CASES[name]
    with pytest.raises(ScenarioError) as caught:
        load(spoil(old, new))
    said = str(caught.value)
    lines = said.splitlines()
    assert any(where in line and all(word in line for word in words) for line in lines), said
    for line in lines:
        assert re.match(r"^.*small\.yaml.*: found .*; expected .*[.?]$", line), line


def test_all_errors_are_told_at_once(load):
    text = (
        spoil("size: 100 kB", "size: 100")
        .replace("ber: 1e-6}", "ber: 7}")
        .replace("repeats: 2", "repeats: none")
        .replace("node: h2", "noode: h2")
    )
    with pytest.raises(ScenarioError) as caught:
        load(text)
    assert len(str(caught.value).splitlines()) == 5  # node is missing and noode unknown


def test_same_error_at_many_points_is_told_once(load):
    text = spoil("repeats: 2", "").replace(
        "sweep:\n", "sweep:\n  size: {set: [workloads.transfer.size], values: [1 kB, 2 kB, 0 B]}\n"
    )
    with pytest.raises(ScenarioError) as caught:
        load(text)
    assert str(caught.value).count("\n") == 0


def test_empty_file(load):
    with pytest.raises(ScenarioError, match="found no mapping"):
        load("")


def test_file_that_is_not_text(load):
    with pytest.raises(ScenarioError, match="not UTF-8"):
        load(b"\xff\xfe\x00")


def test_deep_nesting(load):
    with pytest.raises(ScenarioError, match="deeper nesting"):
        load("a: " + "[" * 5000 + "]" * 5000)


def test_file_that_is_not_there():
    with pytest.raises(ScenarioError, match=r"found no such file.*Did you mean fy97/fig04\?"):
        scenario.load("fy97/fiig04")


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("mine", 'scenario "mine": found a folder; expected one of mine/small.yaml, '),
        ("mine/smal.yaml", "found no such file; expected one of mine/small.yaml, "),
        ("mine/small", "found no such file; expected the whole name of one. Did you mean mine/small.yaml?"),
        ("mine/smal.yaml", "Did you mean mine/small.yaml?"),
        ("/dev/null", 'scenario "/dev/null": found no ordinary file; '),
    ],
)
def test_a_path_that_is_no_file_is_answered_with_the_files_of_its_folder(name, says, tmp_path, monkeypatch):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "small.yaml").write_text(SMALL)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ScenarioError) as caught:
        scenario.load(name)
    assert says in str(caught.value)


def test_a_file_of_another_kind_is_told_once(load):
    with pytest.raises(ScenarioError) as caught:
        load("kind: campaign\nversion: 1\ntitle: Two\nruns: [{scenario: fy97/fig04}]\n")
    assert str(caught.value).endswith(
        """:1: kind: found "campaign"; expected 'scenario'. Name a file of this kind, or correct the word."""
    )
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("override", "words"),
    [
        ("workloads.transfer.size=100", "--set workloads.transfer.size=100: workloads[0].size: found 100 (no unit)"),
        ("workloads.transfer.size", 'found "workloads.transfer.size"; expected KEY=VALUE'),
        ("workloads.transfr.size=1 kB", "Did you mean transfer?"),
        ("repeats=[", "expected a value as in a scenario file"),
        ("hosts.h1.congestion=cubik", "--set hosts.h1.congestion=cubik: hosts.h1.congestion"),
        ("hosts.h9.congestion=cubic", "--set hosts.h9.congestion=cubic: hosts.h9"),
        ("nothing.at.all=1", 'found the unknown key "nothing"'),
        ("links..data=1", "single dots"),
        ("sweep.beer=[0]", 'found the axis "beer"; expected one of ber. Did you mean ber?'),
        ("sweep.ber=[2]", "--set sweep.ber=[2]: sweep.ber=2: links.hop.data.errors.ber: found 2; expected at most 1"),
        ("sweep.ber=[]", "found an empty list; expected at least one value"),
        ("sweep=7", "sweep: found 7; expected keys with values"),
    ],
)
def test_wrong_override_is_told_at_the_option(override, words, load):
    with pytest.raises(ScenarioError) as caught:
        load(SMALL, override)
    assert words in str(caught.value)
    assert str(caught.value).startswith("--set ")


@pytest.mark.parametrize(
    ("variant", "words"),
    [
        (
            "{set: {workloads.transfer.size: 7}}",
            ":22: variants.little.set.workloads.transfer.size: workloads[0].size: found 7 (no unit)",
        ),
        ("{set: {workloads.x.size: 1 kB}}", ":22: variants.little.set.workloads.x.size: found"),
        ("{sweep: {beer: [0]}}", ":22: variants.little.sweep.beer: found the axis"),
        ("{sweep: {ber: [3]}}", "sweep.ber=3: links.hop.data.errors.ber: found 3"),
        ("{repeats: 0}", ":22: variants.little.repeats: found 0"),
    ],
)
def test_wrong_variant_is_told_at_its_line(variant, words, write):
    path = write(f"{SMALL}variants:\n  little: {variant}\n")
    with pytest.raises(ScenarioError) as caught:
        scenario.cells(scenario.load(f"{path}:little"))
    assert words in str(caught.value)


def test_unknown_variant(write):
    with pytest.raises(ScenarioError, match='found no "demo"; expected none here'):
        scenario.load(f"{write(SMALL)}:demo")


SERIAL = """kind: scenario
version: 1
title: Serial
topology: sgls
links:
  serial:
    data: {errors: {model: independent, ber: 1e-5}}
workloads:
  - {kind: ftp, name: transfer, from: satellite, to: ground, size: 100 kB}
"""
SERIAL_CASES = {
    "queue": (
        ("{errors: {model: independent, ber: 1e-5}}", "{queue: {limit: 10 kB}}"),
        "7: links.serial.data.queue",
        "rate, delay and errors only",
    ),
    "framing": (
        ("{errors: {model: independent, ber: 1e-5}}", "{overhead: 4 B}"),
        "7: links.serial.data.overhead",
        "rate, delay and errors only",
    ),
    "drop list": (("ber: 1e-5", "drop_packets: [3]"), "7: links.serial.data.errors.drop_packets", "bytes only"),
    "packet loss": (
        ("model: independent, ber: 1e-5", "model: packet-loss, loss: 0.01"),
        "7: links.serial.data.errors.model",
        "bytes only",
    ),
    "verdicts": (
        ("workloads:", "probes:\n  - {kind: verdicts, link: serial, direction: data}\nworkloads:"),
        "9: probes[0].link",
    ),
    "its own record's name": (("name: transfer", "name: serial"), "9: workloads[0]", "another record has"),
    "too large for the time": (("size: 100 kB", "size: 1 GB"), "9: workloads[0].size", "fit in patience"),
    "stack": (
        ("workloads:", "hosts:\n  ground: {stack: scps, bets: true}\nworkloads:"),
        "11: workloads[0].kind",
        "which has bets",
    ),
    "a record larger than its file": (
        ("kind: ftp, name: transfer", "kind: fp, command: delete, record: 1 MB, name: transfer"),
        "workloads[0]",
        "fits into it",
    ),
    "a stop in an edit": (
        ("kind: ftp, name: transfer", "kind: fp, command: insert, stop: abort, name: transfer"),
        "with get or put",
    ),
    "a stop behind the end": (
        ("kind: ftp, name: transfer", "kind: fp, stop: abort, stop_at: 100 kB, name: transfer"),
        "less than the file",
    ),
    "parts of seconds": (
        ("kind: ftp, name: transfer", "kind: fp, data_timeout: 1500 ms, name: transfer"),
        "whole seconds",
    ),
    "best effort over the kernel": (
        ("kind: ftp, name: transfer", "kind: fp, bets: true, name: transfer"),
        "9: workloads[0].bets",
        "scps at both ends",
    ),
    "segments of the file protocol": (
        ("workloads:\n  - {kind: ftp", "hosts:\n  ground: {stack: scps}\nworkloads:\n  - {kind: fp, segment: 1461 B"),
        "11: workloads[0].segment",
        "at most the 1448 B",
    ),
    "two servers on a port": (
        ("size: 100 kB}", "size: 100 kB}\n  - {kind: ftp, name: second, from: satellite, to: ground, size: 1 kB}"),
        "10: workloads[1].port: found port 21 of satellite",
    ),
}


def test_the_serial_scenario_itself_is_right(load):
    load(SERIAL)


@pytest.mark.parametrize("case", SERIAL_CASES)
def test_serial_links_say_what_they_cannot_do(load, case):
    (old, new), *words = SERIAL_CASES[case]
    assert old in SERIAL
    with pytest.raises(ScenarioError) as error:
        load(SERIAL.replace(old, new))
    for word in words:
        assert word in str(error.value)
