"""ping: round-trip times without a transport."""

from __future__ import annotations

import re

from scpslab.lab.workloads import KINDS, Workload

from scpslab.kinds.workloads.ping import plan as planned

REPLY = re.compile(r"icmp_seq=(\d+) ttl=\d+ time=([\d.]+) ms")
SUMMARY = re.compile(r"(\d+) packets transmitted, (\d+) received")


class Ping(Workload[planned.Ping]):
    """`count` echo requests; completed when the last one is answered or given up."""

    def start(self) -> None:
        """Starts ping."""
        spec = self.spec
        argv = ["ping", "-n", "-c", str(spec.count), "-i", f"{spec.interval_ns / 1e9:.6f}"]
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


KINDS.register("ping", Ping)
