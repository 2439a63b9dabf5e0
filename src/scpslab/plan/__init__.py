"""Plans as typed values: one strict reader, one writer (docs/plan-format.md).

Order of reading: plan.py, its parts, schema.py, consistency.py.

Only the standard library, `units.py`, `names.py`, `kinds.py` and `strict_json.py` are used: plans are read inside the
guest too.
"""

from __future__ import annotations

import json

from scpslab.core import strict_json
from scpslab.core.strict_json import JsonObject
from scpslab.plan import schema
from scpslab.plan.cell import FORMAT, Plan
from scpslab.plan.consistency import network_problems, problems
from scpslab.plan.format_1 import upgraded
from scpslab.plan.network import NetworkPlan
from scpslab.plan.schema import PlanError


def read(fields: object) -> Plan:
    """The plan that JSON's value states.

    Raises:
        PlanError: the first thing in it that cannot be, and where.
    """
    if isinstance(fields, dict):
        newer = fields.get("format")
        if isinstance(newer, int) and not isinstance(newer, bool) and newer > FORMAT:
            raise PlanError(f"format: found {schema.shown(newer)}; expected at most {FORMAT}, what this scpslab knows")
        if newer == 1:
            fields = upgraded(fields)
    plan = schema.read(Plan, fields)
    for place, found in problems(plan):
        raise PlanError(f"{place}: {found}")
    return plan


def read_network(fields: object) -> NetworkPlan:
    """The network that JSON's value states.

    Raises:
        PlanError: as for `read`.
    """
    network = schema.read(NetworkPlan, fields)
    for place, found in network_problems(network):
        raise PlanError(f"{place}: {found}")
    return network


def parse(content: bytes | str) -> Plan:
    """The plan that a file's content states.

    Raises:
        PlanError: it is no plan.
    """
    try:
        fields = strict_json.loads(content)
    except strict_json.JsonError as error:
        raise PlanError(f"{error}; expected one JSON object") from error
    return read(fields)


def write(plan: Plan) -> JsonObject:
    """What a plan's JSON is to say."""
    return schema.write(plan)


def text(plan: Plan) -> str:
    """A plan as its file has it."""
    return json.dumps(write(plan), indent=1) + "\n"
