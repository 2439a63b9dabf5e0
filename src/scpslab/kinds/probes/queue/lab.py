"""The depth of a link direction's stage over time."""

from __future__ import annotations

import socket

from scpslab.lab.netlink import ROOT, Netlink
from scpslab.lab.probes import Sampler

from scpslab.kinds.probes.queue import plan as planned


class QueueDepth(Sampler[planned.QueueDepth], kind="queue"):
    """What waits in stage 1 (the router's buffer, the packet in transmission included) or is under way in stage 2."""

    def prepare(self) -> None:
        """Opens a netlink socket where the stage is."""
        self.direction = self.network.direction(self.spec.link, self.spec.direction)
        index = self.direction.entering if self.spec.stage == "queue" else self.direction.relay
        if index is None:
            raise ValueError(
                f"probe {self.name}: link {self.spec.link} has no delay stage; expected a link with a via node"
            )
        self.index = index
        with self.network.where(index):
            self.netlink = Netlink(socket.NETLINK_ROUTE)
        super().prepare()

    def sample(self) -> None:
        """Records the root qdisc's backlog; drops are those of the queue's limit."""
        roots = [qdisc for qdisc in self.netlink.qdiscs() if qdisc.interface == self.index and qdisc.parent == ROOT]
        drops = self.network.stages.account(self.direction)["queue_packets"]
        for root in roots:
            self.record(
                t_s=self.context.epoch.now_s(),
                packets=root.backlog_packets,
                bytes=root.backlog_bytes,
                drops=drops + root.drops,
            )

    def stop(self) -> None:
        """Closes socket and file."""
        super().stop()
        self.netlink.close()
        self.records.close()
