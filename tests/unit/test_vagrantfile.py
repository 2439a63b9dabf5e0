"""What `vagrant up` copies into a machine removes nothing made inside, and replaces nothing changed later."""

import json
import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "Vagrantfile").read_text()


def listed(name: str) -> list[str]:
    found = re.search(rf"^ *{name} = (\[.*\])$", TEXT, re.MULTILINE)
    assert found, f"Vagrantfile: no list {name}"
    return json.loads(found[1])


def test_no_folder_is_copied_with_vagrants_own_choice_which_removes_what_the_machine_has():
    assert "--delete" not in listed("copying")
    assert "--update" in listed("copying")
    assert {"/mine/", "/runs/"} <= set(listed("left_out"))
    assert all("rsync__args: copying" in line for line in TEXT.splitlines() if 'type: "rsync"' in line)


def test_no_two_clones_ask_for_one_name():
    assert not re.search(r'\.name = "', TEXT)
