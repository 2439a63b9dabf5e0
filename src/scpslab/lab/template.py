"""What cells of one network have in common: a template is set up once, and its cells go on from there
(docs/decisions/0018).

It is the network of a plan, and the space that its cells may need. Whatever the network's set-up reads is in it, so
that equal templates are equal networks. It is computed from the plan alone, never from what ran before.
"""

import fcntl
import gc
import hashlib
import json
import os
import random
import struct
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Self

from scpslab import plan as plans
from scpslab.core import strict_json
from scpslab.core.names import file_name
from scpslab.plan import NetworkPlan, Plan, schema
from scpslab.plan.cell import stretches_of
from scpslab.plan.schema import Part, Range

# Room kept for the bit errors of each direction of a lab whose links can change; then they repeat.
GAPS_KEPT = 1 << 16
NUMBER_BYTES = 8
# What is drawn of bit errors (scenario/errors.py).
VECTORS = (".u64", ".bad.u64", ".spells")
# What profiles change, in pairs of a time and a value (scenario/profiles/planning.py).
MOVED = (".rates", ".chances", ".delays", ".weights", ".downs")
Entries = Annotated[int, Range(1)]


class Space(Part):
    """Entries of the maps `places`, `stretches`, `windows`, `drop_list` and `steps`, powers of two: cells
    that differ a little share a template. `packets`: lines of the record.
    """

    places: Entries
    stretches: Entries
    windows: Entries
    drops: Entries
    packets: Entries = 1
    steps: Entries = 1

    @classmethod
    def of(cls, plan: Plan, vectors: Path) -> Self:
        """The space that a plan needs whose vectors of bit errors are in a folder."""
        places = stretches = windows = drops = steps = 0
        spare = spare_gaps(plan)
        for link in plan.network.links:
            for direction in link.directions:
                errors = plan.cell.errors(link.name, direction.name)
                drawn = [_numbers(vectors / file_name(link.name, direction.name, suffix=one)) for one in VECTORS]
                # Of spells there is a sum more than places.
                places += spare + sum(drawn) + (drawn[-1] > 0)
                moved = {
                    one: _numbers(vectors / file_name(link.name, direction.name, suffix=one)) // 2 for one in MOVED
                }
                stretches += len(stretches_of(plan.cell, link.name, direction)) + moved[".rates"] + moved[".chances"]
                steps += moved[".delays"] + moved[".weights"]
                windows += bool(spare) + len(errors.outages if errors else ()) + moved[".downs"]
                impairment = plan.cell.impairment(link.name, direction.name)
                late = impairment.late if impairment else None
                steps += bool(late)
                drops += len(errors.drop_packets if errors else ()) + len(late.packets if late else ())
                drops += _numbers(vectors / file_name(link.name, direction.name, suffix=".drops"))
        return cls(
            places=_power(places),
            stretches=_power(stretches),
            windows=_power(windows),
            drops=_power(drops),
            packets=plan.network.packet_lines,
            steps=_power(steps),
        )


def spare_gaps(plan: Plan) -> int:
    """How many gaps each direction has room for besides its plan's: only links that can change need it."""
    return GAPS_KEPT if plan.cell.events or plan.cell.shell or plan.cell.mininet else 0


def _numbers(path: Path) -> int:
    return path.stat().st_size // NUMBER_BYTES if path.exists() else 0


def _power(entries: int) -> int:
    return 1 << max(entries - 1, 0).bit_length()


# The file in a guest's cell folder that says: set this up, and wait for cells.
FILE = "template.json"


@dataclass(frozen=True)
class Template:
    """A network to set up, and the space that its cells may need in the stages of the links."""

    network: NetworkPlan
    space: Space

    @classmethod
    def of(cls, plan: Plan, vectors: Path) -> Self:
        """The template of a plan whose vectors of bit errors are in a folder."""
        return cls(plan.network, Space.of(plan, vectors))

    @property
    def id(self) -> str:
        """Hash of all that the template is, and what seeds the random numbers of its guest until a cell's own seed
        does.
        """
        return hashlib.sha256(json.dumps(schema.write(self), sort_keys=True).encode()).hexdigest()

    def text(self) -> str:
        """The template as its file has it."""
        return json.dumps(schema.write(self), indent=1) + "\n"

    @classmethod
    def parse(cls, content: bytes) -> Self:
        """The template that a file's content states.

        Raises:
            PlanError: it is none.
        """
        fields = strict_json.loads(content)
        assert isinstance(fields, dict)  # the engine writes the file
        return cls(plans.read_network(fields["network"]), schema.read(Space, fields["space"]))


ENTRY = Path("/proc/lab_snapshot")
# linux/random.h
RNDADDENTROPY, RNDRESEEDCRNG = 0x40085203, 0x5207
# What daemons still do when the network is up they do once, and not in every cell.
SETTLE_S = 1.0


def snapshot() -> None:
    """Stops this guest for good, and returns in every cell that goes on from here
    (images/lab-kernel/snapshot.patch).
    """
    # What has been made until now stays: no cell need look through it again.
    gc.collect()
    gc.freeze()
    time.sleep(SETTLE_S)
    entry = os.open(ENTRY, os.O_WRONLY)
    os.write(entry, b"1")
    os.close(entry)


def reseed(kernel_seed: str) -> None:
    """Random numbers come from a cell's seed from now on: the kernel's, and with them those of every program that
    starts. What was drawn ahead is dropped.
    """
    seed = bytes.fromhex(kernel_seed)
    device = os.open("/dev/random", os.O_RDWR)
    fcntl.ioctl(device, RNDADDENTROPY, struct.pack("ii", 8 * len(seed), len(seed)) + seed)
    fcntl.ioctl(device, RNDRESEEDCRNG)
    os.close(device)
    random.seed(seed)
