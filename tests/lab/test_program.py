"""Workload `program`: its columns, who judges it, and what ends it; programs and packages over the guest image."""

import gzip
import json

import pytest

from scpslab.measure.packets import UDP, read
from scpslab.runs import CellFiles
from tests.lab.ran import cases

SCENARIO = """
links: {hop: {forward: {rate: 2 Mbit/s, delay: 50 ms}, return: {rate: 2 Mbit/s, delay: 50 ms}}}
workloads:
  - {kind: program, name: web, from: h1, to: h2, size: 50 kB, server_at: from, ready_port: 4433, timeout: 60 s,
     server: "exec python3 -m http.server {port}", client: "exec curl -sS -o {out} http://{server}:{port}/file.bin"}
seed: 7
limits: {lab_time: 200 s, wall_time: 300 s}
"""
DATAGRAMS = (
    "python3 -c 'import socket; s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); "
    '[s.sendto(bytes(972), ("{to}", {port})) for _ in range(50)]\''
)
WRONG = {
    "exit-code": ({"client": "exit 7"}, "the client ended with exit code 7 in place of 0"),
    "nothing": ({"client": "true"}, "found no file in /tmp/web/file.bin; expected 50000 bytes as sent"),
    "another": ({"client": "echo x >{out}"}, "found 2 bytes that differ from those sent"),
    "link": ({"client": "ln -s /etc/hosts {out}"}, "found no file in"),
    "dies": (
        {"server": "sleep 5; exit 9", "ready_port": None, "client": "sleep 100"},
        "the server ended with exit code 9 before the client",
    ),
    "hangs": ({"client": "trap '' TERM; while :; do sleep 1; done"}, "the timeout ran out"),
    "floods": ({"client": "yes | head -c 9000000; exit 3"}, "the client ended with exit code 3"),
}


def set_to(**keys):
    """An override's value for keys of the workload."""
    return "{" + ", ".join(f"workloads.web.{name}: {json.dumps(value)}" for name, value in keys.items()) + "}"


@pytest.fixture(scope="module")
def wrong(run_once):
    """A cell for each program that does not do its work."""
    return run_once(
        SCENARIO, f"sweep={{{cases('how', {name: set_to(**keys) for name, (keys, _) in WRONG.items()})}}}", jobs=2
    ).by("how")


def test_a_file_that_arrived_whole_has_the_columns_of_a_transfer_and_the_same_bytes_twice(run):
    first, again = run(SCENARIO), run(SCENARIO)
    row, file = first.row, first.cell.completed.line("web", event="file")

    assert (row["bytes"], row["payload_match"]) == ("50000", "true")
    assert file["sha256"] == file["sent_sha256"]
    # Two round trips before the first byte.
    assert 0.2 < float(row["transfer_s"]) < float(row["user_s"]) < 1
    assert 50_000 < int(row["wire_bytes"]) < 55_000
    assert first.digests == again.digests


@pytest.mark.parametrize("name", WRONG)
def test_what_did_not_arrive_is_incomplete_with_its_reason(wrong, name):
    assert wrong[name].status == "incomplete"
    assert WRONG[name][1] in wrong[name].reason


def test_what_programs_print_is_cut_and_says_so(wrong):
    assert wrong["floods"].log("web-h2").startswith("(")


def test_files_are_kept_and_links_are_not(run):
    client = "curl -sS -o {out} http://{server}:{port}/file.bin; echo seen >a.qlog; ln -s /etc/shadow b.qlog"
    cell = run(
        SCENARIO, f"workloads.web.client={json.dumps(client)}", "workloads.web.keep=[a.qlog, b.qlog, none]"
    ).cell.completed

    assert [line["file"] for line in cell.lines("web", event="kept")] == ["a.qlog"]
    assert gzip.decompress((cell.folder / "logs" / "web-h2-a.qlog.gz").read_bytes()) == b"seen\n"


def test_datagrams_of_the_sender_leave_at_the_pace_and_count_as_its_own(run):
    keys = {"server_at": "to", "server": "sleep 1000", "ready_port": None, "pace": "1 Mbit/s"}
    client = f"cp {{file}} x; {DATAGRAMS}; exit 5"
    changes = keys | {"client": client, "expect": 0}
    ran = run(SCENARIO, *(f"workloads.web.{name}={json.dumps(value)}" for name, value in changes.items()))
    (forward,) = (one for one in read(CellFiles(ran.cell.folder).packets) if one.direction == "forward")
    sent_ns = forward.offered_ns[
        [flow.protocol == UDP and flow.owner == "web" for flow in map(forward.flows.__getitem__, forward.flow)]
    ]

    # Packets of 1,000 bytes, each after the time of the one before.
    assert len(sent_ns) == 50
    assert (sent_ns[-1] - sent_ns[0]) / 1e9 == pytest.approx(49 * 8000 / 1e6, rel=0.02)


def test_two_programs_of_one_host_are_measured_apart_beside_a_bulk_transfer(run):
    web = "kind: program, from: h1, to: h2, size: 50 kB, server_at: from, timeout: 60 s"
    client = "exec curl -sS -o {out} http://{server}:{port}/file.bin"
    server = "exec python3 -m http.server {port}"
    one = f'{{{web}, name: one, port: 81, ready_port: 81, server: "{server}", client: "{client}"}}'
    two = f'{{{web}, name: two, port: 82, ready_port: 82, server: "{server}", client: "{client}"}}'
    row = run(SCENARIO, f"workloads=[{one}, {two}, {{kind: bulk, name: load, from: h1, to: h2, size: 50 kB}}]").row

    for name in ("one", "two"):
        assert 50_000 < int(row[f"{name}_wire_bytes"]) < 55_000


def test_nodes_find_the_commands_and_modules_of_the_folder_beside_the_scenario(run, tmp_path):
    folder = tmp_path / "drivers"
    folder.mkdir()
    (folder / "fetch").write_text("#!/usr/bin/python3\nimport words, sys\nprint(words.SAID)\n")
    (folder / "fetch").chmod(0o755)
    (folder / "words.py").write_text("SAID = 'from the folder'\n")
    client = "fetch; exec curl -sS -o {out} http://{server}:{port}/file.bin"
    cell = run(SCENARIO, f"workloads.web.client={json.dumps(client)}", "programs=drivers").cell.completed

    assert cell.log("web-h2") == "from the folder\n"
