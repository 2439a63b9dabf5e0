"""Builds and keeps the parts that engines need: lab kernel, guest image, the guest's small programs, the SCPS stack.

Order of reading: images.py (the parts, their recipes, and the folders that keep them), then kernel.py, guest.py, tools.py, stack.py; packed.py, pack.py
and from_wheel.py are about wheels that carry them; job.py, apt.py and folders.py serve them.
"""

from scpslab.setup.images import Images, Program, cache_dir, ensure, ensure_appliance, ensure_stack, ensure_tools, system_cache

__all__ = ["Images", "Program", "cache_dir", "ensure", "ensure_appliance", "ensure_stack", "ensure_tools", "system_cache"]
