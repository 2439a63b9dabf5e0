"""A guest with more memory than the machine is refused before it starts."""

from __future__ import annotations

import os

import pytest

from scpslab.core.errors import CapabilityError
from scpslab.engine.memory import check_guests
from scpslab.engine.uml import no_network

MACHINE_MIB = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") >> 20


def test_a_guest_of_the_machine_s_whole_memory_is_the_largest():
    check_guests([no_network({"wall_s": 1, "memory_mib": MACHINE_MIB}), no_network({"wall_s": 1, "memory_mib": 64})])
    check_guests([])
    with pytest.raises(
        CapabilityError,
        match=rf"limits.memory: found a guest of {MACHINE_MIB + 1} MiB; expected at most the {MACHINE_MIB} MiB of this machine",
    ):
        check_guests([no_network({"wall_s": 1, "memory_mib": MACHINE_MIB + 1})])
