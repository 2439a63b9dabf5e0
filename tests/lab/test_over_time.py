"""The figure over-time: its queue is that of the slowest direction; cells on one axis compare. And the list of losses
has the direction and the flow that they hit.
"""

from scpslab.analysis.figures.canvas import words_in
from tests.lab.command import scpslab

# Acknowledgements meet a hundred times as many bit errors as data, and a neighbour uses the same hop.
NOISE = """
links:
  hop:
    forward: {queue: {limit: 2 MB}, errors: {model: independent, ber: 1e-6}}
    return: {errors: {model: independent, ber: 1e-4}}
workloads:
  - {kind: bulk, name: transfer, from: h1, to: h2, size: 300 kB, timeout: 300 s}
  - {kind: bulk, name: other, from: h1, to: h2, size: 300 kB, port: 5002, timeout: 300 s}
probes:
  - {kind: capture, node: h1}
  - {kind: capture, node: h2}
"""


def caption_of(run):
    """The caption of the figure that `scpslab plot` draws of a run."""
    scpslab("plot", run.folder, "--figure", "over-time", "--format", "png")
    return words_in(run.folder / "figures" / "over-time.png").caption


def test_losses_are_those_of_a_direction_and_of_a_flow(run):
    ran = run(NOISE)
    lost = [line for line in scpslab("losses", ran.folder, "--format", "csv").splitlines() if ",corrupt,hop," in line]
    counts = {
        (direction, is_own): sum(f",hop,{direction}," in line and (":5001" in line) == is_own for line in lost)
        for direction in ("forward", "return")
        for is_own in (True, False)
    }
    accounts = {line["direction"]: line["corrupt_packets"] for line in ran.cell.records("accounting")}

    caption = caption_of(ran)

    assert {direction: counts[direction, True] + counts[direction, False] for direction in accounts} == accounts
    assert min(counts.values()) > 0
    assert "Queue: before hop, forward direction." in caption
