"""Where a template stops and its cells begin: the guest's kernel is forked (images/lab-kernel/snapshot.patch), and each child gets randomness of its own."""

from __future__ import annotations

import fcntl
import gc
import os
import random
import struct
import time
from pathlib import Path

ENTRY = Path("/proc/lab_snapshot")
# linux/random.h
RNDADDENTROPY, RNDRESEEDCRNG = 0x40085203, 0x5207
# What daemons still do when the network is up they do once, and not in every cell.
SETTLE_S = 1.0


def take() -> None:
    """Stops this guest for good, and returns in every cell that goes on from here."""
    # What has been made until now stays: no cell need look through it again.
    gc.collect()
    gc.freeze()
    time.sleep(SETTLE_S)
    entry = os.open(ENTRY, os.O_WRONLY)
    os.write(entry, b"1")
    os.close(entry)


def reseed(kernel_seed: str) -> None:
    """Random numbers come from a cell's seed from now on: the kernel's, and with them those of every program that starts. What was drawn ahead is dropped."""
    seed = bytes.fromhex(kernel_seed)
    device = os.open("/dev/random", os.O_RDWR)
    fcntl.ioctl(device, RNDADDENTROPY, struct.pack("ii", 8 * len(seed), len(seed)) + seed)
    fcntl.ioctl(device, RNDRESEEDCRNG)
    os.close(device)
    random.seed(seed)
