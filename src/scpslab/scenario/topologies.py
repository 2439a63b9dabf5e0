"""Where a scenario's network comes from: a file of topologies/ by its name, or a Python file of the user's own by its
path.

A topology of one's own is code that runs with the user's rights. It is looked at before it runs, and its mistakes
become messages with file and line.
"""

from __future__ import annotations

import ast
import contextlib
import hashlib
import importlib.util
import re
import sys
import traceback
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import ModuleType

from scpslab import plan as plans
from scpslab.core import units
from scpslab.core.choices import one_of
from scpslab.core.contents import content_of
from scpslab.core.folders import instead_of_a_file, somebody_elses
from scpslab.core.project import PACKAGE, ROOT
from scpslab.core.seeds import ANY, DIRECTIONS
from scpslab.plan import PlanError, schema
from scpslab.plan.serial_links import SerialDirection
from scpslab.plan.topology import Direction, Network, OneProduct, Parameter, Parameters

FOLDER = ROOT / "topologies"
PAGE = "docs/write-a-topology.md"
SUFFIX = ".py"
# Whatever is longer is no description of a network.
LARGEST_BYTES = 1 << 20
PART = re.compile(r"^(nodes|links|serial_links)\[(\d+)\]")

Values = Mapping[str, int | None]


class TopologyError(ValueError):
    """A topology that cannot be used; the message says where, what was found, what was expected and what to do."""


@dataclass(frozen=True)
class Topology:
    """The parameters of a topology, and the function from their values in base units to a network; it raises
    TopologyError.
    """

    parameters: Parameters
    describe: Callable[[Values], Network]

    def described(self, given: Mapping[str, object]) -> Network:
        """The network for what is given of its parameters.

        Raises:
            TopologyError: there is none.
            UnitError: an unknown name or an invalid value.
        """
        return self.describe(self.parameters.read(given))


def defaults(direction: Direction | SerialDirection) -> str:
    """What a topology gives a direction, as a scenario would say it."""
    found = {"rate": ("rate", direction.rate_bps), "delay": ("duration", direction.delay_ns)}
    if isinstance(direction, Direction):
        found["overhead"] = "size", direction.overhead_bytes
        found["queue.limit"] = "size", direction.queue.limit_bytes if direction.queue else None
    said = {key: units.text(kind, value) for key, (kind, value) in found.items() if value}
    if isinstance(direction, Direction) and isinstance(direction.queue, OneProduct):
        said["queue.limit"] = "one bandwidth-delay product"
    return ", ".join(f"{key}: {text}" for key, text in said.items())


class Topologies(ABC):
    """Finds the topologies that scenarios name."""

    @abstractmethod
    def find(self, name: str, folder: Path) -> Topology:
        """The topology of that name or path; paths count from `folder`.

        Raises:
            TopologyError: there is none, or its file is not a topology.
        """


def is_path(name: str) -> bool:
    """Whether a scenario's word for its topology is a path, not the name of a file of topologies/."""
    return name.startswith(("./", "../", "/"))


def names() -> list[str]:
    """The names of the project's topologies."""
    return sorted(file.stem for file in FOLDER.glob(f"*{SUFFIX}"))


@cache
def module(name: str) -> ModuleType:
    """The module of one of the project's topologies: PARAMETERS and describe. Raises KeyError for an unknown name."""
    path = FOLDER / f"{name}{SUFFIX}"
    spec = importlib.util.spec_from_file_location(f"scpslab_topologies.{name}", path)
    if not path.is_file() or spec is None or spec.loader is None:
        raise KeyError(name)
    loaded = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(loaded)
    return loaded


def of_the_project(name: str, folder: Path) -> Topology:
    """A topology of topologies/.

    Raises:
        TopologyError: there is none of that name.
    """
    try:
        found = module(name)
    except KeyError:
        beside = f" For your own file, write ./{name}{SUFFIX}." if (folder / f"{name}{SUFFIX}").is_file() else ""
        raise TopologyError(f'found "{name}"; {one_of(name, names())}{beside}') from None
    began_as = DIRECTIONS.get(name, {})

    def describe(values: Values) -> Network:
        network: Network = found.describe(dict(values))
        for link in network.all_links if began_as else ():
            there, back = ((link.name, direction.name) for direction in link.directions)
            network.streams[there], network.streams[back] = began_as.get(link.name, began_as[ANY])
        return network

    return Topology(found.PARAMETERS, describe)


class NoOwn(Topologies):
    """The project's topologies alone."""

    def find(self, name: str, folder: Path) -> Topology:
        """The project's topology; no file of anybody else's is run."""
        if is_path(name):
            raise TopologyError(
                f'found "{name}" without a record of its networks; expected topologies.json beside the scenario. '
                "Export the run again."
            )
        return of_the_project(name, folder)


class OnDisk(Topologies):
    """Topologies of the project and of the user. `is_trusted`: also files that others own or may write are run."""

    def __init__(self, *, is_trusted: bool = False) -> None:
        self.is_trusted = is_trusted
        self.own: dict[Path, OwnTopology] = {}

    def find(self, name: str, folder: Path) -> Topology:
        """The topology; a file of the user's own is read and run once."""
        if not is_path(name):
            return of_the_project(name, folder)
        own = self.file(name, folder)
        return Topology(own.parameters, own.describe)

    def file(self, name: str, folder: Path) -> OwnTopology:
        """The file of the user's own at a path."""
        path = folder / name
        if path not in self.own:
            self.own[path] = OwnTopology(path, is_trusted=self.is_trusted)
        return self.own[path]


class OwnTopology:
    """A Python file with PARAMETERS and describe, as topologies/ has them."""

    def __init__(self, path: Path, *, is_trusted: bool) -> None:
        self.path = path
        self.source = _read(path)
        tree = _parsed(path, self.source)
        self.line = _line_of_describe(path, tree)
        if not is_trusted and (whose := somebody_elses(path)):
            raise TopologyError(
                f"{path}: found {whose}; expected a file that you or root own and nobody else may write, because a "
                "topology is code that runs with your rights. Read it, then repeat the command with --trust."
            )
        module = _run(path, tree, self.sha256)
        self.parameters = _parameters(path, module.PARAMETERS)
        self._describe = module.describe
        self._known: dict[tuple[tuple[str, int | None], ...], Network] = {}

    @property
    def sha256(self) -> str:
        """The digest of the file as it was read."""
        return hashlib.sha256(self.source).hexdigest()

    def describe(self, values: Values) -> Network:
        """The network for parameter values in base units."""
        at = tuple(values.items())
        if at not in self._known:
            self._known[at] = self._described(values)
        return self._known[at]

    def _described(self, values: Values) -> Network:
        here = f"{self.path}:{self.line}"
        with _messages(self.path, self.line):
            first, second = self._describe(dict(values)), self._describe(dict(values))
        if not isinstance(first, Network):
            raise TopologyError(
                f'{here}: describe: found {_kind(first)}; expected a Network. End the function with "return net".'
            )
        # First what is wrong with it: a rate that is not a number is not equal to itself.
        if said := wrong_with(first):
            raise TopologyError(f"{here}: describe: {said}")
        if first != second:
            raise TopologyError(
                f"{here}: describe: found another network at the second call; expected the same one. "
                "Use no random numbers and no time."
            )
        return first


def wrong_with(network: Network) -> str:
    """What the lab could not build of a network, with what was expected; "" if it can build all of it."""
    try:
        plans.read_network(schema.write(network.plan()))
    except PlanError as error:
        return f"{_in_names(network, str(error))}. Correct the network."
    except ValueError as error:
        return str(error)
    except (AttributeError, KeyError, TypeError) as error:
        return (
            f"found {type(error).__name__}: {error}; expected hosts, routers, switches and links as {PAGE} shows "
            "them. Correct the network."
        )
    return ""


def _in_names(network: Network, said: str) -> str:
    """A complaint about a plan, with names of nodes and links where the plan has numbers."""
    match = PART.match(said)
    if match is None:
        return said
    part = getattr(network, match[1])[int(match[2])]
    return f"{match[1].removesuffix('s').replace('_', ' ')} {part.name}{said[match.end() :]}"


def _read(path: Path) -> bytes:
    try:
        found = instead_of_a_file(path)
        if not found and path.is_file():
            return content_of(path, LARGEST_BYTES)
    except (OSError, ValueError) as error:
        raise TopologyError(
            f"{path}: found {getattr(error, 'strerror', None) or error}; expected a topology. Correct the path."
        ) from error
    if found:
        raise TopologyError(f"{path}: found {found}; expected the file of a topology. Correct the path.")
    beside = sorted(f"./{file.name}" for file in path.parent.glob(f"*{SUFFIX}")) if path.parent.is_dir() else []
    _, near, name = one_of(f"./{path.name}", beside).partition(" Did you mean ")
    raise TopologyError(
        f"{path}: found no such file; expected a topology. Paths count from the scenario's folder.{near}{name}"
    )


def _parsed(path: Path, source: bytes) -> ast.Module:
    try:
        return ast.parse(source, str(path))
    except SyntaxError as error:
        raise TopologyError(
            f"{path}:{error.lineno or 1}: found {error.msg}; expected Python. Correct the line."
        ) from error
    except (ValueError, RecursionError, MemoryError) as error:
        raise TopologyError(
            f"{path}: found {error or type(error).__name__}; expected Python. Correct the file."
        ) from error


def _line_of_describe(path: Path, tree: ast.Module) -> int:
    """The line of `def describe`. A file without it, or without PARAMETERS, is not run at all."""
    named: dict[str, int] = {}
    for part in tree.body:
        if isinstance(part, ast.FunctionDef):
            named[part.name] = part.lineno
        elif isinstance(part, ast.Assign | ast.AnnAssign):
            targets = part.targets if isinstance(part, ast.Assign) else [part.target]
            named |= {target.id: part.lineno for target in targets if isinstance(target, ast.Name)}
    missing = [name for name in ("PARAMETERS", "describe") if name not in named]
    if missing:
        raise TopologyError(
            f"{path}: found no {' and no '.join(missing)}; expected PARAMETERS = Parameters(…) and def describe(p). "
            f"See {PAGE}."
        )
    return named["describe"]


def _run(path: Path, tree: ast.Module, digest: str) -> ModuleType:
    module = ModuleType(f"scpslab_own_{path.stem}_{digest[:12]}")
    module.__file__ = str(path)
    # Classes of the file look for their module here. A compiled copy beside the file would be taken for it after a
    # change within a second.
    sys.modules[module.__name__] = module
    with _messages(path, 1):
        exec(compile(tree, str(path), "exec", dont_inherit=True), module.__dict__)  # noqa: S102  # the user's own file, which the scenario names by its path
    return module


@contextlib.contextmanager
def _messages(path: Path, line: int) -> Iterator[None]:
    """Errors of the user's code become messages with its line.

    What the code prints goes to standard error: other programs read our output.
    """
    try:
        with contextlib.redirect_stdout(sys.stderr):
            yield
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        frames = traceback.extract_tb(error.__traceback__)
        own = [frame.lineno for frame in frames if frame.filename == str(path)]
        place = f"{path}:{own[-1] if own else line}"
        # What scpslab itself finds in a description has the shape of our messages already.
        is_ours = isinstance(error, ValueError) and Path(frames[-1].filename).is_relative_to(PACKAGE)
        said = " ".join(str(error).split())
        if is_ours:
            found = said if said.endswith((".", "?")) else f"{said}. Correct the line."
        else:
            what = f"{type(error).__name__}{': ' if said else ''}{said}"
            found = f"found {what}; expected a description of a network. Correct the file."
        raise TopologyError(f"{place}: {found}") from error


def _parameters(path: Path, found: object) -> Parameters:
    """What a file has as PARAMETERS, if they are parameters."""
    if not isinstance(found, Parameters):
        raise TopologyError(f"{path}: found PARAMETERS of type {_kind(found)}; expected Parameters(…). See {PAGE}.")
    for name, one in found.declared.items():
        if not isinstance(one, Parameter):
            expected = "expected rate(…), duration(…), size(…) or count(…)"
            raise TopologyError(f"{path}: PARAMETERS: {name}: found {_kind(one)}; {expected}. See {PAGE}.")
    return found


def _kind(value: object) -> str:
    return "nothing" if value is None else type(value).__name__
