"""Labs on this machine's own kernel: starts a lab, knows what the lab owns, and removes exactly that.

Standard library only: runs with any Python.

A lab is a process tree in a control group, a network namespace and a mount namespace of its own: its interfaces,
bridges and mounts disappear with its processes. Three things remain to be removed, and each has the lab's id: its
control group, its containers, its folder. The id names the process that started the lab.
"""

from scpslab.engine.hostlab.owned import dead_labs, labs, remove
from scpslab.engine.hostlab.start import HostLab

__all__ = ["HostLab", "dead_labs", "labs", "remove"]
