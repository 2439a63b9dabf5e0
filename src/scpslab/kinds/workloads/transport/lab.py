"""A transfer of datagrams between two programs of the user's: the lab carries their datagrams, and compares what the
receiver delivers with what the sender was given.

Each program is a process without rights in its node (lab/confined.py); nothing joins them but the link. What arrives
waits in the receiver's buffer until the receiver reads it, at its rate.
"""

from typing import Any

from scpslab.core.strict_json import JsonObject
from scpslab.lab.confined import Confined, Ends, shown
from scpslab.lab.loop import SECOND_NS

from scpslab.kinds.workloads.policy.lab import content
from scpslab.kinds.workloads.transport import plan as planned


class Transport(Ends[planned.Transport], kind="transport"):
    """Completed when the receiver has delivered every byte."""

    def open(self) -> None:
        """Opens the sockets, and starts both programs."""
        spec = self.spec
        self.largest = spec.segment_bytes
        self.segments = -(-spec.bytes_ // self.largest)
        self.data = content(spec.payload_seed, 0, spec.bytes_)
        self.delivered = self.read_bytes = self.waiting_bytes = self.free_ns = 0
        self.sent = self.sent_bytes = self.returned = self.unread = 0
        # Nobody else can send from this address and port: only the sender's datagrams count.
        self.sending = self.open_socket(spec.from_, spec.from_ip, spec.port, self._returned)
        self.receiving = self.open_socket(spec.to, spec.to_ip, spec.port, self._arrived)
        given = {"data": self.data, "largest": self.largest}
        self.sender = Confined(self, spec.from_, "Sender", given, self._do_sender)
        self.receiver = Confined(
            self, spec.to, "Receiver", {"largest": self.largest}, self._do_receiver, lambda: (self._room(),)
        )

    def start(self) -> None:
        """The first event."""
        if not self.outcome:
            self.begun()
            self.sender.call("on_start")

    def _room(self) -> int:
        return self.spec.buffer_bytes - self.waiting_bytes

    def _do_sender(self, said: JsonObject) -> None:
        for datagram in self._datagrams(said):
            if self.may_send(self.sent, "datagrams"):
                self.sent += 1
                self.sent_bytes += len(datagram)
                self.send(self.sending, datagram, (self.spec.to_ip, self.spec.port))

    def _do_receiver(self, said: JsonObject) -> None:
        datagrams, delivered = self._datagrams(said), _octets(said.get("deliver"))
        end = self.delivered + len(delivered)
        if delivered != self.data[self.delivered : end]:
            rest = self.data[self.delivered :]
            right = next(at for at, one in enumerate(delivered) if bytes((one,)) != rest[at : at + 1])
            raise ValueError(
                f"found a wrong byte at offset {self.delivered + right} of what the receiver delivered; "
                f"expected the {len(self.data)} bytes of the sender, in order"
            )
        if end > self.read_bytes:
            came = f"{self.read_bytes} bytes of datagrams"
            raise ValueError(f"found {end} bytes delivered after {came}; expected nothing that has not arrived")
        self.delivered = end
        for datagram in datagrams:
            if self.may_send(self.returned, "datagrams"):
                self.returned += 1
                self.send(self.receiving, datagram, (self.spec.from_ip, self.spec.port))
        if self.delivered == len(self.data) and not self.outcome:
            self.complete(
                sent_packets=self.sent,
                sent_bytes=self.sent_bytes,
                returned_packets=self.returned,
                unread_packets=self.unread,
            )

    def _datagrams(self, said: JsonObject) -> list[bytes]:
        listed = said.get("send")
        datagrams = [_octets(one) for one in listed] if isinstance(listed, list) else [b""]
        if wrong := [size for one in datagrams if not 0 < (size := len(one)) <= self.largest]:
            raise ValueError(f"found a datagram of {wrong[0]} bytes; expected 1 to {self.largest}")
        return datagrams

    def _arrived(self, datagram: bytes, source: Any) -> None:
        # Whatever else comes to the port is no part of the transfer.
        if source != (self.spec.from_ip, self.spec.port):
            return
        if len(datagram) > self._room():
            self.unread += 1
            return
        self.waiting_bytes += len(datagram)
        if self.spec.read_rate_bps is None:
            self._read(datagram)
            return
        took_ns = len(datagram) * 8 * SECOND_NS // self.spec.read_rate_bps
        self.free_ns = max(self.free_ns, self.context.now_ns()) + took_ns
        self.context.loop.at(self.free_ns, lambda: self._read(datagram))

    def _read(self, datagram: bytes) -> None:
        self.waiting_bytes -= len(datagram)
        self.read_bytes += len(datagram)
        self.receiver.call("on_datagram", datagram)

    def _returned(self, datagram: bytes, source: Any) -> None:
        if source == (self.spec.to_ip, self.spec.port):
            self.sender.call("on_datagram", datagram)

    def so_far(self) -> JsonObject:
        """Its bytes and datagrams."""
        counted = {"sent_packets": self.sent, "returned_packets": self.returned, "unread_packets": self.unread}
        return {"bytes": self.spec.bytes_, "delivered_bytes": self.delivered, **counted}


def _octets(said: object) -> bytes:
    """The bytes that a program said in hexadecimal digits."""
    try:
        return bytes.fromhex(said if isinstance(said, str) else "?")
    except ValueError as error:
        raise ValueError(f"found {shown(said, 40)} for bytes; expected hexadecimal digits") from error
