"""docs/guest-programs.md has every program that a node of the guest finds. `SCPSLAB_GOLDEN=renew pytest` writes it."""

import os
import re
from itertools import groupby
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "guest-programs.md"
BLOCK = re.compile(r"(?<=^```text\n).*?(?=^```$)", re.MULTILINE | re.DOTALL)
LISTED = """
events:
  - {at: 0 s, node: h1, command: "find $(echo $PATH | tr : ' ') -mindepth 1 -maxdepth 1 -perm /111 2>/dev/null | grep -o '[^/]*$' | LC_ALL=C sort -u"}
"""


def test_the_page_has_every_program_of_the_image(run):
    (log,) = (run(LISTED).cell.completed.folder / "logs").glob("events-1-*.log")
    names = log.read_text().split()

    assert {"bash", "curl", "iperf3", "ovs-ofctl", "ping", "python3", "tc", "tcpdump"} <= {*names}
    text = "".join(f"{' '.join(ones)}\n" for _, ones in groupby(names, key=lambda name: name[0].lower()))
    if os.environ.get("SCPSLAB_GOLDEN") == "renew":
        PAGE.write_text(BLOCK.sub(lambda _: text, PAGE.read_text()))
    assert BLOCK.search(PAGE.read_text())[0] == text
