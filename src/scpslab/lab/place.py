"""The place of a lab: its folders and its name.

The engine states them in the environment; in a guest, where a lab is alone, there are defaults.
"""

import os
from pathlib import Path

# Whether the machine belongs to the lab, as a guest does: the lab may then change its settings.
IS_ALONE = "SCPSLAB_LAB" not in os.environ
# What the two prompts print when they wait for a line; the guest's own shell also for the rest of a command, and
# Mininet's, which is typed there.
PROMPT = "scpslab> "
BASH_PROMPT = "lab# "
BASH_GOES_ON = "lab+ "
MININET_PROMPT = "mininet> "
# What the lab says on its console when a Mininet script has ended.
END_OF_SCRIPT = "*** the script has ended ***"
# The label of the lab's containers, and the beginning of their names.
LAB_ID = os.environ.get("SCPSLAB_LAB", "lab")
# The lab program, labtool and scps. Nodes see them under the same path, so the path is not in a node's private folders.
PROGRAMS = Path(os.environ.get("SCPSLAB_PROGRAMS", "/opt/scpslab"))
LABTOOL = str(PROGRAMS / "labtool")
# What programs in virtual time preload (images/guest/tools/virtual.c).
VIRTUAL = str(PROGRAMS / "virtual.so")
# The cell's input and output.
CELL = Path(os.environ.get("SCPSLAB_CELL", "/cell"))
# The folder of CELL for results; in a guest, everything else in CELL is read-only.
OUT = "out"
# The folder, in memory, for files that the lab writes while it runs; and its path for programs outside the lab's mount
# namespace (dockerd).
WORK = Path("/run/scpslab")
WORK_OUTSIDE = Path(os.environ.get("SCPSLAB_WORK", str(WORK)))
# The control group that holds everything of the lab; in a guest, the root group.
CGROUP = Path(os.environ.get("SCPSLAB_CGROUP", "/sys/fs/cgroup"))
