"""Runs inside a guest that plays the machine of engine `host`: makes one lab there, of /cell/plan.json, whose results
go to /cell/out.

/opt/scpslab has this file, `source` (the project's Python code) and `programs` (a lab program's folder). Standard
library only.
"""

import shutil
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, "/opt/scpslab/source")
from scpslab import plan as plans
from scpslab.engine.hostlab import HostLab, remove
from scpslab.lab import docker

PROGRAMS = Path("/var/lib/scpslab/programs")
CELL = Path("/cell")


def strict():
    """Makes the machine one that drops what comes by another interface than an answer would leave by, as some
    distributions do (RFC 3704).
    """
    for which in ("all", "default"):
        Path(f"/proc/sys/net/ipv4/conf/{which}/rp_filter").write_text("1\n")


def main():
    """Runs the lab to its end, and removes it."""
    strict()
    plan = plans.parse((CELL / "plan.json").read_bytes())
    (CELL / "out").mkdir(exist_ok=True)
    PROGRAMS.parent.mkdir()
    shutil.copytree("/opt/scpslab/programs", PROGRAMS)
    if plan.network.containers == "docker":
        logs = Path("/tmp/logs")
        logs.mkdir()
        docker.Daemon(logs).wait()
    lab = HostLab(plan, PROGRAMS, CELL)
    try:
        lab.start(stdin=subprocess.DEVNULL).wait()
    finally:
        remove(lab.id)


main()
