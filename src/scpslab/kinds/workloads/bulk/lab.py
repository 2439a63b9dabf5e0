"""A bulk transfer over the kernel's TCP or SCPS-TP, each end for itself, measured at both ends (FY97's measure,
apparatus M-01, and the user's own).
"""

import json
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from ipaddress import ip_address

from scpslab.core.strict_json import JsonObject, section, whole
from scpslab.lab import scps_end
from scpslab.lab.loop import SECOND_NS
from scpslab.lab.records import Trace, trace_path
from scpslab.lab.workloads import ANY_IPV6, ToolOptions, Workload
from scpslab.plan.workloads import TIMESTAMP_BYTES

from scpslab.kinds.workloads.bulk import plan as planned

# A receiver waits longer than the sender tries: it is the sender that gives up.
RECEIVER_EXTRA_NS = 120 * SECOND_NS


class Bulk(Workload[planned.Bulk], kind="bulk"):
    """`labtool bulk-send` or `scps send` at one node, `bulk-recv` or `scps recv` at the other; completed when both say
    so and every byte is right.
    """

    def prepare(self) -> None:
        """Starts the receiver, and states the send window's ceiling for its place where the kernel sends."""
        spec = self.spec
        self.listening = False
        self.ends: dict[str, JsonObject] = {}
        self.reports: dict[str, JsonObject] = {}
        self.left = 2
        for node, end in ((spec.from_, spec.from_scps), (spec.to, spec.to_scps)):
            scps_end.write_settings(self.network, node, end)
        timeout_ns = spec.start_ns + spec.timeout_ns + RECEIVER_EXTRA_NS
        if spec.to_scps:
            with self.trace(spec.to) as trace:
                program, timeout_s = self.scps(spec.to), timeout_ns / SECOND_NS
                command = [program, "recv", "--listen", f"{spec.to_scps.ip}:{spec.port}", "--announce", "--no-hash"]
                command += ["--expect-seed", str(spec.payload_seed)]
                command += scps_end.options(spec.to_scps, timeout_s, trace)
                self.run(spec.to, command, self._line, self._exit, keep=trace)
        else:
            options: ToolOptions = {
                "at": ANY_IPV6 if ":" in spec.to_ip else None,
                "port": spec.port,
                "bytes": spec.bytes_,
                "window": spec.receive_window_bytes,
                "segment": spec.segment_bytes,
                "delayed-ack": spec.delayed_ack,
                "payload-seed": spec.payload_seed,
                "patience-ns": timeout_ns,
            }
            self.run_tool(spec.to, "bulk-recv", options, self._line, self._exit)
        if spec.send_window_bytes:
            segments = max(1, spec.send_window_bytes // spec.segment_bytes)
            self.network.stages.send_ceilings.put(
                struct.pack("=I", spec.port) + ip_address(spec.to_ip).packed[-4:], segments
            )
        self.context.loop.run_until(lambda: self.listening or self.left < 2)

    def start(self) -> None:
        """Starts the sender. `scps` has an exact clock of its own for the timeout, takes its leave of the peer then, a
        round trip long, and says what it lacked; `labtool` ends when it is told to.
        """
        spec = self.spec
        if spec.from_scps:
            with self.trace(spec.from_) as trace:
                program, timeout_s = self.scps(spec.from_), spec.timeout_ns / SECOND_NS
                command = [program, "send", "--local", spec.from_scps.ip, "--to", f"{spec.to_ip}:{spec.port}"]
                command += ["--bytes", str(spec.bytes_), "--no-hash", "--data-seed", str(spec.payload_seed)]
                command += scps_end.options(spec.from_scps, timeout_s, trace)
                self.run(spec.from_, command, self._line, self._exit, keep=trace)
            self.context.loop.at(self.context.now_ns() + spec.timeout_ns, self.time_out)
            return
        self.give_up_after(spec.timeout_ns)
        application = spec.application
        pauses = ",".join(f"{at}:{lasts_ns}" for at, lasts_ns in application.pauses) if application else None
        timestamps = self.network.sysctl(spec.from_, "net.ipv4.tcp_timestamps", "1") != "0"
        options: ToolOptions = {
            "to": spec.to_ip,
            "port": spec.port,
            "bytes": spec.bytes_,
            "segment": spec.segment_bytes,
            "option-bytes": TIMESTAMP_BYTES if timestamps else 0,
            "congestion": spec.congestion_control,
            "payload-seed": spec.payload_seed,
            "patience-ns": spec.timeout_ns + RECEIVER_EXTRA_NS,
            "burst": application.burst_bytes if application else None,
            "every-ns": application.every_ns if application else None,
            "pauses": pauses or None,
        }
        self.run_tool(spec.from_, "bulk-send", options, self._line, self._exit)

    @contextmanager
    def trace(self, node: str) -> Iterator[int | None]:
        """A descriptor for the SCPS program's trace, where a tcp_info probe looks at the node: what the kernel samples
        is in there.
        """
        if node not in self.context.settled.sampled:
            yield None
            return
        with trace_path(self.context.folders.records, self.name, node).open("wb") as file:
            yield file.fileno()

    def traces(self, node: str) -> list[Trace]:
        """The trace of this transfer's program on the node, if it has one."""
        path, report = trace_path(self.context.folders.records, self.name, node), self.reports.get(node)
        if report is None or not path.exists():
            return []
        mss_bytes = whole(section(report, "negotiated"), "segment_bytes")
        return [Trace(path, whole(report, "origin_ns"), str(report["local"]), str(report["remote"]), mss_bytes)]

    def _line(self, line: str) -> None:
        fields: JsonObject = json.loads(line)
        if fields.get("event") == "listening":
            self.listening = True
            return
        if "role" in fields:
            self.reports[self.spec.from_ if fields["role"] == "send" else self.spec.to] = fields
            end = self.spec.from_scps if fields["role"] == "send" else self.spec.to_scps
            fields = scps_end.as_record(fields, self.spec.bytes_, is_np=end is not None and end.np is not None)
        self.ends[str(fields["event"])] = fields
        self.records.write(**self.in_seconds(fields))

    def _exit(self, _code: int) -> None:
        self.left -= 1
        sender, receiver = self.ends.get("sender"), self.ends.get("receiver")
        if sender and sender["status"] != "completed":
            self.fail(reason := f"sender gave up: {sender['error']}")
            if self.spec.from_scps and self.outcome == "incomplete":
                # Its timeout ran out before it had taken its leave: now it says what it lacked.
                self.reason = f"{self.name}: {reason}"
            self.stop()
        elif self.left == 0 and sender and receiver:
            self._judge(receiver)
        elif self.left == 0:
            self.fail("an end stopped without a result", log_of="*")

    def _judge(self, receiver: JsonObject) -> None:
        if receiver["status"] != "completed":
            self.fail(f"receiver: {receiver['error']}")
        elif receiver["bytes"] != self.spec.bytes_ or receiver["wrong_bytes"]:
            found = f"{receiver['bytes']} bytes, {receiver['wrong_bytes']} of them wrong"
            self.fail(f"found {found}; expected {self.spec.bytes_} bytes as sent")
        else:
            self.finish("completed")
