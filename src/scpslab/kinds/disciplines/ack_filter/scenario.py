"""The acknowledgement filter: of waiting acknowledgements of a connection only the newest is kept."""

from typing import ClassVar

from scpslab.scenario.disciplines import Discipline


class AckFilter(Discipline, kind="ack-filter"):
    """Nothing but a limit."""

    says: ClassVar = {
        "discipline": "drops a waiting acknowledgement when a newer one of its connection arrives",
        "limit": "bytes of the kernel's memory, about 800 for an acknowledgement",
    }
