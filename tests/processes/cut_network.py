"""A TCP connection that can be cut: while it is, nothing passes in either direction, and nobody is told."""

import socket
import threading
from contextlib import suppress


class CutNetwork:
    """Listens on loopback and passes everything on to another port there."""

    def __init__(self, port: int) -> None:
        self.target = ("127.0.0.1", port)
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.address = f"tls://127.0.0.1:{self.listener.getsockname()[1]}"
        self.passes = threading.Event()
        self.passes.set()
        self.connections = 0
        self._open: list[socket.socket] = []
        self._start(self._accept)

    def cut(self) -> None:
        """From now on nothing passes."""
        self.passes.clear()

    def mend(self) -> None:
        """What was held back passes, and everything after it."""
        self.passes.set()

    def close(self) -> None:
        """Ends all connections."""
        self.mend()
        for one in [self.listener, *self._open]:
            # Only this wakes a thread that waits for it.
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
            one.close()

    def _start(self, work, *arguments) -> None:
        threading.Thread(target=work, args=arguments, daemon=True).start()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                near, _ = self.listener.accept()
                self._open.append(near)
                self._start(self._join, near)

    def _join(self, near: socket.socket) -> None:
        self.passes.wait()
        try:
            far = socket.create_connection(self.target)
        except OSError:
            near.close()
            return
        self._open.append(far)
        self.connections += 1
        self._start(self._pump, near, far)
        self._pump(far, near)

    def _pump(self, source: socket.socket, target: socket.socket) -> None:
        with suppress(OSError):
            while content := source.recv(1 << 16):
                self.passes.wait()
                target.sendall(content)
            target.shutdown(socket.SHUT_WR)
