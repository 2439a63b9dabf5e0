"""FY97's congestion generator (apparatus T-03): UDP at a rate redrawn every few seconds; the draws are in the plan."""

import json
import subprocess

from scpslab.lab.workloads import ANY_IPV6, ToolOptions, Workload

from scpslab.kinds.workloads.background import plan as planned


class Background(Workload[planned.Background], kind="background"):
    """Runs until the last required workload is over."""

    def prepare(self) -> None:
        """Starts the sink. The cell may be over before the generator is to start."""
        self.listening = False
        self.generator: subprocess.Popen[bytes] | None = None
        options: ToolOptions = {"at": ANY_IPV6 if ":" in self.spec.to_ip else None, "port": self.spec.port}
        self.run_tool(self.spec.to, "datagram-sink", options, self._line, self._exit)
        self.context.loop.run_until(lambda: self.listening or self.ended())

    def start(self) -> None:
        """Starts the generator."""
        spec = self.spec
        options: ToolOptions = {
            "to": spec.to_ip,
            "port": spec.port,
            "packet-bytes": spec.packet_bytes,
            "redraw-ns": spec.redraw_ns,
            "rates": ",".join(str(rate) for rate in spec.rates_bps),
        }
        self.generator = self.run_tool(spec.from_, "congestion", options, self._line, self._exit)

    def stop(self) -> None:
        """Stops the generator; the sink goes on counting what is still under way."""
        if self.generator and self.generator.poll() is None:
            self.generator.terminate()

    def quiet(self) -> bool:
        """Whether the generator has ended."""
        return self.generator is None or self.generator.poll() is not None

    def _line(self, line: str) -> None:
        fields = json.loads(line)
        if fields["event"] == "listening":
            self.listening = True
        else:
            self.records.write(**self.in_seconds(fields))

    def _exit(self, code: int) -> None:
        # Whoever is ended by a signal, which a shell tells as 128 and more, has done its work.
        if 0 < code < 128:
            self.fail(f"exit code {code} of the generator or its sink; see logs/")
        self.finish("completed")
