"""Everything that passes one interface, in a file: by `labtool capture`, or by tcpdump where there is a filter.

Either writes into memory; the cell copies the file out at its end, because a write to the user's machine in the middle
of a run would change the packets' timing from run to run.
"""

import signal
import subprocess

from scpslab.core.names import file_name
from scpslab.lab.place import LABTOOL
from scpslab.lab.probes import Probe

from scpslab.kinds.probes.capture import plan as planned

# What tcpdump says of a filter that libpcap cannot compile. That compiler is in the lab, but not on every machine that
# validates a scenario.
BAD_FILTER = "can't parse filter expression"


class FilterError(ValueError):
    """A filter that tcpdump does not understand."""


class Capture(Probe[planned.Capture], kind="capture"):
    """captures/<name>.pcap, nanosecond time stamps."""

    # The kernel hands over whole blocks of packets, the last one after a second; what a program has not got when it is
    # told to end is lost.
    settle_ns = 1_200_000_000

    def prepare(self) -> None:
        """Starts the program and waits until it listens."""
        spec = self.spec
        # Run from outside the node (its namespace is entered for the network only), so that the file lands in the
        # cell's folder.
        prefix = [] if self.network.pid(spec.node) is None else [LABTOOL, "exec-net", str(self.network.pid(spec.node))]
        self.process = subprocess.Popen(
            [*prefix, *self._command()], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
        )
        self.said: list[str] = []
        self.ended = False
        self.context.loop.on_lines(self.process.stderr, self.said.append)
        self.context.loop.on_exit(self.process, self._exit)
        self.context.loop.run_until(lambda: self.ended or any("listening on" in line for line in self.said))
        if self.ended and any(BAD_FILTER in line for line in self.said):
            what = " ".join(self.said).partition(BAD_FILTER)[2].strip(" :")
            raise FilterError(
                f'probe {self.name}: found the filter "{spec.filter_}" ({what}); expected one of pcap-filter(7). '
                "Correct the filter."
            )
        if self.ended:
            raise OSError(self.process.returncode, f"capture {self.name}: {' '.join(self.said)}")

    def _command(self) -> list[str]:
        """The program with its arguments; both write the same bytes."""
        spec = self.spec
        path = self.context.folders.captures / file_name(self.name, suffix=".pcap")
        argv = ["--interface", spec.interface, "--snapshot-length", str(spec.snaplen_bytes)]
        if spec.filter_:
            options = ["-n", "-Z", "root", "--time-stamp-precision", "nano"]
            return ["tcpdump", *argv, *options, "-w", str(path), spec.filter_]
        return [LABTOOL, "capture", *argv, "--file", str(path)]

    def _exit(self, _code: int) -> None:
        self.ended = True

    def stop(self) -> None:
        """Lets the program write its last packets."""
        self.process.send_signal(signal.SIGTERM)
        self.context.loop.run_until(lambda: self.ended)
        for lost in (line.split()[0] for line in self.said if line.endswith("packets dropped by kernel")):
            if lost != "0":
                found = f"capture {self.name}: found {lost} packets that the kernel dropped; expected none"
                self.broken = f"{found}. Capture fewer bytes of each packet (snaplen), or lower the rates"
        with (self.context.folders.logs / file_name("capture", self.name, suffix=".log")).open("w") as log:
            log.writelines(line + "\n" for line in self.said)
