"""Stages of links that somebody has changed with tc: the lab does not know what is there instead."""

from __future__ import annotations

from scpslab.lab.network import LabNetwork
from scpslab.lab.stages import DirectionStages

# The parent of the discipline that holds the filters of both ways (TC_H_CLSACT, linux/pkt_sched.h).
FILTERS = 0xFFFFFFF1


class Replaced:
    """Compares the queue disciplines of the links with those that the lab has set."""

    def __init__(self, network: LabNetwork) -> None:
        self.network, self.as_set = network, network.disciplines()

    def lab_has_changed(self, direction: DirectionStages) -> None:
        """Takes what is there now for what the lab has set."""
        now = self.network.disciplines()
        self.as_set |= {index: now[index] for index in (direction.entering, direction.relay) if index is not None}

    def directions(self) -> dict[DirectionStages, str]:
        """The directions that are no longer as the lab has set them, with the interface where they are not."""
        now = self.network.disciplines()
        found = {}
        for direction in self.network.directions:
            for index in (direction.entering, direction.relay):
                if index is not None and now[index] != self.as_set[index]:
                    found[direction] = self.network.names[index]
            at_arrival = direction.arriving
            if now[at_arrival].get(FILTERS) != self.as_set[at_arrival].get(FILTERS):
                found[direction] = self.network.names[at_arrival]
        return found
