"""A rate controller that measures the rate of the slowest hop by pairs of packets, and sends again what was overtaken.

Rate: packets leave in pairs, back to back, at first in trains. The slowest hop pulls the two apart by the time that it
takes for one packet, and so their answers. Loss: the path does not reorder. When the answer to a later packet arrives,
an unanswered earlier one is lost, unless `below` and `holes` say that it arrived and only its answer was lost.
Silence: after some round trips without an answer, one packet is sent from time to time until the path is back.
"""

from collections import deque
from statistics import median

TRAIN = 8
FIRST_TIMEOUT = 2.0
# Slightly below the measured rate, so that queues drain.
MARGIN = 1.03
MOST_HOLES = 64


class Policy:
    def __init__(self, segments, packet_bytes):
        self.segments = segments
        self.fresh = 0
        self.again = deque()
        self.sent = []
        self.latest = {}
        self.seconds = set()
        self.answered = -1
        self.answered_at = 0.0
        self.below, self.end, self.holes = 0, 0, []
        self.spacings = deque(maxlen=9)
        self.round_trip = None
        self.next_at = 0.0
        self.quiet_until = FIRST_TIMEOUT

    def on_start(self, now):
        out = []
        self._send_train(out)
        return out, self.quiet_until

    def on_ack(self, now, ack):
        trip = now - ack.sent
        self.round_trip = trip if self.round_trip is None else min(trip, self.round_trip)
        if ack.copy == self.answered + 1 and ack.copy in self.seconds:
            self.spacings.append(now - self.answered_at)
        self._learn(ack)
        for copy in range(self.answered + 1, ack.copy):
            segment = self.sent[copy]
            if self.latest[segment] == copy and self._is_missing(segment):
                self.again.append(segment)
        self.answered, self.answered_at = max(self.answered, ack.copy), now
        self.quiet_until = now + self._timeout()
        return self._go(now)

    def on_timer(self, now):
        if now < self.quiet_until:
            return self._go(now)
        # Silence: everything on its way counts as lost, and one packet asks whether the path is back.
        for copy in range(self.answered + 1, len(self.sent)):
            segment = self.sent[copy]
            if self.latest[segment] == copy and self._is_missing(segment):
                self.again.append(segment)
        self.answered = len(self.sent) - 1
        out = []
        if self.spacings:
            self._send_one(out)
        else:
            # No two answers of a train arrived one after the other: another train.
            self._send_train(out)
        self.quiet_until = now + self._timeout()
        return out, self.quiet_until

    def _go(self, now):
        out = []
        if self.spacings:
            interval = median(self.spacings) * MARGIN
            window = 1.5 * self.round_trip / interval + 2 * TRAIN
            while now >= self.next_at and len(self.sent) - self.answered - 1 < window and self._send_one(out):
                if self._send_one(out):
                    self.seconds.add(len(self.sent) - 1)
                self.next_at = max(self.next_at, now - interval) + 2 * interval
            is_waiting = (self.again or self.fresh < self.segments) and len(self.sent) - self.answered - 1 < window
            if is_waiting:
                return out, min(self.next_at, self.quiet_until)
        return out, self.quiet_until

    def _send_train(self, out):
        first = len(self.sent)
        while len(self.sent) - first < TRAIN and self._send_one(out):
            pass
        self.seconds.update(range(first + 1, len(self.sent)))

    def _send_one(self, out):
        segment = None
        while self.again and segment is None:
            first = self.again.popleft()
            segment = first if self._is_missing(first) else None
        if segment is None:
            if self.fresh >= self.segments:
                return False
            segment = self.fresh
            self.fresh += 1
        self.latest[segment] = len(self.sent)
        self.sent.append(segment)
        out.append(segment)
        return True

    def _timeout(self):
        return FIRST_TIMEOUT if self.round_trip is None else self.round_trip * 1.25 + 0.15

    def _learn(self, ack):
        """What has arrived; answers come in order, so the last one knows most."""
        self.below, self.holes = ack.below, ack.holes
        inside = sum(last - first + 1 for first, last in ack.holes)
        # Of more than 64 holes the rest is not told.
        self.end = ack.arrived + inside if len(ack.holes) < MOST_HOLES else ack.holes[-1][1] + 1

    def _is_missing(self, segment):
        return (
            segment >= self.end or any(first <= segment <= last for first, last in self.holes)
            if segment >= self.below
            else False
        )
