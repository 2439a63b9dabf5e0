"""Faulty transports, and one receiver for those that go back, two for the others; FAULTY has their ends by name."""

import struct

NUMBER = struct.Struct(">I")


class Parts:
    def __init__(self, data, largest):
        room = largest - NUMBER.size
        self.parts = [NUMBER.pack(at // room) + data[at : at + room] for at in range(0, len(data), room)]
        self.below = self.fresh = 0
        self.missing = set(range(len(self.parts)))
        self.timeout = 1.0


class NoBackoff(Parts):
    """Go-back-N with a fixed timeout that never grows."""

    window = 32

    def on_start(self, now):
        end = min(len(self.parts), self.below + self.window)
        out, self.fresh = self.parts[self.fresh : end], max(self.fresh, end)
        return out, now + 0.4

    def on_datagram(self, now, datagram):
        self.below = max(self.below, *NUMBER.unpack(datagram))
        self.fresh = max(self.fresh, self.below)
        return self.on_start(now)

    def on_timer(self, now):
        self.fresh = self.below
        return self.on_start(now)


class NoRetransmission(NoBackoff):
    """A window, and nothing is ever sent again."""

    window = 8

    def on_start(self, now):
        return super().on_start(now)[0], None

    def on_timer(self, now):
        return [], None


class NoWindow(Parts):
    """Everything at once, and what is not acknowledged again after a timeout that grows; it looks at no window."""

    def on_start(self, now):
        return [self.parts[number] for number in sorted(self.missing)], now + self.timeout

    def on_datagram(self, now, datagram):
        self.missing -= set(NUMBER.unpack(datagram))
        return [], now + self.timeout

    def on_timer(self, now):
        self.timeout = min(2 * self.timeout, 8.0)
        return self.on_start(now)


class Holds:
    def __init__(self, largest):
        self.below = 0
        self.held = {}

    def on_datagram(self, now, datagram, room):
        (number,) = NUMBER.unpack_from(datagram)
        if self.takes(number):
            self.held[number] = datagram[NUMBER.size :]
        delivered = b""
        while self.below in self.held:
            delivered += self.held.pop(self.below)
            self.below += 1
        return [NUMBER.pack(self.answer(number))], delivered, None

    def on_timer(self, now, room):
        return [], b"", None

    def takes(self, number):
        return number >= self.below

    def answer(self, number):
        return self.below


class InOrder(Holds):
    def takes(self, number):
        return number == self.below


class AnswersEach(Holds):
    def answer(self, number):
        return number


FAULTY = {
    "no_backoff": (NoBackoff, InOrder),
    "no_retransmission": (NoRetransmission, Holds),
    "no_window": (NoWindow, AnswersEach),
}
