"""Mininet's `iperf`: throughput between two hosts, by a server and a client that live as long as the measurement."""

import re
import subprocess
import tempfile
import time
from contextlib import suppress
from typing import IO

from scpslab.lab.nodes import LabNode
from scpslab.lab.place import LABTOOL, WORK
from scpslab.lab.services import listens

PORT = 5001
SECONDS = 5
LISTENS_WITHIN_S = 10.0
REPORTS_WITHIN_S = 5.0
ENDS_WITHIN_S = 2.0
LOOK_AGAIN_S = 0.05
PATIENCE_S = 15.0
FIGURE = re.compile(r"[\d.]+ \w+/sec")


class IperfError(Exception):
    """No measurement; the message says why."""


def server_words(udp: bool, port: int = PORT) -> list[str]:
    """The server's command."""
    return ["iperf", "-s", "-p", str(port), *(["-u"] if udp else [])]


def client_words(ip: str, udp_rate: str, seconds: int = SECONDS, port: int = PORT) -> list[str]:
    """The client's command. `udp_rate`: the rate of datagrams, such as 10M; "" for TCP."""
    return ["iperf", "-p", str(port), "-t", str(seconds), "-c", ip, *(["-u", "-b", udp_rate] if udp_rate else [])]


def measure(
    client: LabNode, server: LabNode, ip: str, udp_rate: str = "", seconds: int = SECONDS, port: int = PORT, f: str = ""
) -> list[str]:
    """The throughput that the server saw ("" if it did not say), and the one that the client saw; `f`: iperf's unit.

    Raises:
        IperfError: no program, no connection, or no report.
    """
    form = ["-f", f] if f else []
    with tempfile.TemporaryFile(dir=WORK) as said:
        serving = _start(server, [*server_words(bool(udp_rate), port), *form], said)
        try:
            _wait_for(serving, server, "udp" if udp_rate else "tcp", said, port)
            sent = _send(client, [*client_words(ip, udp_rate, seconds, port), *form], seconds)
            if not FIGURE.search(sent):
                raise IperfError(
                    "iperf: found no result of the client; expected a throughput. The client said: "
                    f"{sent.strip() or 'nothing'}"
                )
            received = _report(said)
        finally:
            _end(serving)
    return [found[-1] if found else "" for found in (FIGURE.findall(received), FIGURE.findall(sent))]


def _start(node: LabNode, words: list[str], output: IO[bytes]) -> subprocess.Popen[bytes]:
    """Starts the lab's own program in the network of a node, whose image may have none.

    Ctrl-C does not reach it: whoever started it ends it.
    """
    argv = [LABTOOL, "exec-net", str(node.pid), *words]
    return subprocess.Popen(
        argv, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT, start_new_session=True
    )


def _send(client: LabNode, words: list[str], seconds: int) -> str:
    with tempfile.TemporaryFile(dir=WORK) as said:
        sending = _start(client, words, said)
        try:
            try:
                sending.wait(timeout=seconds + PATIENCE_S)
            except subprocess.TimeoutExpired:
                print("Still waiting for data under way, or for a connection; Ctrl-C ends the test.")
                sending.wait()
        finally:
            _end(sending)
        return _text(said)


def _wait_for(serving: subprocess.Popen[bytes], server: LabNode, kind: str, said: IO[bytes], port: int) -> None:
    limit = time.monotonic() + LISTENS_WITHIN_S
    while not listens(server.pid, kind, port):
        if serving.poll() is not None or time.monotonic() > limit:
            text = _text(said).strip() or "nothing"
            raise IperfError(
                f"iperf: found no server on {server.name}, port {port}; expected one that listens. The server said: "
                f"{text}"
            )
        time.sleep(LOOK_AGAIN_S)


def _report(said: IO[bytes]) -> str:
    """The server's output with its report, which comes after the client's: the last segments travel for a while."""
    limit = time.monotonic() + REPORTS_WITHIN_S
    while not FIGURE.search(text := _text(said)) and time.monotonic() < limit:
        time.sleep(LOOK_AGAIN_S)
    return text


def _text(said: IO[bytes]) -> str:
    said.seek(0)
    return said.read().decode(errors="replace")


def _end(process: subprocess.Popen[bytes]) -> None:
    """Ends a program: at first with a request."""
    process.terminate()
    with suppress(subprocess.TimeoutExpired):
        process.wait(timeout=ENDS_WITHIN_S)
        return
    process.kill()
    process.wait()
