"""The scenario file described for editors (JSON Schema) and for people (Markdown), both from the model."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel

from scpslab.documents.described import schema_of, tables
from scpslab.scenario import model, probes, services, workloads
from scpslab.scenario.stacks import STACKS, SpSettings

SCHEMA_ID = "scenario.schema.json"
SECTIONS: tuple[tuple[str, type[BaseModel]], ...] = (
    ("The file", model.ScenarioFile),
    ("links.LINK.DIRECTION", model.Direction),
    ("links.LINK.DIRECTION.queue", model.Queue),
    ("links.LINK.DIRECTION.delay_table", model.DelayStep),
    ("links.LINK.DIRECTION.errors", model.Errors),
    ("links.LINK.DIRECTION.errors.outages", model.Outage),
    *((f"hosts.HOST: stack {name}", stack) for name, stack in STACKS.items()),
    ("hosts.HOST.sp: stack scps", SpSettings),
    ("routers.ROUTER", model.RouterSettings),
    *((f"services: kind {name}", kind) for name, kind in services.NAMED.items()),
    *((f"workloads: kind {name}", kind) for name, kind in workloads.KINDS.items()),
    *((f"probes: kind {name}", kind) for name, kind in probes.KINDS.items()),
    ("script: do link", model.LinkStep),
    ("script: do run", model.RunStep),
    ("sweep.AXIS: values", model.Values),
    ("sweep.AXIS: cases", model.Cases),
    ("limits", model.Limits),
    ("checks", model.Check),
    ("variants.VARIANT", model.Variant),
)
HEAD = """# Scenario reference

How to write one: [scenarios.md](scenarios.md). This page is made from the models in `src/scpslab/` by `scpslab schema` and a test keeps it
current; `scenarios/scenario.schema.json` says the same to editors.

Quantities are text with a unit: rates in `bit/s`, `kbit/s`, `Mbit/s`, `Gbit/s`; durations in `ns`, `us`, `ms`, `s`, `min`, `h`; sizes in `B`, `kB`, `MB`,
`GB` (powers of 1000) and `KiB`, `MiB`, `GiB` (powers of 1024). Numbers without a unit are refused where a unit is meant. Probabilities are plain
numbers from 0 to 1. *required* means that there is no default; – that the key may be left out and then says nothing.
"""


def schema() -> dict[str, Any]:
    """The JSON Schema (draft 7) of a scenario file."""
    return schema_of(model.ScenarioFile, SCHEMA_ID, "scpslab scenario")


def reference() -> str:
    """The reference as Markdown: a table for every part."""
    return HEAD + tables(SECTIONS)
