"""A policy that sends everything at once, and every 0.4 s everything again that has not been answered."""

EVERY = 0.4


class Policy:
    def __init__(self, segments, packet_bytes):
        self.unanswered = set(range(segments))
        self.wake = 0.0

    def on_start(self, now):
        return self.on_timer(now)

    def on_ack(self, now, ack):
        self.unanswered.discard(ack.segment)
        return [], self.wake

    def on_timer(self, now):
        self.wake = now + EVERY
        return sorted(self.unanswered), self.wake
