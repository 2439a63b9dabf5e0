"""My transport. It runs, and delivers nothing yet.

What the lab calls: scpslab docs policies. What print() writes is in the logs of the trial: one for each end.
"""


class Sender:
    def __init__(self, data, largest):
        """`data`: all bytes that the receiver has to deliver. `largest`: bytes in the largest datagram."""
        self.data = data
        self.largest = largest

    def on_start(self, now):
        """At time 0. Returns the datagrams to send now, and when on_timer is to be called (None: never)."""
        return [], None

    def on_datagram(self, now, datagram):
        """A datagram of your receiver has arrived."""
        return [], None

    def on_timer(self, now):
        """The time that was asked for last has come."""
        return [], None


class Receiver:
    def __init__(self, largest):
        """It knows nothing of the file, not even its size."""
        self.largest = largest

    def on_datagram(self, now, datagram, room):
        """A datagram of your sender was read. `room`: bytes that the buffer before you has free.

        Returns the datagrams to send back, the bytes to deliver next, and when on_timer is to be called.
        """
        return [], b"", None

    def on_timer(self, now, room):
        """The time that was asked for last has come."""
        return [], b"", None
