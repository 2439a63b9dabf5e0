"""The file that the guest's init starts: finds the lab program next to this file, and Mininet among the system's
packages.
"""

import gc
import os
import sys

# Start-up makes many objects and throws few away; collecting while it does costs a tenth of it.
gc.disable()
sys.path.append("/usr/lib/python3/dist-packages")

from scpslab.lab.program import main  # noqa: E402  # the path has to be there first

gc.enable()
code = main()
sys.stdout.flush()
sys.stderr.flush()
# The guest powers off: to take the interpreter apart first would bring back all pages of its memory, one fault each.
os._exit(code)
