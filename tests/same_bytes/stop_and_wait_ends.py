"""Two ends that are correct, and slow: one datagram at a time, and an acknowledgement of each."""

import struct

NUMBER = struct.Struct(">I")


class Sender:
    def __init__(self, data, largest):
        room = largest - NUMBER.size
        self.parts = [data[at : at + room] for at in range(0, len(data), room)]
        self.next = 0

    def on_start(self, now):
        return self.send(now)

    def on_datagram(self, now, datagram):
        (expected,) = NUMBER.unpack(datagram)
        if expected <= self.next:
            return [], now + 1.0
        self.next = expected
        return self.send(now)

    def on_timer(self, now):
        return self.send(now)

    def send(self, now):
        if self.next == len(self.parts):
            return [], None
        return [NUMBER.pack(self.next) + self.parts[self.next]], now + 1.0


class Receiver:
    def __init__(self, largest):
        self.expected = 0

    def on_datagram(self, now, datagram, room):
        delivered = b""
        if NUMBER.unpack_from(datagram) == (self.expected,):
            delivered = datagram[NUMBER.size :]
            self.expected += 1
        return [NUMBER.pack(self.expected)], delivered, None

    def on_timer(self, now, room):
        return [], b"", None
