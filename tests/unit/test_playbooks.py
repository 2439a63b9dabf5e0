"""The playbooks: what replaces a file of the machine is known to what takes the lab away."""

import re
from pathlib import Path

PLAYBOOKS = Path(__file__).parents[2] / "playbooks"


def files() -> dict[str, str]:
    return {
        str(file.relative_to(PLAYBOOKS)): file.read_text()
        for file in PLAYBOOKS.rglob("*.yml")
        if not {"inventory"} & set(file.parts)
    }


def test_what_site_replaces_is_what_remove_gives_back():
    kept = {found for text in files().values() for found in re.findall(r"scps_kept: (\S+)", text)}
    assert kept == {"/etc/motd", "/etc/docker/daemon.json"}
    assert f"remove_files: [{', '.join(sorted(kept, reverse=True))}]" in files()["remove.yml"]
    assert {"services", "docker-group"} <= set(
        re.findall(r"/var/lib/scpslab-before/([a-z-]+)\n", "".join(files().values()))
    )
