"""Accounts name what keeps them from closing."""

from types import SimpleNamespace
from typing import Any

from scpslab.lab.accounts import Accounts
from scpslab.lab.stages import ARRIVAL_COUNTERS, ENTRY_COUNTERS


def written(tmp_path: Any, pieces: int) -> list[str]:
    """What is said of a direction that carried two packets, and had some of them in one piece."""
    counters = dict.fromkeys((*ENTRY_COUNTERS, *ARRIVAL_COUNTERS), 0) | {"offered_packets": 2, "delivered_packets": 2}
    plan = SimpleNamespace(delay_ns=0, delay_table=None)
    network = SimpleNamespace(
        directions=[SimpleNamespace(link="hop", name="forward", plan=plan, arriving=1)],
        managed_queues=dict,
        longest_ns=lambda: 0,
        stages=SimpleNamespace(
            account=lambda _: dict(counters),
            pieces=lambda _: pieces,
            followed=lambda _: 0,
            recorded=SimpleNamespace(stop=lambda: None),
        ),
    )
    settled = SimpleNamespace(drawn=frozenset())
    folders = SimpleNamespace(records=tmp_path)
    context = SimpleNamespace(network=network, settled=settled, folders=folders, now_ns=lambda: 0)
    return Accounts(context).write()  # type: ignore[arg-type]


def test_a_kernel_that_cuts_packets_up_behind_the_queue_is_named(tmp_path):
    assert written(tmp_path, 0) == []
    (said,) = written(tmp_path, 3)
    assert said.startswith("hop.forward: found 3 pieces of several packets (UDP segmentation offload)")
    assert said.endswith("Use engine virtual or live, or switch the program's offload off")
