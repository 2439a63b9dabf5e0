"""Datagrams by `labtool congestion`, with a single rate, to `labtool datagram-sink`."""

from __future__ import annotations

import json

from scpslab.lab.workloads import Workload

from scpslab.kinds.workloads.burst import plan as planned


class Burst(Workload[planned.Burst], kind="burst"):
    """Completed when everything is sent; the sink counts what is still under way."""

    def prepare(self) -> None:
        """Starts the sink."""
        self.listening = False
        self.sink = self.run_tool(
            self.spec.to, "datagram-sink", {"port": self.spec.port}, self._line, lambda _code: None
        )
        self.context.loop.run_until(lambda: self.listening or self.ended())

    def start(self) -> None:
        """Starts to send."""
        spec = self.spec
        options = {
            "to": spec.to_ip,
            "port": spec.port,
            "packet-bytes": spec.packet_bytes,
            "redraw-ns": spec.duration_ns,
            "rates": str(spec.rate_bps),
        }
        self.sender = self.run_tool(spec.from_, "congestion", options, self._line, self._sent)

    def stop(self) -> None:
        """Stops to send."""
        if self.sender.poll() is None:
            self.sender.terminate()

    def quiet(self) -> bool:
        """Whether nothing is sent any more."""
        return self.sender.poll() is not None

    def _line(self, line: str) -> None:
        fields = json.loads(line)
        self.listening = self.listening or fields["event"] == "listening"
        self.records.write(**self.in_seconds(fields))

    def _sent(self, code: int) -> None:
        if code:
            self.finish("incomplete", f"{self.name}: exit code {code}; see logs/{self.name}-{self.spec.from_}.log")
        self.finish("completed")
