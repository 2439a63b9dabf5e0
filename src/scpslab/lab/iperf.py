"""Mininet's `iperf`: throughput between two hosts, by a server and a client that live as long as the measurement."""

from __future__ import annotations

import re
import subprocess
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from typing import IO

from scpslab.lab.nodes import LabNode
from scpslab.lab.place import LABTOOL, WORK

PORT = 5001
SECONDS = 5
LISTENS_WITHIN_S = 10.0
REPORTS_WITHIN_S = 5.0
ENDS_WITHIN_S = 2.0
LOOK_AGAIN_S = 0.05
PATIENCE_S = 15.0
# States of sockets in /proc/net: a TCP socket that listens, and a UDP socket without a peer.
LISTENING = {"tcp": "0A", "udp": "07"}
FIGURE = re.compile(r"[\d.]+ \w+/sec")


class IperfError(Exception):
    """No measurement; the message says why."""


def server_words(udp: bool) -> list[str]:
    """The server's command."""
    return ["iperf", "-s", "-p", str(PORT), *(["-u"] if udp else [])]


def client_words(ip: str, udp_rate: str, seconds: int = SECONDS) -> list[str]:
    """The client's command. `udp_rate`: the rate of datagrams, such as 10M; "" for TCP."""
    return ["iperf", "-p", str(PORT), "-t", str(seconds), "-c", ip, *(["-u", "-b", udp_rate] if udp_rate else [])]


def measure(client: LabNode, server: LabNode, ip: str, udp_rate: str = "", seconds: int = SECONDS) -> list[str]:
    """The throughput that the server saw (if it said so), and the one that the client saw.

    Raises:
        IperfError: no program, no connection, or no report.
    """
    with tempfile.TemporaryFile(dir=WORK) as said:
        serving = _start(server, server_words(bool(udp_rate)), said)
        try:
            _wait_until_it_listens(serving, server, "udp" if udp_rate else "tcp", said)
            sent = _send(client, client_words(ip, udp_rate, seconds), seconds)
            if not FIGURE.search(sent):
                raise IperfError(
                    "iperf: found no result of the client; expected a throughput. The client said: "
                    f"{sent.strip() or 'nothing'}"
                )
            received = _report(said)
        finally:
            _end(serving)
    return [found[-1] for found in (FIGURE.findall(received), FIGURE.findall(sent)) if found]


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


def _wait_until_it_listens(serving: subprocess.Popen[bytes], server: LabNode, kind: str, said: IO[bytes]) -> None:
    limit = time.monotonic() + LISTENS_WITHIN_S
    while not listens(server.pid, kind, PORT):
        if serving.poll() is not None or time.monotonic() > limit:
            text = _text(said).strip() or "nothing"
            raise IperfError(
                f"iperf: found no server on {server.name}, port {PORT}; expected one that listens. The server said: "
                f"{text}"
            )
        time.sleep(LOOK_AGAIN_S)


def listens(pid: int, kind: str, port: int) -> bool:
    """Whether somebody listens in the network of a process."""
    sockets = [line.split() for line in Path(f"/proc/{pid}/net/{kind}").read_text().splitlines()[1:]]
    return any(words[1].endswith(f":{port:04X}") and words[3] == LISTENING[kind] for words in sockets)


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
