"""Where a workload's packets are in captures: what figures and metrics ask of one, whatever its kind.

A kind's own answer is `KIND` in its metrics.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, cast

from scpslab.analysis.metrics.data_connection import client_sends, data_connection
from scpslab.core.kinds import Layer
from scpslab.plan import Plan
from scpslab.plan.workloads import Traffic

if TYPE_CHECKING:
    from scpslab.analysis.capture import Connection
    from scpslab.analysis.run import RunCell

    class Transfer(Traffic):
        """A planned workload whose data can be followed: one with a port."""

        port: int


class DataFlow:
    """The base: a workload whose data no figure follows.

    `carries`: its data can be followed. `is_load`: it is there to disturb what is measured. `has_own_port`: its plan's
    port tells its packets from all others.
    """

    carries: ClassVar[bool] = False
    is_load: ClassVar[bool] = False
    has_own_port: ClassVar[bool] = True

    def connection(self, cell: RunCell, workload: Any, probe: str) -> Connection | None:
        """Its connection in a capture; None where it is not in there."""
        return None

    def from_client(self, workload: Any, connection: Connection) -> bool:
        """Whether the side that opened the connection sends the data."""
        return True


class Load(DataFlow):
    """Traffic that competes with what is measured."""

    is_load = True


class OwnConnection(DataFlow):
    """A connection to the workload's own port."""

    carries = True

    def connection(self, cell: RunCell, workload: Transfer, probe: str) -> Connection | None:
        """The one with the most payload."""
        return cell.connection(probe, workload)


class FileConnection(DataFlow):
    """The data connection of a file protocol, which has a port that nobody knows before."""

    carries = True
    has_own_port = False

    def connection(self, cell: RunCell, workload: Transfer, probe: str) -> Connection | None:
        """The one with the most payload that is not the control connection."""
        return data_connection(cell, workload, probe)

    def from_client(self, workload: Transfer, connection: Connection) -> bool:
        """As its packets say: in active mode the server opens it."""
        return client_sends(connection)


DATA_FLOWS: Layer[DataFlow] = Layer("workloads", "metrics")


def load_ports(plan: Plan) -> list[int]:
    """The ports of all traffic that competes with what is measured."""
    return [cast("Transfer", workload).port for workload in plan.cell.workloads if DATA_FLOWS[workload.kind].is_load]
