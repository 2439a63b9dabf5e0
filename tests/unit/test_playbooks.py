"""The playbooks: one variable says where the project is on a machine, and what takes the lab away needs no network."""

import re
from pathlib import Path

PLAYBOOKS = Path(__file__).parents[2] / "playbooks"
# The controller's folder: the role scps compares a machine with it, the fleet's results come there.
OF_THE_CONTROLLER = {"roles/scps/defaults/main.yml", "roles/scps/tasks/main.yml", "fleet.yml"}


def files() -> dict[str, str]:
    return {
        str(file.relative_to(PLAYBOOKS)): file.read_text()
        for file in PLAYBOOKS.rglob("*.yml")
        if not {"inventory"} & set(file.parts)
    }


def test_every_role_and_playbook_asks_one_variable_where_the_project_is():
    found = {name: set(re.findall(r"\b(\w+_project)\b", text)) - {"scps_project"} for name, text in files().items()}
    assert {name: names for name, names in found.items() if names} == {}
    assert {name for name, text in files().items() if "playbook_dir | dirname" in text} == OF_THE_CONTROLLER
    assert all("- role: scps\n" in files()[f"{name}.yml"] for name in ("site", "fleet", "reset", "remove"))


def test_what_is_copied_on_the_machine_is_a_file():
    """Ansible's copy refuses /dev/null, which was the source of "there was none" on every new machine."""
    assert [name for name, text in files().items() if "/dev/null" in text] == []


def test_reset_and_remove_need_no_network():
    # ./scpslab brings the Python environment up to date.
    assert [name for name in ("reset.yml", "remove.yml") if "cmd: ./scpslab" in files()[name]] == []


def test_what_site_replaces_is_what_remove_gives_back():
    kept = {found for text in files().values() for found in re.findall(r"scps_kept: (\S+)", text)}
    assert kept == {"/etc/motd", "/etc/docker/daemon.json"}
    assert f"remove_files: [{', '.join(sorted(kept, reverse=True))}]" in files()["remove.yml"]
    assert {"services", "docker-group"} <= set(
        re.findall(r"/var/lib/scpslab-before/([a-z-]+)\n", "".join(files().values()))
    )
