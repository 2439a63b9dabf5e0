"""A policy that is correct, and slow: it sends one segment, waits for the answer, and sends the next one."""


class Policy:
    def __init__(self, segments, packet_bytes):
        self.segments = segments
        self.next = 0

    def on_start(self, now):
        return [0], now + 3.0

    def on_ack(self, now, ack):
        self.next = max(self.next, ack.below)
        return [self.next], now + 3.0

    def on_timer(self, now):
        return [self.next], now + 3.0
