"""iperf3 between two nodes; its own JSON result is the record."""

import json

from scpslab.lab.workloads import Workload

from scpslab.kinds.workloads.iperf3 import plan as planned

# What iperf3 writes at a time over TCP, unless it is told; it sends whole blocks only.
BLOCK_BYTES = 128 << 10
# Parallel streams each finish the block that they are in when the size is reached: together a sixteenth of it at most.
BLOCKS_OF_PARALLEL_STREAMS = 16
# How often iperf3 looks whether a size is sent; once a second unless it is told.
LOOK_S = "0.1"


class Iperf3(Workload[planned.Iperf3], kind="iperf3"):
    """A one-shot server and a client."""

    def prepare(self) -> None:
        """Starts the server and waits until it says that it listens."""
        self.text: list[str] = []
        self.listening = False
        argv = [*self._program(self.spec.to), "--server", "--one-off", "--forceflush", "--port", str(self.spec.port)]
        if self.spec.udp_rate_bps is not None:
            # A server of datagrams answers from whatever address its routes give; the client hears the one that it has
            # contacted.
            argv += ["--bind", self.spec.to_ip]
        self.server_exit: int | None = None
        self.run(self.spec.to, argv, self._server_line, self._server_exit)
        self.context.loop.run_until(lambda: self.listening or self.server_exit is not None)

    def start(self) -> None:
        """Starts the client and the clock of its timeout."""
        spec = self.spec
        argv = [*self._program(spec.from_), "--json", "--client", spec.to_ip, "--port", str(spec.port)]
        argv += ["--parallel", str(spec.parallel)]
        argv += ["--time", str(spec.duration_ns // 10**9)] if spec.duration_ns else ["--bytes", str(spec.bytes_)]
        if self._sends_size:
            argv += ["--length", str(self._block_bytes()), "--interval", LOOK_S]
        if spec.udp_rate_bps is not None:
            # iperf3's word is for each stream.
            argv += ["--udp", "--bitrate", str(max(spec.udp_rate_bps // spec.parallel, 1))]
        if spec.congestion_control:
            argv += ["--congestion", spec.congestion_control]
        if spec.segment_bytes:
            argv += ["--set-mss" if spec.udp_rate_bps is None else "--length", str(spec.segment_bytes)]
        if spec.reverse:
            argv.append("--reverse")
        self.run(spec.from_, argv, self.text.append, self._client_exit)
        self.give_up_after(spec.timeout_ns)

    @property
    def _sends_size(self) -> bool:
        """Whether it ends when a size is sent over TCP; UDP is paced, and sleeps by itself."""
        return not self.spec.duration_ns and self.spec.udp_rate_bps is None

    def _block_bytes(self) -> int:
        """Bytes of a block, of which a number fits the size as well as can be."""
        size, streams = self.spec.bytes_ or 0, self.spec.parallel
        blocks = max(-(-size // BLOCK_BYTES), BLOCKS_OF_PARALLEL_STREAMS * streams if streams > 1 else 1)
        return -(-size // blocks)

    def _program(self, node: str) -> list[str]:
        """iperf3, with the library that makes it sleep where it would turn in a loop
        (images/guest/tools/iperf3-sleep.c).
        """
        return ["env", f"LD_PRELOAD={self.network.node(node).program('iperf3-sleep.so')}", "iperf3"]

    def _server_line(self, line: str) -> None:
        self.listening = self.listening or "listening" in line

    def _server_exit(self, code: int) -> None:
        self.server_exit = code

    def _client_exit(self, code: int) -> None:
        try:
            result = json.loads("\n".join(self.text))
        except ValueError:
            result = {"error": "no JSON came"}
        self.records.write(event="iperf3", result=result)
        if code or "error" in result:
            self.fail(f"iperf3 exit code {code}: {result.get('error', '')}")
        self.finish("completed")
        self.stop()
