"""The lab program's entry: runs the cell, or gives a shell on its network, and always leaves a status."""

import os
import signal
import subprocess
import sys
import time
import traceback
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from scpslab import kinds
from scpslab import plan as plans
from scpslab.core.kinds import Registry
from scpslab.lab.cell import OPEN, VECTORS, Lab, Prepared, finish
from scpslab.lab.context import Context
from scpslab.lab.loop import SECOND_NS
from scpslab.lab.mininet_script import serve as serve_script
from scpslab.lab.place import BASH_GOES_ON, BASH_PROMPT, CELL, END_OF_SCRIPT, IS_ALONE, OUT, PROGRAMS, WORK
from scpslab.lab.prompt import LabCLI
from scpslab.lab.records import PACKETS, STATES, Status
from scpslab.lab.template import FILE, Space, Template, reseed, snapshot
from scpslab.plan import Plan
from scpslab.plan.mininet import MininetScript
from scpslab.plan.nodes import Switch

# Kinds that are not the project's.
OWN_KINDS = PROGRAMS / "own_kinds"


def main() -> int:
    """Runs /cell/plan.json; where there is a template, sets it up first, for many cells.

    Exit code 0 when a status was written.
    """
    WORK.mkdir(parents=True, exist_ok=True)
    try:
        # What is loaded before the snapshot is there in every cell, and costs none of them anything.
        if OWN_KINDS.is_dir():
            Registry.add(OWN_KINDS)
        kinds.load("plan", "lab")
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


TOPOLOGIES = str(PROGRAMS / "topologies")
TERMINAL = 0  # standard input
CONSOLE_LEVEL = Path("/proc/sys/kernel/printk")
# How often somebody who watches a session gets its packets, and how full their record may become.
LOOK_S, FULL = 0.5, 0.8


def interact(plan: Plan) -> Status:
    """Serves the person at the console until they leave."""
    if plan.cell.shell == "bash":
        _bash(plan.network.topology)
    else:
        _mininet(plan)
    if IS_ALONE:
        # The kernel's word that it powers down is for nobody.
        CONSOLE_LEVEL.write_text("0\n")
    return Status("completed")


def _mininet(plan: Plan) -> None:
    cell = Lab(plan.network, Space.of(plan, VECTORS)).take(plan)
    cell.start_services()
    hosts = [node.name for node in plan.network.nodes if not isinstance(node, Switch)]
    if script := plan.cell.mininet:
        in_foreground(lambda: serve_script(cell, script))
        return
    print(f"The network {plan.network.topology} is up. Nodes: {', '.join(hosts)}.")
    print(f"Type a node and a command (for example {hosts[0]} ip addr), or one of link, capture, help, exit.")

    shown = Shown(cell) if plan.cell.packets else None
    # On the user's machine from the first line on, so that nothing is lost if the lab is ended from outside.
    prompt = LabCLI(cell.network, cell.settled, CELL / OUT, cell.services)

    def serve() -> None:
        prompt.serve()
        prompt.close()

    if in_foreground(serve, shown) > 0:
        raise ChildProcessError("the prompt failed")


class Shown:
    """The record of a session's packets for somebody who watches: where there is something new, it is made again.

    Once it is nearly full it begins anew. Its time is that of the transcript.
    """

    def __init__(self, cell: Prepared) -> None:
        self.stages, self.owners, self.began_ns = cell.network.stages, cell.network.owners, time.monotonic_ns()
        self.told: tuple[int, ...] = ()

    def __call__(self) -> None:
        """Waits a while, then takes a look."""
        time.sleep(LOOK_S)
        recorded = self.stages.recorded
        if (counts := recorded.counts()) == self.told:
            return
        self.told = counts
        new, records = CELL / OUT / "shown", CELL / OUT / "records"
        for folder in (new, records):
            folder.mkdir(exist_ok=True)
        self.stages.write_packets(new, self.owners, self.began_ns)
        if recorded.used() > FULL * recorded.room:
            recorded.switch(True)
        for name in (PACKETS, STATES):
            # A reader never sees half of it.
            (new / name).rename(records / name)


def run_script(cell: Prepared, script: MininetScript) -> Status:
    """Runs the Mininet script of a cell whose network is up; returns the cell's status."""
    started_ns = Context.now_ns()
    code = in_foreground(lambda: serve_script(cell, script))
    print(END_OF_SCRIPT, flush=True)
    for node in cell.network.mininet.hosts:
        # What the script has left running would go on sending while the accounts are read.
        node.start(["sh", "-c", "kill -9 -1"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).wait()
    ended = cell.run()
    ended = replace(ended, virtual_s=(Context.now_ns() - started_ns) / SECOND_NS)
    if ended.reason.startswith(OPEN):
        ended = replace(ended, status="completed", reason=f"{ended.reason}. Commands lose packets uncounted")
    if code and ended.status == "completed":
        return replace(ended, status="incomplete", reason=f"the script ended with exit code {code}")
    return ended


def in_foreground(serve: Callable[[], None], meanwhile: Callable[[], None] | None = None) -> int:
    """Runs a function in a process group of its own in the terminal's foreground: Ctrl-C reaches the prompt, and not
    the nodes and daemons of the lab.

    Returns its exit code, as that of a program; below 0 where a signal ended it. `meanwhile` is called again and again.
    """
    sys.stdout.flush()
    child = os.fork()
    if child == 0:
        code = 1
        try:
            os.setpgid(0, 0)
            _take_terminal()
            # Nobody would be there to continue the prompt, and these keys are for programs in nodes.
            for number in (signal.SIGTSTP, signal.SIGQUIT):
                signal.signal(number, lambda _number, _frame: None)
            serve()
            code = 0
        except SystemExit as end:
            if isinstance(end.code, str):
                print(end.code, file=sys.stderr)
            code = end.code & 255 if isinstance(end.code, int) else int(end.code is not None)
        except BaseException:  # this process must not return into the lab's code
            traceback.print_exc()
        finally:
            sys.stdout.flush()
            os._exit(code)
    ended, status = os.waitpid(child, os.WNOHANG if meanwhile else 0)
    while meanwhile and not ended:
        meanwhile()
        ended, status = os.waitpid(child, os.WNOHANG)
    _take_terminal()
    return os.waitstatus_to_exitcode(status)


def _take_terminal() -> None:
    """Puts this process's group into the foreground of the terminal, if there is one."""
    if not os.isatty(TERMINAL):
        return
    before = signal.signal(signal.SIGTTOU, signal.SIG_IGN)
    os.tcsetpgrp(TERMINAL, os.getpgrp())
    signal.signal(signal.SIGTTOU, before)


def _bash(topology: str) -> None:
    print(f"A shell in the guest. For example: mn --custom {TOPOLOGIES}/{topology}.py --topo {topology}")
    environment = os.environ | {"PYTHONPATH": str(PROGRAMS), "PS1": BASH_PROMPT, "PS2": BASH_GOES_ON}
    subprocess.run(["bash", "--norc", "-i"], cwd=TOPOLOGIES, env=environment, check=False)
