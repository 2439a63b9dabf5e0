"""The lab program's entry: runs the cell, or gives a shell on its network, and always leaves a status."""

from __future__ import annotations

import sys
import traceback

from scpslab import plan as plans
from scpslab.lab import disciplines, probes, services, workloads
from scpslab.lab.cell import VECTORS, Lab, Prepared, finish
from scpslab.lab.place import CELL, WORK
from scpslab.lab.records import Status
from scpslab.lab.shell import interact, run_script
from scpslab.lab.template import FILE, Space, Template, reseed, snapshot
from scpslab.plan import Plan, error_models, stacks
from scpslab.plan import probes as planned_probes
from scpslab.plan import services as planned_services
from scpslab.plan import workloads as planned_workloads

# What is loaded before the snapshot is there in every cell, and costs none of them anything.
LAYERS = (
    *(
        planned_workloads.WORKLOADS,
        planned_services.SERVICES,
        planned_probes.PROBES,
        error_models.MODELS,
        stacks.STACKS,
    ),
    *(workloads.KINDS, services.KINDS, probes.KINDS, disciplines.DISCIPLINES),
)


def main() -> int:
    """Runs /cell/plan.json; where there is a template, sets it up first, for many cells.

    Exit code 0 when a status was written.
    """
    WORK.mkdir(parents=True, exist_ok=True)
    try:
        for layer in LAYERS:
            layer.load()
        status = _run(_go_on_from_template()) if (CELL / FILE).exists() else _alone(_plan())
    except Exception as error:  # the last line of defence: whatever broke, the user gets its text and the logs
        (WORK / "logs").mkdir(exist_ok=True)
        (WORK / "logs" / "lab-error.log").write_text(traceback.format_exc())
        status = Status("failed", f"{type(error).__name__}: {error}")
        if sys.stdout.isatty():
            traceback.print_exc()
    finish(status)
    return 0


def _plan() -> Plan:
    return plans.parse((CELL / "plan.json").read_bytes())


def _alone(plan: Plan) -> Status:
    if plan.cell.shell:
        return interact(plan)
    return _run(Lab(plan.network, Space.of(plan, VECTORS)).take(plan))


def _run(cell: Prepared) -> Status:
    return run_script(cell, cell.plan.cell.mininet) if cell.plan.cell.mininet else cell.run()


def _go_on_from_template() -> Prepared:
    """A cell on the network of the template.

    Nothing of its folder may be looked at before the snapshot, which is taken of other folders than the cell has.
    """
    template = Template.parse((CELL / FILE).read_bytes())
    lab = Lab(template.network, template.space)
    snapshot()
    plan = _plan()
    reseed(plan.cell.kernel_seed)
    return lab.take(plan)
