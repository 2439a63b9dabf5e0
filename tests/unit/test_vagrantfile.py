"""What `vagrant up`, `reload` and `rsync` copy into a machine: they remove nothing that was made inside, and replace
nothing that was changed there later.
"""

import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

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


def test_scripts_have_unix_line_ends_on_every_system():
    asked = subprocess.run(
        ["git", "check-attr", "eol", "--", "scpslab", "tools/packages", "playbooks/site.yml"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    assert [line.rsplit(": ", 1)[1] for line in asked.stdout.splitlines()] == ["lf"] * 3


@pytest.mark.skipif(shutil.which("rsync") is None, reason="rsync is not installed")
def test_what_was_made_and_changed_inside_stays(tmp_path):
    here, inside = tmp_path / "clone", tmp_path / "machine"
    for folder in (here, inside):
        (folder / "scenarios").mkdir(parents=True)
    (inside / "mine").mkdir()
    for name, in_clone_s, in_machine_s in (("changed.yaml", 100, 200), ("pulled.yaml", 300, 200)):
        for folder, time_s in ((here, in_clone_s), (inside, in_machine_s)):
            (folder / "scenarios" / name).write_text(folder.name)
            os.utime(folder / "scenarios" / name, (time_s, time_s))
    (here / "mine").mkdir()
    (here / "mine" / "own.yaml").write_text("clone")
    (inside / "mine" / "own.yaml").write_text("machine")
    (inside / "scenarios" / "own.yaml").write_text("machine")
    without = [f"--exclude={name}" for name in listed("left_out")]
    subprocess.run(["rsync", *listed("copying"), *without, f"{here}/", f"{inside}/"], check=True)
    found = {str(file.relative_to(inside)): file.read_text() for file in inside.rglob("*.yaml")}
    own = {"mine/own.yaml": "machine", "scenarios/own.yaml": "machine"}
    assert found == own | {"scenarios/changed.yaml": "machine", "scenarios/pulled.yaml": "clone"}
