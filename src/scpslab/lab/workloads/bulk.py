"""A bulk transfer over the kernel's TCP, measured at both ends (FY97 measure M-01 and the user's own)."""

from __future__ import annotations

import json

from scpslab.lab.workloads.base import Workload

TIMESTAMP_OPTION_BYTES = 12


class Bulk(Workload):
    """`labtool bulk-send` at one node, `bulk-recv` at the other; completed when both say so and every byte is right."""

    def prepare(self) -> None:
        """Starts the receiver and states the send window's ceiling for its port."""
        spec = self.spec
        self.listening = False
        self.ends: dict[str, dict[str, object]] = {}
        self.left = 2
        if spec["send_window_bytes"]:
            self.cell.network.stages.send_ceilings.put(spec["port"], max(1, spec["send_window_bytes"] // spec["segment_bytes"]))
        options = {
            "port": spec["port"],
            "bytes": spec["bytes"],
            "window": spec["receive_window_bytes"],
            "delayed-ack": spec["delayed_ack"],
            "payload-seed": spec["payload_seed"],
            "patience-ns": spec["start_ns"] + spec["patience_ns"] + 120 * 10**9,
        }
        self.run_tool(spec["to"], "bulk-recv", options, self._line, self._exit)
        self.cell.loop.run_until(lambda: self.listening or self.left < 2)

    def start(self) -> None:
        """Starts the sender."""
        spec = self.spec
        timestamps = self.cell.sysctl(spec["from"], "net.ipv4.tcp_timestamps", "1") != "0"
        options = {
            "to": spec["to_ip"],
            "port": spec["port"],
            "bytes": spec["bytes"],
            "segment": spec["segment_bytes"],
            "option-bytes": TIMESTAMP_OPTION_BYTES if timestamps else 0,
            "congestion": spec["congestion"],
            "payload-seed": spec["payload_seed"],
            "patience-ns": spec["patience_ns"],
        }
        self.run_tool(spec["from"], "bulk-send", options, self._line, self._exit)

    def _line(self, line: str) -> None:
        fields = json.loads(line)
        if fields["event"] == "listening":
            self.listening = True
            return
        self.ends[fields["event"]] = fields
        self.records.write(**self.in_seconds(fields))

    def _exit(self, _code: int) -> None:
        self.left -= 1
        sender, receiver = self.ends.get("sender"), self.ends.get("receiver")
        if sender and sender["status"] != "completed":
            self.finish("incomplete", f"{self.name}: sender gave up: {sender['error']}")
            self.stop()
        elif self.left == 0 and sender and receiver:
            self._judge(receiver)
        elif self.left == 0:
            self.finish("incomplete", f"{self.name}: an end stopped without a result; see logs/{self.name}-*.log")

    def _judge(self, receiver: dict[str, object]) -> None:
        if receiver["status"] != "completed":
            self.finish("incomplete", f"{self.name}: receiver: {receiver['error']}")
        elif receiver["bytes"] != self.spec["bytes"] or receiver["wrong_bytes"]:
            found = f"{receiver['bytes']} bytes, {receiver['wrong_bytes']} of them wrong"
            self.finish("incomplete", f"{self.name}: found {found}; expected {self.spec['bytes']} bytes as sent")
        else:
            self.finish("completed")
