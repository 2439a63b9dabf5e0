"""The images of nodes: one list of packages each, shared with the guest image and the playbooks."""

import re
from pathlib import Path

import pytest

from tools.build.guest import lines

ROOT = Path(__file__).parents[3]
IMAGES = ROOT / "images"
NODES = ("base", "tcp-host", "scps-host", "router", "gateway", "traffic", "monitor")
# The network around the nodes, which no container has: the machine's own, or the guest's.
AROUND = {"mininet", "openvswitch-switch"}


def packages(node: str) -> set[str]:
    """What an image adds to its parent."""
    file = IMAGES / node / "packages.txt"
    return set(lines(file)) if file.exists() else set()


def test_nodes_and_guest_have_the_same_packages():
    assert set().union(*map(packages, NODES)) == set(lines(IMAGES / "guest" / "packages.txt")) - AROUND


@pytest.mark.parametrize("node", NODES)
def test_every_image_says_what_it_is_and_is_no_root(node):
    text = (IMAGES / node / "Dockerfile").read_text()
    assert f'org.opencontainers.image.title="scpslab {node}"' in text
    assert "org.opencontainers.image.description=" in text
    users = re.findall(r"^USER (\S+)$", text, re.MULTILINE)
    assert users[-1:] in ([], ["1000"])
    assert node != "base" or {"HEALTHCHECK", "ENTRYPOINT", "STOPSIGNAL"} <= set(
        re.findall(r"^[A-Z]+", text, re.MULTILINE)
    )


def test_the_base_is_pinned_by_digest():
    assert re.search(
        r"^ARG ROOT=debian:trixie-slim@sha256:[0-9a-f]{64}$", (IMAGES / "base" / "Dockerfile").read_text(), re.MULTILINE
    )
