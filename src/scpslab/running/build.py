"""What determines the results of a run, as short text: two machines compare it before their cells become one run."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Self

from scpslab import plan as plans
from scpslab.engine import Engine
from scpslab.errors import CapabilityError, UsageError
from scpslab.plan import Plan

LENGTH = 16
PLANS, ENGINE = "plans", "engine"
_WORD = re.compile(rf"([a-z][a-z-]{{0,30}})=([0-9a-f]{{{LENGTH}}})", re.ASCII)


@dataclass(frozen=True)
class Build:
    """Digests by name: `plans` of all plans of a run, `engine` of all that carries them out, and of each built part (kernel, guest, tools, stack)."""

    digests: Mapping[str, str]

    @classmethod
    def of(cls, plans: Mapping[str, Plan], engine: Engine) -> Self:
        """The build of a prepared engine for these plans."""
        parts = engine.facts().get("parts", {})
        own = {
            PLANS: plans_digest({cell_id: plan_digest(plan) for cell_id, plan in plans.items()}),
            ENGINE: engine_digest({engine.hash(plan) for plan in plans.values()}),
        }
        return cls(own | {name: str(part["sha256"])[:LENGTH] for name, part in sorted(parts.items())})

    @classmethod
    def parse(cls, text: str) -> Self:
        """The build that `str` has written.

        Raises:
            UsageError: it is none.
        """
        words = [_WORD.fullmatch(word) for word in text.split(",")]
        found = {word[1]: word[2] for word in words if word}
        if not all(words) or not {PLANS, ENGINE} <= set(found):
            raise UsageError(
                f'--build: found "{text[:80]}"; expected digests such as plans=0123456789abcdef,engine=… . Take them from "scpslab cluster build SCENARIO".'
            )
        return cls(found)

    @classmethod
    def read(cls, fields: Any) -> Self | None:
        """The build that a manifest states; None if it states none."""
        is_build = isinstance(fields, dict) and all(_WORD.fullmatch(f"{name}={value}") for name, value in fields.items())
        return cls(fields) if is_build and {PLANS, ENGINE} <= set(fields) else None

    def __str__(self) -> str:
        return ",".join(f"{name}={digest}" for name, digest in self.digests.items())

    def differences(self, expected: Build) -> list[str]:
        """Where this build gives other results than another, in words; empty if it gives the same."""
        found = []
        if self.digests[PLANS] != expected.digests[PLANS]:
            found.append(f"other plans ({self.digests[PLANS]} instead of {expected.digests[PLANS]}): the scenario, a setting or scpslab is not the same")
        if self.digests[ENGINE] != expected.digests[ENGINE]:
            parts = [name for name in self.digests if name not in (PLANS, ENGINE) and self.digests[name] != expected.digests.get(name, self.digests[name])]
            found += [f"another {name} ({self.digests[name]} instead of {expected.digests[name]})" for name in parts]
            found += [] if parts else [f"another lab program or SCPS stack (engine {self.digests[ENGINE]} instead of {expected.digests[ENGINE]})"]
        return found

    def require(self, expected: Build) -> None:
        """Refuses to work for a run of another build.

        Raises:
            CapabilityError: the builds differ; the message says where.
        """
        if differences := self.differences(expected):
            raise CapabilityError(
                f"this machine: found {'; '.join(differences)}; expected the build of the machine that asked. "
                "Use the same version of scpslab, and the same built parts: share or copy the cache folder."
            )


def plan_digest(plan: Plan) -> str:
    """The same for equal plans."""
    return _short([json.dumps(plans.write(plan), sort_keys=True)])


def plans_digest(of: Mapping[str, str]) -> str:
    """The same for the same digests of plans by cell id, in any order."""
    return _short(f"{cell_id} {digest}\n" for cell_id, digest in sorted(of.items()))


def engine_digest(hashes: Iterable[str]) -> str:
    """The same for the same hashes of engines."""
    return _short(f"{one}\n" for one in sorted(hashes))


def _short(lines: Iterable[str]) -> str:
    digest = hashlib.sha256()
    for line in lines:
        digest.update(line.encode())
    return digest.hexdigest()[:LENGTH]
