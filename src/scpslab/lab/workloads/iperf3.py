"""iperf3 between two nodes; its own JSON result is the record."""

from __future__ import annotations

import json

from scpslab.lab.workloads.base import Workload


class Iperf3(Workload):
    """A one-shot server and a client."""

    def prepare(self) -> None:
        """Starts the server and waits until it says that it listens."""
        self.text: list[str] = []
        self.listening = False
        argv = ["iperf3", "--server", "--one-off", "--forceflush", "--port", str(self.spec["port"])]
        self.server_exit: int | None = None
        self.run(self.spec["to"], argv, self._server_line, self._server_exit)
        self.cell.loop.run_until(lambda: self.listening or self.server_exit is not None)

    def start(self) -> None:
        """Starts the client and the clock of its patience."""
        spec = self.spec
        argv = ["iperf3", "--json", "--client", spec["to_ip"], "--port", str(spec["port"]), "--parallel", str(spec["parallel"])]
        argv += ["--time", str(spec["duration_ns"] // 10**9)] if spec["duration_ns"] else ["--bytes", str(spec["bytes"])]
        if spec["udp_rate_bps"] is not None:
            argv += ["--udp", "--bitrate", str(spec["udp_rate_bps"])]
        if spec["congestion"]:
            argv += ["--congestion", spec["congestion"]]
        if spec["segment_bytes"]:
            argv += ["--set-mss" if spec["udp_rate_bps"] is None else "--length", str(spec["segment_bytes"])]
        if spec["reverse"]:
            argv.append("--reverse")
        self.run(spec["from"], argv, self.text.append, self._client_exit)
        self.cell.loop.at(self.cell.now_ns() + spec["patience_ns"], self._give_up)

    def _server_line(self, line: str) -> None:
        self.listening = self.listening or "listening" in line

    def _server_exit(self, code: int) -> None:
        self.server_exit = code

    def _give_up(self) -> None:
        if not self.outcome:
            self.finish("incomplete", f"{self.name}: patience ran out")
            self.stop()

    def _client_exit(self, code: int) -> None:
        try:
            result = json.loads("\n".join(self.text))
        except ValueError:
            result = {"error": "no JSON came"}
        self.records.write(event="iperf3", result=result)
        if code or "error" in result:
            self.finish("incomplete", f"{self.name}: iperf3 exit code {code}: {result.get('error', '')}")
        self.finish("completed")
        self.stop()
