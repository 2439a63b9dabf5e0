"""A policy that sends one segment, waits for its answer, and sends the next one."""

PATIENCE = 2.0


class Policy:
    def __init__(self, segments, packet_bytes):
        self.next = 0

    def on_start(self, now):
        return [0], now + PATIENCE

    def on_ack(self, now, ack):
        self.next = ack.below
        return [self.next], now + PATIENCE

    def on_timer(self, now):
        return [self.next], now + PATIENCE
