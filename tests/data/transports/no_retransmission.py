"""A faulty transport: a window, and nothing is ever sent again."""

import struct

NUMBER = struct.Struct(">I")
WINDOW = 8


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
        return out, None

    def on_datagram(self, now, datagram):
        self.below = max(self.below, *NUMBER.unpack(datagram))
        return self.on_start(now)

    def on_timer(self, now):
        return [], None


class Receiver:
    def __init__(self, largest):
        self.below = 0
        self.held = {}

    def on_datagram(self, now, datagram, room):
        (number,) = NUMBER.unpack_from(datagram)
        self.held[number] = datagram[NUMBER.size :]
        delivered = b""
        while self.below in self.held:
            delivered += self.held.pop(self.below)
            self.below += 1
        return [NUMBER.pack(self.below)], delivered, None

    def on_timer(self, now, room):
        return [], b"", None
