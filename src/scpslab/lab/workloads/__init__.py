"""What generates traffic: one file a kind, one line in KINDS."""

from typing import Any

from scpslab.lab.workloads.base import Workload
from scpslab.lab.workloads.bulk import Bulk
from scpslab.lab.workloads.congestion import Congestion
from scpslab.lab.workloads.endpoint import Endpoint
from scpslab.lab.workloads.fp import Fp
from scpslab.lab.workloads.ftp import Ftp
from scpslab.lab.workloads.iperf3 import Iperf3
from scpslab.lab.workloads.ping import Ping

KINDS: dict[str, type[Workload[Any]]] = {"bulk": Bulk, "congestion": Congestion, "endpoint": Endpoint, "ftp": Ftp, "fp": Fp, "iperf3": Iperf3, "ping": Ping}
