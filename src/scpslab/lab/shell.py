"""Prompts for people: Mininet's prompt on the plan's network, or the guest's own shell, for example for `mn --custom`."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import traceback
from collections.abc import Callable
from typing import Any

from scpslab.lab.cell import LabCell
from scpslab.lab.place import BASH_PROMPT, CELL, OUT, PROGRAMS
from scpslab.lab.prompt import LabCLI
from scpslab.plan.nodes import Switch

TOPOLOGIES = str(PROGRAMS / "topologies")
TERMINAL = 0  # standard input


def interact(cell: LabCell) -> dict[str, Any]:
    """Serves the person at the console until they leave."""
    if cell.plan.cell.shell == "bash":
        _bash(cell.plan.topology)
    else:
        _mininet(cell)
    return {"status": "completed", "reason": "", "epoch_realtime_ns": None, "virtual_s": None}


def _mininet(cell: LabCell) -> None:
    cell.set_up()
    cell.take(cell.plan)
    cell.start_services()
    hosts = [node.name for node in cell.plan.nodes if not isinstance(node, Switch)]
    print(f"The network {cell.plan.topology} is up. Nodes: {', '.join(hosts)}.")
    print(f"Type a node and a command (for example {hosts[0]} ip addr), or one of link, watch, capture, help, exit.")

    def serve() -> None:
        # On the user's machine from the first line on, so that nothing is lost if the lab is ended from outside.
        prompt = LabCLI(cell.network, CELL / OUT, cell.services)
        prompt.serve()
        prompt.close()

    in_foreground(serve)


def in_foreground(serve: Callable[[], None]) -> None:
    """Runs a function in a process group of its own in the terminal's foreground: Ctrl-C reaches the prompt, and not the nodes and daemons of the lab.

    Raises:
        ChildProcessError: the function failed.
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
        except BaseException:  # this process must not return into the lab's code
            traceback.print_exc()
        finally:
            sys.stdout.flush()
            os._exit(code)
    _, status = os.waitpid(child, 0)
    _take_terminal()
    if os.waitstatus_to_exitcode(status) > 0:
        raise ChildProcessError("the prompt failed")


def _take_terminal() -> None:
    """Puts this process's group into the foreground of the terminal, if there is one."""
    if not os.isatty(TERMINAL):
        return
    before = signal.signal(signal.SIGTTOU, signal.SIG_IGN)
    os.tcsetpgrp(TERMINAL, os.getpgrp())
    signal.signal(signal.SIGTTOU, before)


def _bash(topology: str) -> None:
    print(f"A shell in the guest. For example: mn --custom {TOPOLOGIES}/{topology}.py --topo {topology}")
    subprocess.run(["bash", "--norc", "-i"], cwd=TOPOLOGIES, env=os.environ | {"PYTHONPATH": str(PROGRAMS), "PS1": BASH_PROMPT}, check=False)
