"""Everything that can be wrong with a scenario is one line: where, what was found, what was expected, what to do."""

import re
from pathlib import Path

import pytest
import yaml

from scpslab import scenario
from scpslab.core.errors import ScenarioError

SMALL = (Path(__file__).parents[2] / "data" / "small-scenario.yaml").read_text()
SERIAL = """kind: scenario
version: 1
title: Serial
topology: sgls
links: {serial: {data: {errors: {model: independent, ber: 1.0e-5}}}}
workloads:
  - {kind: ftp, name: transfer, from: satellite, to: ground, size: 100 kB}
"""
BULK = {"kind": "bulk", "name": "transfer", "from": "h1", "to": "h2", "size": "100 kB"}
FTP = {"kind": "ftp", "name": "second", "from": "satellite", "to": "ground", "size": "1 kB"}
FLOW = {"name": "flow", "from": "h1", "to": "h2"}
HOP = "links.hop.data"
# A value that takes its key away.
GONE = object()


def steps(path: str) -> list[str | int]:
    """The keys and numbers of `workloads[0].size`."""
    return [int(step) if step.isdigit() else step for step in re.findall(r"[^.\[\]]+", path)]


def spoilt(text: str, changes: dict[str, object]) -> str:
    """The scenario with these values at these places, each key in a line of its own."""
    data = yaml.safe_load(text)
    for path, value in changes.items():
        here = data
        *way, last = steps(path)
        for step in way:
            here = here[step] if isinstance(step, int) else here.setdefault(step, {})
        if value is GONE:
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


def services(*said):
    return [{"kind": "command", "name": name, "node": node, "command": "a"} | more for name, node, more in said]


# Where the complaint is, what is changed (a table of places and values, or the value there), and words of the complaint.
CASES = [
    ("titel", {"title": GONE, "titel": "Small"}, "found the unknown key", "Did you mean title?"),
    ("title", GONE, "found nothing; expected this key"),
    ("kind", "topology", 'found "topology"; expected'),
    ("sweep.ber.set", {"sweep.ber.values": GONE, "sweep.ber.cases": {"a": {"seed": 1}}}, "with keys of another form"),
    ("version", 2, "found 2; expected at most 1, what this scpslab knows"),
    ("version", "1", 'found "1"; expected 1'),
    ("title", "", "at least one"),
    ("workloads[0].size", 100000, "found 100000 (no unit)", 'such as "1400 B"'),
    ("workloads[0].size", "100", 'found "100" (no unit)', 'such as "1400 B"'),
    ("workloads[0].size", "100 kb", 'unit "kb"', "expected one of B, kB"),
    ("workloads[0].size", "0 B", 'found "0 B"; expected a size above 0'),
    ("workloads[0].size", "-5 B", "(negative)"),
    ("workloads[0].size", "0.5 B", "whole number of B"),
    ("workloads[0].size", "1e999999999 B"),
    ("workloads[0].size", "1e30 B", "expected a size of at most"),
    ("workloads[0].size", "1000 GB", "at the slowest hop", "fit in patience"),
    ("probes", {"workloads[0]": BULK | {"size": "900 MB", "patience": "2 h", "segment": "100 B"}}, "captures of about"),
    (f"{HOP}.delay", "-1 ms", 'found "-1 ms" (negative)'),
    (f"{HOP}.delay", "10000 h", "found a delay of", "expected at most"),
    (f"{HOP}.errors.ber", 1.5, "found 1.5; expected at most 1"),
    (f"{HOP}.errors.ber", "low", 'found "low"; expected a number'),
    (f"{HOP}.errors.ber", float("nan"), "found nan; expected a finite number"),
    (f"{HOP}.errors.ber", -1e-6, "at least 0"),
    (f"{HOP}.errors.model", "independend", "Did you mean independent?"),
    (f"{HOP}.errors", {f"{HOP}.errors": {"model": "clustered", "ber": 0.9}}, "found ber 0.9 in clusters"),
    (f"{HOP}.errors", {f"{HOP}.errors.model": "gilbert-elliott"}, "p_good_bad and p_bad_good above 0"),
    (f"{HOP}.errors", {f"{HOP}.errors.model": "vector-file"}, "expected file"),
    (f"{HOP}.errors.file", {f"{HOP}.errors": {"model": "vector-file", "file": "none.bits"}}, 'no file "none.bits"'),
    (f"{HOP}.errors.outages[0]", {f"{HOP}.errors.outages": [{"from": "5 s", "to": "2 s"}]}, "its end after its start"),
    (f"{HOP}.errors.drop_packets[0]", {f"{HOP}.errors.drop_packets": [0]}, "found 0; expected at least 1"),
    ("links.hup", {"links.hup": {}}, 'found "hup"', "Did you mean hop?"),
    ("links.hop.date", {"links.hop.date": {}}, 'found "date"', "Did you mean data?"),
    (f"{HOP}.delay_table", [{"at": f"{at} s", "delay": "1 ms"} for at in (2, 1)], "found steps out of order"),
    (f"{HOP}.rate", "9601 bit/s", 'found "9601 bit/s"', "multiple of 8"),
    (f"{HOP}.rate", 2000000, "found 2000000 (no unit)", 'such as "2 Mbit/s"'),
    (f"{HOP}.rate", "2 Mbits", 'unit "Mbits"', "expected one of bit/s"),
    (f"{HOP}.rate", "0 bit/s", 'found "0 bit/s"', "above 0"),
    (f"{HOP}.queue.limit", 50, "found 50", '"50 packets"'),
    (f"{HOP}.queue.limit", "0 packets", "1 packet"),
    (f"{HOP}.queue.ecn", True, "expected discipline red or codel"),
    (f"{HOP}.queue", {f"{HOP}.queue": {"discipline": "red", "red_min": "60 kB", "red_max": "30 kB"}}, "to ascend"),
    (
        f"{HOP}.queue",
        {f"{HOP}.queue": {"discipline": "red", "limit": "2 MB", "red_min": "2 kB", "red_max": "1 MB"}},
        "found red_min 2000 B, red_max 1000000 B; expected a red_max of 2001 B to about 271",
        "correct them, or the limit",
    ),
    (
        f"{HOP}.queue",
        {f"{HOP}.queue": {"discipline": "red", "limit": "2 packets"}},
        "found red_min 750 B, red_max 1500 B; expected a red_min of more than 1000 B",
    ),
    (
        f"{HOP}.queue",
        {f"{HOP}.queue": {"discipline": "red", "limit": "100 MB"}},
        "found red_min 25000000 B, red_max 50000000 B; expected a red_max of 25000001 B to about",
    ),
    (
        f"{HOP}.queue.red_probability",
        {f"{HOP}.queue": {"discipline": "red", "limit": "200 kB", "red_probability": 1.0e-9}},
        "found 1e-09 over 50000 B; expected 0, or more than 2.3e-05",
    ),
    ("topology", "point_to_pont", "Did you mean point_to_point?"),
    ("parameters.datarate", "1 Mbit/s", "Did you mean data_rate?"),
    ("parameters.data_rate", 9600, "found 9600 (no unit)", '"2 Mbit/s"'),
    ("parameters.data_rate", "0 bit/s", 'found "0 bit/s"; expected at least 1 bit/s'),
    ("parameters.mtu", "20 B", "found an MTU of 20 B; expected 68 B"),
    ("hosts.h3", {"hosts.h3": {}}, 'found "h3"; expected one of h1, h2'),
    ("hosts.sat", {"hosts.sat": {}}, 'found "sat"; expected one of h1, h2'),
    ("hosts.h1.stack", "skps", 'found "skps"'),
    ("hosts.h1", {"hosts.h1": {"stack": "scps-ri"}}, "found stack scps-ri, which left after version 0.3.0", "as image"),
    ("hosts.h1.preset", "fy98-reno", "Did you mean fy97-reno?"),
    ("hosts.h1.congestion", {"hosts.h1": {"congestion": "cubik"}}, 'found "cubik"', "Did you mean cubic?"),
    (
        "hosts.h1.stack",
        {"hosts.h1": {"stack": "image", "image": "a/b"}},
        "found stack image",
        "Add containers: docker.",
    ),
    ("hosts.h1.image", {"hosts.h1": {"stack": "image", "image": "vendor stack"}}, "expected"),
    (
        "workloads[0].kind",
        {"containers": "docker", "hosts.h1": {"stack": "image", "image": "vendor/stack"}},
        "found bulk with the stack image on h1",
        "Use kind endpoint.",
    ),
    ("workloads[0].kind", "endpoint", "found endpoint", "Add containers: docker"),
    (
        "workloads[0].kind",
        {"containers": "docker", "hosts": {"h1": {"stack": "scps"}}, "workloads[0].kind": "endpoint"},
        "found endpoint with the stack scps on h1",
        "Use kind bulk.",
    ),
    ("hosts.h1.sack", "no", 'found "no"; expected true or false'),
    ("hosts.h1.initial_window", 0, "found 0; expected at least 1"),
    ("workloads[0].kind", "bilk", 'found "bilk"', "Did you mean bulk?"),
    ("workloads[0]", {"workloads[0].kind": GONE}, "found no kind"),
    ("workloads", [], "neither workloads nor a script"),
    ("workloads[0].from", "h3", 'found "h3"; expected one of h1, h2'),
    ("workloads[0].to", "r2", 'found "r2"; expected one of h1, h2'),
    ("workloads[0].to", "h1", 'found "h1" at both ends'),
    ("workloads[0].segment", "1460 B", "at most the 1448 B"),
    ("workloads[0].segment", "50 B", "parameter mtu to 102 B"),
    ("workloads[0].port", 70000, "found 70000; expected at most 65535"),
    ("workloads[1].port", {"workloads[1]": BULK | {"name": "second"}}, "found port 5001 of h2, where transfer listens"),
    ("workloads[1].name", {"workloads[1]": BULK | {"port": 6001}}, 'found the name "transfer"'),
    ("workloads[0].name", "accounting", 'found the name "accounting"'),
    ("workloads[0].name", "script", 'found the name "script"'),
    ("services[0].node", {"services": services(("web", "h9", {}))}, 'found "h9"; expected'),
    ("services[0].name", {"services": services(("transfer", "h2", {}))}, "which a workload or another service has"),
    (
        "services[1].ready_port",
        {"services": services(("a", "h2", {"ready_port": 80}), ("b", "h2", {"ready_port": 80}))},
        "found 80, which another service on h2 waits for",
    ),
    (
        "services[0].command",
        {"services": services(("web", "h2", {"ready_port": 80, "ready_command": "true"}))},
        "found ready_port and ready_command; expected one of them",
    ),
    ("services[0].kind", {"services": services(("web", "h2", {"kind": "daemon"}))}, 'found "daemon"; expected'),
    ("workloads[0].name", "../transfer", "expected a name"),
    ("workloads[0]", {"workloads[0]": FLOW | {"kind": "iperf3"}}, "found neither of duration and size"),
    ("workloads[0].duration", {"workloads[0]": FLOW | {"kind": "iperf3", "duration": "1500 ms"}}, "whole seconds"),
    ("workloads[0]", {"workloads[0]": FLOW | {"kind": "congestion"}}, "neither of level and max_rate"),
    ("workloads[0].level", {"workloads[0]": FLOW | {"kind": "congestion", "level": 50}}, "at least 100"),
    (
        "workloads[0].packet",
        {"workloads[0]": FLOW | {"kind": "congestion", "level": 150, "packet": "2 kB"}},
        "MTU of 1500 B",
    ),
    ("probes[0].kind", "captur", 'found "captur"', "Did you mean capture?"),
    ("probes[0].node", "h4", 'found "h4"'),
    ("probes[0].interval", "1 s", 'found the unknown key "interval"', "snaplen"),
    ("probes[0].direction", {"probes[0]": {"kind": "queue", "link": "hop", "direction": "up"}}, "one of data, ack"),
    ("probes[0].link", "lan", 'found "lan"; expected one of hop'),
    ("sweep.ber", {"sweep.ber.set": ["links.hop.*.errors.bre"]}, "errors.bre: found the unknown key", "mean ber?"),
    ("sweep.ber", {"sweep.ber.set": ["title.x.y"]}, 'found "x" after title, which is a plain value'),
    ("sweep.ber", {"sweep.ber.set": ["links.hip.data.errors.ber"]}, 'links.hip: found "hip"'),
    ("sweep.ber", {"sweep.ber.set": ["workloads.transfr.size"]}, "Did you mean transfer"),
    ("sweep.ber", {"sweep.ber.set": ["limits.*"]}, 'found "*" after limits'),
    ("sweep.ber", {"sweep.ber.values": [0, 2]}, "=2: links.hop.data.errors.ber: found 2; expected at most 1"),
    ("sweep.ber", {"sweep.ber.values": [0, 0]}, "found a value twice"),
    ("sweep.ber.values", [], "at least one"),
    ("sweep.ber.values", GONE, "found nothing"),
    (
        "sweep",
        {"sweep": {"size": {"set": ["workloads.transfer.size"], "values": ["1 kB", "1kB"]}}},
        "found two cells",
    ),
    ("skip[0].beer", {"skip": [{"beer": 0}]}, "Did you mean ber?"),
    ("skip", [{}], "found every combination skipped"),
    ("repeats", 0, "found 0; expected at least 1"),
    ("repeats", "two", 'found "two"; expected a whole number'),
    ("seed", -7, "found -7; expected at least 0"),
    ("limits.virtual", "0 s", 'found "0 s"; expected a duration above 0'),
    ("limits.memory", "1 MB", 'found "1 MB"; expected at least 128 MiB'),
    ("checks[0]", {"checks": [{"metric": "goodput_bps"}]}, "found no bound"),
    ("checks[0]", {"checks": [{"metric": "x", "at_least": "5"}]}, 'found the bound "5"'),
    ("containers", "podman", 'found "podman"; expected one of process, docker'),
    ("checks[0].of", {"checks": [{"metric": "x", "of": "y", "at_least": 1}]}, 'found "y"'),
    ("limits", [1], "found a list; expected keys with values"),
    ("limits", "soon", 'found "soon"; expected keys with values'),
    ("limits", None, "found nothing; expected keys with values"),
]
SERIAL_CASES = [
    ("links.serial.data.queue", {"links.serial.data.queue.limit": "10 kB"}, "rate, delay and errors only"),
    ("links.serial.data.overhead", "4 B", "rate, delay and errors only"),
    ("links.serial.data.errors.drop_packets", [3], "bytes only"),
    (
        "links.serial.data.errors.model",
        {"links.serial.data.errors": {"model": "packet-loss", "loss": 0.01}},
        "bytes only",
    ),
    ("probes[0].link", {"probes": [{"kind": "verdicts", "link": "serial", "direction": "data"}]}, "found"),
    ("workloads[0].name", "serial", "another record has"),
    ("workloads[0].size", "1 GB", "fit in patience"),
    ("workloads[0].kind", {"hosts.ground": {"stack": "scps", "bets": True}}, "which has bets"),
    (
        "workloads[0]",
        {"workloads[0]": FTP | {"kind": "fp", "command": "delete", "record": "1 MB"}},
        "fits into it",
    ),
    ("workloads[0]", {"workloads[0]": FTP | {"kind": "fp", "command": "insert", "stop": "abort"}}, "with get or put"),
    (
        "workloads[0]",
        {"workloads[0]": FTP | {"kind": "fp", "stop": "abort", "stop_at": "100 kB"}},
        "less than the file",
    ),
    ("workloads[0]", {"workloads[0]": FTP | {"kind": "fp", "data_timeout": "1500 ms"}}, "whole seconds"),
    ("workloads[0].bets", {"workloads[0]": FTP | {"kind": "fp", "bets": True}}, "scps at both ends"),
    (
        "workloads[0].segment",
        {"hosts.ground": {"stack": "scps"}, "workloads[0]": FTP | {"kind": "fp", "segment": "1461 B"}},
        "at most the 1448 B",
    ),
    ("workloads[1].port", {"workloads[1]": FTP}, "found port 21 of satellite"),
]
# What YAML itself forbids, or we do: text for text of the small scenario.
YAML_CASES = {
    "key twice": ("seed: 7", "seed: 7\nseed: 8", "20: seed: found the key a second time"),
    "nested key twice": ("ber: 1e-6}", "ber: 1e-6, ber: 1e-5}", "8: links.hop.data.errors.ber: found the key a second"),
    "key that is no text": ("seed: 7", "7: seed", '19: top level: found the key "7"'),
    "key that YAML reads as a flag": ("seed: 7", "on: 7", '19: top level: found the key "on"'),
    "alias": ("title: Small", "title: &t Small\nsource: *t", "4: found an alias"),
    "merge": ("limits: {virtual", "limits: {<<: {wall: 1 s}, virtual", '20: limits: found the key "<<"'),
    "not YAML": (
        "virtual: 4000 s}",
        "virtual: 4000 s",
        "begins in line 20; expected YAML: ',' or '}'. Correct the line.",
    ),
    "list without its end": ("title: Small", "title: [Small", "that begins in line 3; expected YAML: ',' or ']'"),
    "tabulator": ("title: Small", "title:\tSmall\n\tseed: 1", "found character '\\t' that cannot start any token"),
    "tag that builds objects": ("title: Small", "title: !!python/object:os.system x", "3: found"),
}


def complaints(load, text: str) -> str:
    with pytest.raises(ScenarioError) as caught:
        load(text)
    for line in str(caught.value).splitlines():
        assert re.match(r"^.*small\.yaml.*: found .*; expected .*[.?]$", line), line
    return str(caught.value)


@pytest.mark.parametrize(
    ("base", "where", "what", "words"),
    [
        pytest.param(base, where, what, words, id=f"{where}-{number}")
        for base, cases in ((SMALL, CASES), (SERIAL, SERIAL_CASES))
        for number, (where, what, *words) in enumerate(cases)
    ],
)
def test_wrong_scenario_is_told_at_its_line(base, where, what, words, load):
    text = spoilt(base, what if isinstance(what, dict) else {where: what})
    said = complaints(load, text)
    place = f"{line_of(text, where)}{where}"
    assert any(place in line and all(word in line for word in words) for line in said.splitlines()), (place, said)


@pytest.mark.parametrize("name", YAML_CASES)
def test_what_is_no_yaml_of_ours_is_told_at_its_line(name, load):
    old, new, words = YAML_CASES[name]
    assert words in complaints(load, spoil(old, new))


def spoil(old: str, new: str) -> str:
    assert old in SMALL
    return SMALL.replace(old, new)


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
        ("workloads.transfer.size.x=1", "plain value"),
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


def test_the_serial_scenario_itself_is_right(load):
    load(SERIAL)
