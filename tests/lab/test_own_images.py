"""Hosts that are somebody else's images: the one that images/CONTRACT.md prints, one that cannot do its role, and a peer of
Debian's packages.
"""

import json
import re
import subprocess
from pathlib import Path

import pytest

from scpslab.analysis.table import read_results, report, summarise
from scpslab.core.errors import CapabilityError
from scpslab.core.installation import version
from scpslab.engine import ENGINES
from scpslab.scenario import load
from scpslab.setup import ensure, silent
from tests.lab.guest_machine import HostInGuest
from tests.lab.ran import Lab, Ran, cases

CONTRACT = (Path(__file__).parents[2] / "images" / "CONTRACT.md").read_text()
IMAGE, CANNOT_SEND, SILENT = "scpslab-test/stack:1.0", "scpslab-test/receiver:1.0", "scpslab-test/silent:1.0"
QUIC = "scpslab-test/quic:1.0"


def block(language, number=0):
    """One of the page's blocks of a language."""
    return re.findall(rf"^```{language}\n(.*?)^```", CONTRACT, re.DOTALL | re.MULTILINE)[number]


def docker(*words):
    return subprocess.run(["docker", *words], capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def scenario_file(tmp_path_factory):
    """The page's scenario, after its image, and one that cannot send, have been built as the page says."""
    try:
        if docker("info").returncode:
            pytest.skip("no Docker Engine here to build an image with")
    except FileNotFoundError:
        pytest.skip("no Docker here to build an image with")
    ensure(silent, with_docker=True)
    if docker("image", "inspect", f"scpslab/base:{version()}").returncode:
        pytest.skip("the images of nodes come from the cache, and this Docker has none to build upon")
    folder = tmp_path_factory.mktemp("image")
    (folder / "Dockerfile").write_text(block("dockerfile"))
    for name, program in ((IMAGE, block("python")), (CANNOT_SEND, block("python").replace('role == "send"', "False"))):
        (folder / "endpoint").write_text(program)
        (folder / "endpoint").chmod(0o755)
        built = docker("build", "--tag", name, str(folder))
        assert built.returncode == 0, built.stderr
    path = folder / "ours.yaml"
    path.write_text(block("yaml").replace("vendor/stack:1.0", IMAGE))
    yield path
    docker("image", "rm", "--force", SILENT, CANNOT_SEND, IMAGE)


@pytest.fixture
def run_ours(run: Lab, scenario_file: Path):
    """Runs a transfer of 200 kB of the page's scenario."""

    def ran(*overrides: str, **options: str) -> Ran:
        return run(scenario_file, "sweep={}", "workloads.transfer.size=200 kB", *overrides, **options)

    return ran


def test_an_image_that_keeps_the_contract_is_a_host(run_ours):
    """Its bytes cross the links, are timed, and come out the same the second time."""
    first, again = run_ours(), run_ours()

    assert first.ended == (1, 0, 0)
    assert first.row["bytes"] == "200000"
    # 200 kB at 2 Mbit/s over a hop of half a second there and back: more than the line alone takes, and no more than
    # slow start explains.
    assert 200_000 * 8 / 2e6 < float(first.row["transfer_s"]) < 10
    assert first.cell.account()["delivered_bytes"] > 200_000
    for name in ("records/transfer.jsonl", "captures/ws2.pcap"):
        assert (first.cell.folder / name).read_bytes() == (again.cell.folder / name).read_bytes()


def test_on_a_machine_s_own_kernel_it_is_a_host_too(run_ours, monkeypatch):
    """In the machine's Docker; it may be late, for only bytes and that it works are looked at."""
    monkeypatch.setitem(ENGINES, HostInGuest.name, HostInGuest)
    row = run_ours("limits.lateness=10 s", engine=HostInGuest.name).row

    assert (row["reason"], row["status"], row["bytes"]) == ("", "completed", "200000")


@pytest.mark.usefixtures("scenario_file")
def test_two_images_understand_each_other_with_losses(run):
    """Ours at both ends, named as somebody names another implementation's."""
    ours = f"scpslab/scps-host:{version()}"
    rows = run("links/interop-images:test", f"hosts.h1.image={ours}", f"hosts.h2.image={ours}").rows
    arrived = ("completed", "200000")
    assert [(row["direction"], row["status"], row["bytes"]) for row in rows] == [
        ("there", *arrived),
        ("back", *arrived),
    ]
    assert all(int(row["hop_data_lost_corrupt_packets"]) + int(row["hop_ack_lost_corrupt_packets"]) > 0 for row in rows)


def test_an_image_that_cannot_is_unsupported(run_ours):
    """Neither incomplete nor failed: it says nothing about a protocol."""
    ran = run_ours(f"hosts.ws1.image={CANNOT_SEND}")

    assert ran.ended == (0, 0, 0)
    assert ran.row["status"] == "unsupported"
    assert "ws1's image cannot do role send" in ran.row["reason"]
    assert report(summarise(read_results(ran.folder))).csv.splitlines()[1].startswith("0,0,1,0")


def test_an_image_that_is_not_there_is_asked_for(run_ours):
    """Before anything runs."""
    with pytest.raises(CapabilityError, match=r"image vendor/none:1: found no such image"):
        run_ours("hosts.ws1.image=vendor/none:1")


def test_a_receiver_that_does_not_say_that_it_listens_is_not_waited_for(run_ours, tmp_path):
    """Idle for ever is a role that every image has; a minute of lab time is enough to see it."""
    folder = tmp_path / "image"
    folder.mkdir()
    (folder / "Dockerfile").write_text(f"FROM {IMAGE}\nCOPY endpoint /usr/local/bin/endpoint\n")
    (folder / "endpoint").write_text("#!/bin/sh\nexec sleep infinity\n")
    (folder / "endpoint").chmod(0o755)
    assert docker("build", "--tag", SILENT, str(folder)).returncode == 0
    ran = run_ours(f"hosts.ws2.image={SILENT}")

    assert ran.ended == (0, 1, 0)
    assert "ws2: found no line" in ran.row["reason"]


def test_a_peer_in_an_image_has_the_columns_of_the_same_peer_of_packages(run, scenario_file, tmp_path):
    """Its programs are the image's user's, in the image's environment; everything else of the scenario is the same."""
    (tmp_path / "Dockerfile").write_text(block("dockerfile", 1) + "ENV PACKED=here\n")
    if docker("build", "--tag", QUIC, str(tmp_path)).returncode:
        pytest.skip("Debian's packages are out of reach from a build of an image")
    image = f'{{stack: image, image: "{QUIC}"}}'
    ways = {"packages": "{}", "image": f"{{containers: docker, hosts.h1: {image}, hosts.h2: {image}}}"}
    client = load("peers/quic").model.workloads[0].client.removeprefix("exec ")
    words = json.dumps(f'echo "$PACKED $(id -u)"; exec {client}')
    # Without anything that is drawn: what is left of a difference is the programs'.
    ran = run(
        "peers/quic",
        f"sweep={{{cases('way', ways)}}}",
        "links.hop.*.errors={model: none}",
        f"workloads.transfer.client={words}",
        "workloads.transfer.size=200 kB",
    )
    docker("image", "rm", "--force", QUIC)
    rows = {row["way"]: row for row in ran.rows}
    own, theirs = (ran.by("way")[way].completed for way in ways)

    assert {name for name, value in rows["image"].items() if value} == {
        name for name, value in rows["packages"].items() if value
    }
    assert [(row["bytes"], row["payload_match"], row["lost_queue_packets"]) for row in rows.values()] == 2 * [
        ("200000", "true", "0")
    ]
    for name in ("transfer_s", "user_s", "wire_bytes"):
        assert float(rows["image"][name]) == pytest.approx(float(rows["packages"][name]), rel=0.01)
    assert own.log("transfer-h2").startswith(" 0\n")
    assert theirs.log("transfer-h2").startswith("here 1000\n")
