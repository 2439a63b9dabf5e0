"""Where a lab is: folders it owns, the name it goes by. The engine says so in the environment; in a guest, where a lab is alone, it need not."""

from __future__ import annotations

import os
from pathlib import Path

# Whether the machine is the lab's own, as a guest is: then its settings are the lab's to change.
IS_ALONE = "SCPSLAB_LAB" not in os.environ
# What the lab's containers are labelled with, and their names begin with.
LAB_ID = os.environ.get("SCPSLAB_LAB", "lab")
# The lab program, labtool and scps. Nodes see them under the same path, so it is in none of their private folders.
PROGRAMS = Path(os.environ.get("SCPSLAB_PROGRAMS", "/opt/scpslab"))
LABTOOL = str(PROGRAMS / "labtool")
# What comes in and goes out.
CELL = Path(os.environ.get("SCPSLAB_CELL", "/cell"))
# The folder of CELL that results go to; in a guest, all else of it is read-only.
OUT = "out"
# What is written while the lab runs, in memory; and where those who are not in the lab's mount namespace (dockerd) find it.
WORK = Path("/run/scpslab")
WORK_OUTSIDE = Path(os.environ.get("SCPSLAB_WORK", str(WORK)))
# The control group that everything of the lab is in; in a guest, all there is.
CGROUP = Path(os.environ.get("SCPSLAB_CGROUP", "/sys/fs/cgroup"))
