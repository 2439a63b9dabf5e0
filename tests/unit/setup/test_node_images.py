"""The images of nodes: one list of packages each, shared with the guest image and the playbooks."""

import re
from pathlib import Path

from tools.build.guest import lines

IMAGES = Path(__file__).parents[3] / "images"
NODES = ("base", "tcp-host", "scps-host", "router", "gateway", "traffic", "monitor")
# The network around the nodes, which no container has: the machine's own, or the guest's.
AROUND = {"mininet", "openvswitch-switch"}


def test_nodes_and_guest_have_the_same_packages():
    files = (IMAGES / node / "packages.txt" for node in NODES)
    packages = {package for file in files if file.exists() for package in lines(file)}
    assert packages == set(lines(IMAGES / "guest" / "packages.txt")) - AROUND


def test_no_image_runs_as_root_and_the_base_is_pinned_by_digest():
    texts = {node: (IMAGES / node / "Dockerfile").read_text() for node in NODES}
    users = {node: re.findall(r"^USER (\S+)$", text, re.MULTILINE)[-1:] for node, text in texts.items()}
    assert [node for node, user in users.items() if user not in ([], ["1000"])] == []
    assert re.search(r"^ARG ROOT=debian:trixie-slim@sha256:[0-9a-f]{64}$", texts["base"], re.MULTILINE)
