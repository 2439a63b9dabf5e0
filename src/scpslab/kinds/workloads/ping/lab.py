"""ping: round-trip times without a transport."""

from __future__ import annotations

import re

from scpslab.lab.loop import SECOND_NS
from scpslab.lab.workloads import Workload

from scpslab.kinds.workloads.ping import plan as planned

PATIENCE_S = 10
REPLY = re.compile(r"icmp_seq=(\d+) ttl=\d+ time=([\d.]+) ms")
SUMMARY = re.compile(r"(\d+) packets transmitted, (\d+) received")


class Ping(Workload[planned.Ping], kind="ping"):
    """`count` echo requests; completed when the last one is answered or given up."""

    def start(self) -> None:
        """Starts ping."""
        spec = self.spec
        # ping gives up ten seconds after its last request where no answer has come.
        argv = ["ping", "-n", "-c", str(spec.count), "-i", f"{spec.interval_ns / 1e9:.6f}"]
        if (longest_s := -(-self.network.longest_ns() // SECOND_NS)) > PATIENCE_S:
            argv += ["-W", str(longest_s)]
        self.run(spec.from_, [*argv, "-s", str(spec.payload_bytes), spec.to_ip], self._line, self._exit)

    def _line(self, line: str) -> None:
        if reply := REPLY.search(line):
            self.records.write(seq=int(reply[1]), rtt_ms=float(reply[2]), t_s=self.context.epoch.now_s())
        elif summary := SUMMARY.search(line):
            self.records.write(event="summary", sent=int(summary[1]), received=int(summary[2]))

    def _exit(self, code: int) -> None:
        if code > 1:
            self.fail(f"ping exit code {code}", log_of=self.spec.from_)
        self.finish("completed")
