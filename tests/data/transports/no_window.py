"""A faulty transport: everything is sent at once, and what is not acknowledged again after a timeout that grows; it
looks at no window.
"""

import struct

NUMBER = struct.Struct(">I")


class Sender:
    def __init__(self, data, largest):
        room = largest - NUMBER.size
        self.parts = [data[at : at + room] for at in range(0, len(data), room)]
        self.missing = set(range(len(self.parts)))
        self.timeout = 1.0

    def on_start(self, now):
        return [NUMBER.pack(number) + self.parts[number] for number in sorted(self.missing)], now + self.timeout

    def on_datagram(self, now, datagram):
        self.missing -= set(NUMBER.unpack(datagram))
        return [], now + self.timeout

    def on_timer(self, now):
        self.timeout = min(2 * self.timeout, 8.0)
        return self.on_start(now)


class Receiver:
    def __init__(self, largest):
        self.below = 0
        self.held = {}

    def on_datagram(self, now, datagram, room):
        (number,) = NUMBER.unpack_from(datagram)
        if number >= self.below:
            self.held[number] = datagram[NUMBER.size :]
        delivered = b""
        while self.below in self.held:
            delivered += self.held.pop(self.below)
            self.below += 1
        return [NUMBER.pack(number)], delivered, None

    def on_timer(self, now, room):
        return [], b"", None
