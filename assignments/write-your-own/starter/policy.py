"""My policy. It works, and it is slow: it sends one segment, waits for the answer, and sends the next one.

What the lab calls, and what an answer says: scpslab docs policies. What print() writes is in the log of the trial.
"""

PATIENCE = 2.0


class Policy:
    def __init__(self, segments, packet_bytes):
        """`segments`: how many there are, numbered from 0.

        `packet_bytes`: the size of a full packet, headers included.
        """
        self.segments = segments
        self.next = 0

    def on_start(self, now):
        """At time 0. Returns the segments to send now, and when on_timer is to be called (None: never)."""
        return [0], now + PATIENCE

    def on_ack(self, now, ack):
        """An answer has arrived. ack.segment, .copy and .sent: the packet that is answered; .below, .arrived,
        .holes: what the receiver has.
        """
        self.next = ack.below
        return [self.next], now + PATIENCE

    def on_timer(self, now):
        """The time that was asked for has come, and no answer since."""
        return [self.next], now + PATIENCE
