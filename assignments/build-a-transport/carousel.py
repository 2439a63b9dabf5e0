"""A transport without acknowledgements: the sender repeats the whole file, round after round, until the lab ends it.

It shows how a datagram is made and read, and what a receiver delivers. It is correct, and wasteful.
"""

import struct

NUMBER = struct.Struct(">I")
SPACING = 0.02


class Sender:
    def __init__(self, data, largest):
        room = largest - NUMBER.size
        self.parts = [data[at : at + room] for at in range(0, len(data), room)]
        self.next = 0

    def on_start(self, now):
        return self.on_timer(now)

    def on_datagram(self, now, datagram):
        return [], now + SPACING

    def on_timer(self, now):
        datagram = NUMBER.pack(self.next) + self.parts[self.next]
        self.next = (self.next + 1) % len(self.parts)
        return [datagram], now + SPACING


class Receiver:
    def __init__(self, largest):
        self.below = 0
        self.held = {}

    def on_datagram(self, now, datagram, room):
        (number,) = NUMBER.unpack_from(datagram)
        if number >= self.below:
            self.held[number] = datagram[NUMBER.size :]
        delivered = []
        while self.below in self.held:
            delivered.append(self.held.pop(self.below))
            self.below += 1
        return [], b"".join(delivered), None

    def on_timer(self, now, room):
        return [], b"", None
