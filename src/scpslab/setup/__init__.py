"""Building what the engines need, and keeping it: lab kernel, guest image, the guest's small programs.

Order of reading: images.py (what is built from what, and where it is kept), then kernel.py, guest.py, tools.py; job.py and apt.py serve them.
"""

from scpslab.setup.images import Images, cache_dir, ensure

__all__ = ["Images", "cache_dir", "ensure"]
