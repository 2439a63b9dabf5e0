"""Finds and keeps the parts that engines need: lab kernel, guest image, the guest's small programs, the SCPS stack.

One that is missing is built.

Order of reading: images.py (the parts, and the folders that keep them), recipes.py (their recipes, and the way to the
builders in tools/build); packed.py is about wheels that carry them; trust.py about folders of others.
"""

from scpslab.setup.images import (
    Images,
    Program,
    cache_dir,
    ensure,
    ensure_appliance,
    ensure_stack,
    ensure_tools,
    system_cache,
)
from scpslab.setup.job import Job, Say, silent
