"""A faulty transport: go-back-N with a fixed timeout that never grows."""

import struct

NUMBER = struct.Struct(">I")
WINDOW, TIMEOUT = 32, 0.4


class Sender:
    def __init__(self, data, largest):
        room = largest - NUMBER.size
        self.parts = [data[at : at + room] for at in range(0, len(data), room)]
        self.below = self.fresh = 0

    def on_start(self, now):
        out = []
        while self.fresh < min(len(self.parts), self.below + WINDOW):
            out.append(NUMBER.pack(self.fresh) + self.parts[self.fresh])
            self.fresh += 1
        return out, now + TIMEOUT

    def on_datagram(self, now, datagram):
        self.below = max(self.below, *NUMBER.unpack(datagram))
        self.fresh = max(self.fresh, self.below)
        return self.on_start(now)

    def on_timer(self, now):
        self.fresh = self.below
        return self.on_start(now)


class Receiver:
    def __init__(self, largest):
        self.below = 0

    def on_datagram(self, now, datagram, room):
        delivered = b""
        if NUMBER.unpack_from(datagram) == (self.below,):
            delivered = datagram[NUMBER.size :]
            self.below += 1
        return [NUMBER.pack(self.below)], delivered, None

    def on_timer(self, now, room):
        return [], b"", None
