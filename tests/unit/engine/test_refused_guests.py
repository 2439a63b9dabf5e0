"""What is refused before a guest starts: more memory than the machine has, and a session in virtual time."""

import os

from scpslab.core.errors import CapabilityError, UsageError
from scpslab.engine.memory import check_guests
from scpslab.engine.uml import no_network
from scpslab.engine.virtual import VirtualEngine
from tests.cases import refusal

MACHINE_MIB = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") >> 20


def test_a_guest_of_the_machine_s_whole_memory_is_the_largest():
    check_guests([no_network({"wall_s": 1, "memory_mib": MACHINE_MIB}), no_network({"wall_s": 1, "memory_mib": 64})])
    check_guests([])
    said = refusal(check_guests, [no_network({"wall_s": 1, "memory_mib": MACHINE_MIB + 1})], error=CapabilityError)
    least = f"found a guest of {MACHINE_MIB + 1} MiB; expected at most the {MACHINE_MIB} MiB of this machine"
    assert f"limits.memory: {least}" in said


def test_nobody_can_be_in_a_lab_in_virtual_time(tmp_path):
    plan = no_network({"wall_s": 1, "memory_mib": 64})
    said = refusal(VirtualEngine().interact, plan, tmp_path, lambda _out: None, error=UsageError)
    assert "engine virtual: found an engine without a prompt; expected an engine on the wall" in said
