"""The file that the guest's init starts: finds the lab program next to this file, and Mininet among the system's packages."""

import gc
import sys

# Start-up makes many objects and throws few away; collecting while it does costs a tenth of it.
gc.disable()
sys.path.append("/usr/lib/python3/dist-packages")

from scpslab.lab.program import main  # noqa: E402  # the path has to be there first

gc.enable()
sys.exit(main())
