"""A transfer by the programs of the hosts' images (images/CONTRACT.md): the lab says what to do, and when which end was
over.
"""

import json
from collections.abc import Callable

from scpslab.core.strict_json import JsonObject
from scpslab.lab.loop import SECOND_NS
from scpslab.lab.nodes import DockerNode
from scpslab.lab.workloads import Workload

from scpslab.kinds.workloads.endpoint import plan as planned

# A receiver waits longer than the sender tries: it is the sender that gives up.
RECEIVER_EXTRA_S = 120
LISTENING_LIMIT_S = 60
UNSUPPORTED = 127
ROLES = ("receive", "send")
LINES_KEPT = 1000


class Endpoint(Workload[planned.Endpoint], kind="endpoint"):
    """Role `receive` at one node, `send` at the other; completed when both say so by their exit code and the receiver
    had every byte.
    """

    def prepare(self) -> None:
        """Starts the receiver and waits until it says that it listens."""
        self.listening = False
        self.codes: dict[str, int] = {}
        self.lines = dict.fromkeys(ROLES, 0)
        self.last: dict[str, JsonObject] = {}
        self._do("receive", self.spec.to, self.spec.start_ns + self.spec.timeout_ns + RECEIVER_EXTRA_S * SECOND_NS)
        limit_ns = self.context.now_ns() + LISTENING_LIMIT_S * SECOND_NS
        if not self.context.loop.run_until(lambda: self.listening or "receive" in self.codes, limit_ns):
            line = f'line {{"event": "listening"}} within {LISTENING_LIMIT_S} s'
            self.fail(f"{self.spec.to}: found no {line}; expected one")

    def start(self) -> None:
        """Starts the sender."""
        if self.outcome:
            return
        self.records.write(event="start", role="send", t_s=self.context.epoch.now_s())
        self._do("send", self.spec.from_, self.spec.timeout_ns)
        self.give_up_after(self.spec.timeout_ns)

    def _do(self, role: str, host: str, timeout_ns: int) -> None:
        spec = self.spec
        variables = {
            "SCPSLAB_ADDRESS": spec.to_ip if role == "receive" else spec.from_ip,
            "SCPSLAB_PEER": spec.from_ip if role == "receive" else spec.to_ip,
            "SCPSLAB_PORT": spec.port,
            "SCPSLAB_BYTES": spec.bytes_,
            "SCPSLAB_SEED": spec.payload_seed,
            "SCPSLAB_PATIENCE_S": -(-timeout_ns // SECOND_NS),
            "SCPSLAB_OPTIONS": spec.options.to if role == "receive" else spec.options.from_,
        }
        node = self.network.node(host)
        assert isinstance(node, DockerNode)
        command = node.role(role, {name: str(value) for name, value in variables.items()})
        self.run_command(host, command, self._on_line(role, host), self._on_exit(role, host))

    def _on_line(self, role: str, host: str) -> Callable[[str], None]:
        def take(line: str) -> None:
            try:
                fields = json.loads(line)
            except ValueError:
                fields = None
            if not isinstance(fields, dict):
                self.fail(f"{host}: found the line {line[:80]!r} from role {role}; expected a JSON object")
                return
            self.listening = self.listening or (role == "receive" and fields.get("event") == "listening")
            self.last[role] = fields
            self.lines[role] += 1
            if self.lines[role] <= LINES_KEPT:
                self.records.write(event="said", role=role, t_s=self.context.epoch.now_s(), line=fields)

        return take

    def _on_exit(self, role: str, host: str) -> Callable[[int], None]:
        def take(code: int) -> None:
            self.codes[role] = code
            counted = self.last.get(role, {}).get("bytes")
            self.records.write(event="end", role=role, t_s=self.context.epoch.now_s(), code=code, bytes=counted)
            if code == UNSUPPORTED:
                self.fail(f"{host}'s image cannot do role {role} (exit code {code})", host, outcome="unsupported")
            elif code:
                self.fail(f"role {role} on {host} ended with exit code {code}", host)
            elif role == "receive" and not self.listening:
                self.fail(f"role {role} on {host} ended without having listened", host)
            elif len(self.codes) == len(ROLES):
                self._judge()
            if self.outcome not in ("", "completed"):
                self.stop()

        return take

    def _judge(self) -> None:
        arrived, expected = self.last.get("receive", {}).get("bytes"), self.spec.bytes_
        if arrived == expected:
            self.finish("completed")
        else:
            self.fail(f"found {arrived} bytes in the receiver's last line; expected {expected}")
