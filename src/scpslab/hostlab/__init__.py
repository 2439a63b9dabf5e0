"""Labs on this machine's own kernel: starting one, knowing what it owns, removing exactly that. Standard library only, so that it runs with any Python.

A lab is a process tree in a control group, a network namespace and a mount namespace of its own: its interfaces, bridges and mounts go when its
processes do. What is left to remove by hand has the lab's id: its control group, its containers, its folder. The id names the process that started it.
"""

from scpslab.hostlab.owned import dead_labs, labs, remove
from scpslab.hostlab.start import HostLab

__all__ = ["HostLab", "dead_labs", "labs", "remove"]
