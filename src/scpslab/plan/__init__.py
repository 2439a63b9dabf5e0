"""Plans as typed values: one strict reader, one writer (docs/plan-format.md).

Order of reading: plan.py, its parts, schema.py, consistency.py.

Only the standard library and a few modules of core (`choices.py`, `kinds.py`, `names.py`, `problems.py`,
`strict_json.py`, `units.py`) are used: plans are read inside the guest too.
"""

import json
from dataclasses import replace

from scpslab.core import strict_json
from scpslab.core.problems import Problem, dotted
from scpslab.plan import schema
from scpslab.plan.cell import FORMAT, Plan
from scpslab.plan.consistency import network_problems, problems
from scpslab.plan.network import NetworkPlan
from scpslab.plan.schema import PlanError, write


def read(fields: object) -> Plan:
    """The plan that JSON's value states.

    Raises:
        PlanError: the first thing in it that cannot be, and where.
    """
    if isinstance(fields, dict):
        found = fields.get("format")
        if type(found) is int and found > FORMAT:
            raise PlanError(f"format: found {schema.shown(found)}; expected at most {FORMAT}, what this scpslab knows")
        if type(found) is int and found == 1:
            raise PlanError(f"format: found 1, that of scpslab 0.3.0; expected {FORMAT}, or scpslab 0.4.0 to read it")
    plan = schema.read(Plan, fields)
    for problem in problems(plan):
        raise _error(problem)
    return plan


def read_network(fields: object) -> NetworkPlan:
    """The network that JSON's value states.

    Raises:
        PlanError: as for `read`.
    """
    network = schema.read(NetworkPlan, fields)
    for problem in network_problems(network):
        raise _error(problem)
    return network


def _error(problem: Problem) -> PlanError:
    """A problem without its advice, which is for authors of scenarios: what to do about a plan says who reads it."""
    return PlanError(f"{dotted(problem.at, 0)}: {replace(problem, advice='')}")


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


def text(plan: Plan) -> str:
    """A plan as its file has it."""
    return json.dumps(write(plan), indent=1) + "\n"
