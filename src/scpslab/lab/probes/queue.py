"""The depth of a link direction's stage over time."""

from __future__ import annotations

import socket

from scpslab.lab.netlink import Netlink
from scpslab.lab.netns import inside
from scpslab.lab.probes.base import Sampler
from scpslab.lab.records import Records
from scpslab.names import file_name

ROOT = 0xFFFFFFFF


class QueueDepth(Sampler):
    """What waits in stage 1 (the router's buffer, the packet in transmission included) or is under way in stage 2."""

    def prepare(self) -> None:
        """Opens a netlink socket where the stage is."""
        direction = self.cell.direction(self.spec["link"], self.spec["direction"])
        self.index = direction.entering if self.spec["stage"] == "queue" else direction.relay
        if self.index is None:
            raise ValueError(f"probe {self.name}: link {self.spec['link']} has no delay stage; expected a link with a via node")
        node = self.cell.network.places[self.index]
        with inside(self.cell.network.pid(node)):
            self.netlink = Netlink(socket.NETLINK_ROUTE)
        self.records = Records(self.cell.records / file_name(self.name, suffix=".jsonl"))

    def sample(self) -> None:
        """Records the root qdisc's backlog; drops are those of the queue's limit."""
        roots = [qdisc for qdisc in self.netlink.qdiscs() if qdisc["index"] == self.index and qdisc["parent"] == ROOT]
        drops = self.cell.network.stages.account(self.cell.direction(self.spec["link"], self.spec["direction"]))["queue_packets"]
        for root in roots:
            self.records.write(t_s=self.cell.epoch.now_s(), packets=root["backlog_packets"], bytes=root["backlog_bytes"], drops=drops + root["drops"])

    def stop(self) -> None:
        """Closes socket and file."""
        super().stop()
        self.netlink.close()
        self.records.close()
