"""A new scenario for a person to edit: the text of a file with comments, from a few choices.

What does not fit is found by reading the text again.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from scpslab.core.choices import one_of
from scpslab.core.errors import UsageError
from scpslab.plan.stacks import STACKS as CARRIERS
from scpslab.plan.topology import Network, Parameter, catalogue
from scpslab.plan.topology.routes import addresses
from scpslab.plan.workloads import WORKLOADS
from scpslab.scenario import workloads
from scpslab.scenario.presets import PRESETS
from scpslab.scenario.stacks import DEFAULT, STACKS
from scpslab.scenario.topologies import defaults

TEXT = """\
kind: scenario
version: 1
title: {title}

# The network. "scpslab list topologies" shows all networks with their parameters.
topology: {topology}
# To change a parameter, remove the "#" of these lines. These are the default values:
# parameters:
{parameters}

# The link whose errors are studied, in both directions. BER is the probability that a bit is wrong; 0: none is. Other keys with their default values stand behind "#"; other
# error models (clustered, gilbert-elliott); docs/scenario-reference.md lists all.
links:
  {link}:
    {data}: {{errors: {{model: independent, ber: 0}}}}  # {of_data}
    {ack}: {{errors: {{model: independent, ber: 0}}}}  # {of_ack}

# What generates traffic, from whom to whom. Kinds: {kinds}.
workloads:
  - {workload}

# What observes. A capture shows every packet of a node (captures/NAME.pcap, for Wireshark).
probes:
  - {{kind: capture, node: {source}}}
  - {{kind: capture, node: {sink}}}

# Axes: every combination of their values is run, each of them "repeats" times.
sweep:
  # One case for each stack, with what it sets. "hosts.*" is every host of the network; "scpslab list presets" shows the presets.
  stack:
    cases:
{cases}
  ber: {{set: [links.{link}.*.errors.ber], values: [{bers}]}}

# At equal repeat all stacks meet the same bit errors: "scpslab compare RUN --axis stack" compares them in pairs. 5 is the least for an interval worth having.
repeats: {repeats}
# All random numbers follow from the seed: the same file gives the same bytes. Change it for other errors.
seed: {seed}
# A cell that needs more virtual time is ended, and counts as incomplete.
limits: {{lab_time: 4000 s}}
"""


@dataclass(frozen=True)
class Choices:
    """What a person chooses. Bit error rates, sizes and numbers are text as it will stand in the file."""

    title: str
    topology: str = "point_to_point"
    workload: str = "bulk"
    stacks: Sequence[str] = ("cubic", "bbr")
    bers: Sequence[str] = ("0", "1e-6")
    size: str | None = None
    repeats: int = 5
    seed: int = 1


def networks() -> list[str]:
    """The topologies that can be chosen: all in which every stack can talk to every other.

    Routers of SCPS-NP join hosts with network: np only.
    """
    return [name for name in catalogue.names() if not any(link.ppp is None for link in _described(name).serial_links)]


def workload_kinds() -> list[str]:
    """The workloads that can be chosen: all that are no load on others, and that need no image of somebody else's."""
    return [
        name
        for name, kind in workloads.KINDS.items()
        if not kind.is_load and not kind.needs_file and not WORKLOADS[name].knows_images
    ]


def stack_cases() -> dict[str, Mapping[str, str]]:
    """What can be chosen as a stack, and what it sets on every host: presets, and the kernel's congestion controls."""
    found: dict[str, Mapping[str, str]] = {preset: {"hosts.*.preset": preset} for preset in PRESETS}
    for name, stack in STACKS.items():
        if name != DEFAULT and not CARRIERS[name].is_own_image:
            found |= {f"{name}-{preset}": {"hosts.*.stack": name, "hosts.*.preset": preset} for preset in stack.presets}
    return found | {
        name: {"hosts.*.preset": "modern", "hosts.*.congestion_control": name}
        for name in STACKS[DEFAULT].controls
        if name not in found
    }


def has_size(workload: str) -> bool:
    """Whether a kind of workload sends a number of bytes."""
    return "size" in workloads.KINDS[workload].model_fields


def text(choices: Choices) -> str:
    """The file.

    Raises:
        UsageError: something was chosen that there is not; one line for each.
    """
    cases = stack_cases()
    wrong = [
        _unknown("topology", choices.topology, networks()),
        _unknown("workload", choices.workload, workload_kinds()),
    ]
    wrong += [_unknown("stacks", name, cases) for name in choices.stacks]
    if choices.size is not None and not wrong[1] and not has_size(choices.workload):
        wrong.append(
            f'--size: found "{choices.size}" with the workload {choices.workload}, which has no size; '
            "expected none. Leave it out."
        )
    if complaints := [line for line in dict.fromkeys(wrong) if line]:
        raise UsageError("\n".join(complaints))
    module, network = catalogue.module(choices.topology), _described(choices.topology)
    source, sink = network.roles["source"], network.roles["sink"]
    planned = network.plan()
    first, *others = [one for one in addresses(planned) if one.node == sink]
    # The link that is studied is that of the longest delay.
    hop = max(planned.paths.path(source, sink, str(first.ip.ip)), key=lambda hop: hop.delay_ns)
    data = hop.direction
    ack = next(direction for direction in hop.link.directions if direction.name != data.name)
    size = f", size: {choices.size or '1 MB'}" if has_size(choices.workload) else ""
    return TEXT.format(
        title=json.dumps(choices.title, ensure_ascii=False),
        topology=choices.topology,
        parameters="\n".join(_parameter(name, spec) for name, spec in module.PARAMETERS.declared.items()),
        link=hop.link.name,
        data=data.name,
        of_data=defaults(data),
        ack=ack.name,
        of_ack=defaults(ack),
        kinds=", ".join(workload_kinds()),
        workload=(
            f"{{kind: {choices.workload}, name: transfer, from: {source}, to: {first.name if others else sink}{size}}}"
        ),
        source=source,
        sink=sink,
        cases="\n".join(
            f"      {name}: {{{', '.join(f'{key}: {value}' for key, value in cases[name].items())}}}"
            for name in dict.fromkeys(choices.stacks)
        ),
        bers=", ".join(dict.fromkeys(choices.bers)),
        repeats=choices.repeats,
        seed=choices.seed,
    )


def _unknown(option: str, word: str, choices: Mapping[str, object] | Sequence[str]) -> str:
    return "" if word in choices else f'--{option}: found "{word}"; {one_of(word, choices)}'


def _described(topology: str) -> Network:
    """A topology with its defaults."""
    module = catalogue.module(topology)
    network: Network = module.describe(module.PARAMETERS.read({}))
    return network


def _parameter(name: str, spec: Parameter) -> str:
    """A line of a parameter; one that is calculated unless it is given stays a comment."""
    return (
        f"#   # {name}: calculated; {spec.doc}"
        if spec.default is None
        else f"#   {name}: {spec.text(spec.default)}  # {spec.doc}"
    )
