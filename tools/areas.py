"""The tests beyond `make test`: their areas, and which of them a change concerns.

    python3 tools/areas.py                 the areas, a line
    python3 tools/areas.py --tests AREA    its test files
    python3 tools/areas.py --changed BASE  the test files that the changes since a commit concern, and "rust" for the
    Rust part; all of them where BASE is "" or no commit that is known here
    python3 tools/areas.py --why BASE      the same, each with the way from it to a changed file

A changed Python file concerns the tests that import it, directly or not. Whoever imports a name from a package depends
on the module that defines it, not on the others that the package's `__init__` offers. Where imports do not tell:

- A module that is named in a string counts as imported (`-m scpslab.setup`, a program in a string).
- What is loaded by name is in LOADED.
- A test that starts the program depends on the commands whose names are words of its strings, or its helpers', and on
  the drawing of figures, which ends many commands, where they have a word of it (DRAWING).
- A file that is no Python concerns what a Python file or test would that reads it (READ_BY). A file that is in no rule,
  and one that is gone, concerns everything.

Only the standard library is used here: .ci/run asks before anything is set up.
"""

import ast
import re
import subprocess
import sys
from collections import deque
from collections.abc import Iterable, Iterator
from fnmatch import fnmatch
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def _lab(*names: str) -> tuple[str, ...]:
    return tuple(f"tests/lab/test_{name}.py" for name in names)


# An area's test files, as patterns. The area rust has none: it is `make -C stack test`.
AREAS: dict[str, tuple[str, ...]] = {
    "unit": ("tests/unit/*", "tests/processes/*"),
    "engine": (
        *_lab("api", "appliance", "fork_*", "host", "iperf3", "killed_runs", "live_samples", "new_kinds", "own_kinds"),
        *_lab("processor", "running", "sandbox", "script", "shell", "snapshots", "timeouts"),
    ),
    "links": (
        *_lab(
            "arrivals", "drawn", "hosts", "link_model", "measured_answers", "over_time", "owners", "packets", "paths"
        ),
        *_lab("after", "contacts", "ipv6", "profiles", "queue_disciplines", "rates", "serial", "shaping", "switches"),
    ),
    "transports": _lab("fp", "gateways", "program", "scps", "services"),
    "teaching": _lab(
        "assignments",
        "autograder",
        "class",
        "costly_submissions",
        "inginious",
        "policy",
        "semester",
        "transport",
        "trials",
    ),
    "containers": _lab("docker", "own_images"),
    "pages": _lab("guest_programs", "mininet", "pages", "studio"),
    "rust": (),
}
RUST = "rust"
PROGRAM, APP = "src/scpslab/__main__.py", "src/scpslab/cli/app.py"
DRAWING = "src/scpslab/analysis/figures/drawing.py"
OF_DRAWING = {"plot", "draw", "figures", "report", "pictures", "png", "svg"}
# What is loaded by a name that is put together, or packed for the guest or the appliance.
LOADED: dict[str, tuple[str, ...]] = {
    "src/scpslab/engine/__init__.py": ("src/scpslab/engine/virtual.py", "src/scpslab/engine/[lh]*.py"),
    "src/scpslab/engine/bundle.py": ("src/scpslab/lab/run_lab.py",),
    "src/scpslab/engine/appliance/machine.py": ("src/scpslab/engine/appliance/inside.py",),
    "src/scpslab/scenario/topologies.py": ("topologies/*.py",),
    "src/scpslab/setup/recipes.py": ("tools/build/*.py",),
    # Commands of every page.
    "tests/lab/pages.py": ("src/scpslab/cli/*.py", "src/scpslab_course/cli/*.py", DRAWING),
    # Whole copies of the project.
    "tests/lab/copied_tree.py": ("src/*.py", "topologies/*.py"),
    "tests/lab/test_autograder.py": ("src/*.py",),
    "tests/processes/test_new_kinds.py": ("src/*.py",),
}
# Calls that load the modules of this name of every kind.
LOADS_KINDS = ("Layer", "load_kinds")
# Who reads a file that is no Python: the first pattern that fits counts. Names of areas stand for their tests.
READ_BY: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("stack/*", ("transports", RUST)),
    ("scenarios/*", ("src/scpslab/scenario/load.py",)),
    ("topologies/*", ("src/scpslab/scenario/topologies.py",)),
    ("analysis/figures/*", ("src/scpslab/analysis/figures/recipe.py",)),
    ("analysis/*", ("src/scpslab/analysis/claims/model.py",)),
    ("assignments/*", ("src/scpslab_course/course/model.py",)),
    ("src/scpslab/analysis/*", ("src/scpslab/analysis/report.py",)),
    ("src/scpslab/kinds/stacks/kernel/*", ("src/scpslab/kinds/stacks/kernel/scenario.py",)),
    ("src/scpslab/studio/page/*", ("src/scpslab/studio/page.py",)),
    ("src/scpslab_course/*", ("teaching",)),
    ("images/appliance/*", ("src/scpslab/engine/appliance/machine.py",)),
    ("images/*", ("src/scpslab/setup/images.py",)),
    ("tests/same_bytes/*", ("tests/lab/forks.py", "tests/unit/test_same_bytes.py")),
    ("tests/data/*", ("unit",)),
    ("tests/lab/*", ("tests/lab/*",)),
    ("docs/decisions/*", ()),
    ("docs/*", ("pages", "src/scpslab/cli/docs.py")),
    ("README.md", ("pages",)),
    ("CHANGELOG.md", ()),
    *((pattern, ("unit",)) for pattern in ("bench/*", "playbooks/*", "tools/*", "CONTRIBUTING.md", "Vagrantfile")),
)
MODULE = re.compile(r"\b(?:scpslab|scpslab_course|tests|tools)(?:\.[a-z_]\w*)+", re.ASCII)
COMMAND = re.compile(r'"(\w+)": \("((?:scpslab|scpslab_course)\.cli\.\w+)"')
WORD = re.compile(r"[a-z]+")


def tests_of(area: str) -> list[str]:
    """The test files of an area; what is a folder's is the folder."""
    patterns = AREAS[area]
    return [test for test in tests() if _fits(test, patterns) and test.startswith("tests/lab/")] or [
        pattern.removesuffix("/*") for pattern in patterns
    ]


@cache
def files() -> frozenset[str]:
    """The Python files of the project."""
    folders = ("src", "tests", "tools", "topologies", "bench")
    found = (file for folder in folders for file in (ROOT / folder).rglob("*.py"))
    return frozenset(str(file.relative_to(ROOT)) for file in found)


@cache
def tests() -> tuple[str, ...]:
    """The test files that `make test` does not run whole: with tests of labs, or slow ones."""
    found = (file for file in files() if fnmatch(file, "tests/*/test_*.py"))
    return tuple(sorted(one for one in found if "/unit/" not in one or "mark.slow" in (ROOT / one).read_text()))


def _fits(file: str, patterns: Iterable[str]) -> bool:
    return any(fnmatch(file, pattern) for pattern in patterns)


def _place(module: str) -> str | None:
    """The file of a module; of a package its `__init__`."""
    path = ("src/" if module.partition(".")[0].startswith("scpslab") else "") + module.replace(".", "/")
    return next((file for file in (f"{path}.py", f"{path}/__init__.py") if file in files()), None)


@cache
class Source:
    """What a Python file says of others. `imports`: modules, with the name that is wanted of them ("": all);
    `strings`: of the code, without docstrings.
    """

    def __init__(self, file: str) -> None:
        self.file = file
        tree = ast.parse((ROOT / file).read_text())
        self.imports: dict[str, tuple[str, str]] = {}
        self.strings: list[str] = []
        self.kinds: list[str] = []
        self._plain: set[str] = set()
        self._parts: dict[str, set[str]] = {}
        self._visit(tree)

    def _visit(self, node: ast.AST) -> None:
        match node:
            case ast.If(test=ast.Name(id="TYPE_CHECKING")):
                for child in node.orelse:
                    self._visit(child)
                return
            case ast.Expr(value=ast.Constant()):
                return
            case ast.Import() | ast.ImportFrom(level=0):
                self._import(node)
            case ast.Call(func=ast.Name(id=name)) if name in LOADS_KINDS:
                self.kinds += [one.value for one in node.args if isinstance(one, ast.Constant)]
            case ast.Constant(value=str(text)):
                self.strings.append(text)
            case ast.Attribute(value=ast.Name(id=name), attr=part):
                self._parts.setdefault(name, set()).add(part)
                return
            case ast.Name(id=name):
                self._plain.add(name)
        for child in ast.iter_child_nodes(node):
            self._visit(child)

    def _import(self, node: ast.Import | ast.ImportFrom) -> None:
        for name in node.names:
            wanted = (name.name, "") if isinstance(node, ast.Import) else (node.module or "", name.name)
            self.imports[name.asname or name.name] = wanted

    def parts(self, name: str) -> set[str] | None:
        """What is used of an imported package; None where it is used as a whole."""
        return None if name in self._plain or self.file.endswith("__init__.py") else self._parts.get(name)


def _defined(module: str, name: str) -> Iterator[str]:
    """The files that an import of a name from a module depends on; "" is all of it."""
    package = module
    while package := package.rpartition(".")[0]:
        if file := _place(package):
            yield file
    file = _place(module)
    if file is None:
        return
    yield file
    if not file.endswith("/__init__.py") or fnmatch(file, "tests/*"):
        return
    if name and _place(f"{module}.{name}"):
        yield from _defined(f"{module}.{name}", "")
        return
    offered = Source(file).imports
    for wanted in [name] if name in offered else offered:
        yield from _defined(*offered[wanted])


@cache
def needs(file: str) -> frozenset[str]:
    """The files that a file depends on directly."""
    source = Source(file)
    found: set[str] = set()
    # What an `__init__` imports counts for those who want it (_defined).
    for name, (module, wanted) in source.imports.items() if not file.endswith("__init__.py") else ():
        package = f"{module}.{wanted}" if wanted and _place(f"{module}.{wanted}") else module
        parts = source.parts(name) if (_place(package) or "").endswith("__init__.py") and package != module else None
        if parts is None:
            found.update(_defined(module, wanted))
        else:
            found.update(place for part in parts for place in _defined(package, part))
    patterns = [*LOADED.get(file, ()), *(f"src/scpslab/kinds/*/{layer}.py" for layer in source.kinds)]
    for text in source.strings if file != APP else ():
        for module in MODULE.findall(text):
            found.update(_named(module))
    if file.startswith("tests/"):
        if "scpslab" in source.strings:
            found.add(PROGRAM)
        mentioned = {Path(text).name for text in source.strings if text.endswith(".py")}
        found |= {one for one in files() if one.startswith("tests/") and Path(one).name in mentioned}
        found |= {str(parent / "conftest.py") for parent in Path(file).parents} & files()
    return frozenset((found | {one for one in files() if _fits(one, patterns)}) - {file})


def _named(module: str) -> Iterator[str]:
    while module:
        if place := _place(module):
            yield place
            yield from filter(None, [_place(f"{module}.__main__")])
            if place.endswith("/__init__.py"):
                yield from _defined(module, "")
            return
        module = module.rpartition(".")[0]


def ways(test: str) -> dict[str, str]:
    """All files that a test depends on, each with the one by which it does."""
    found = {test: ""}
    _follow(test, found)
    if APP in found:
        for place in _asked(one for one in found if one.startswith("tests/")) - found.keys():
            found[place] = APP
            _follow(place, found)
    return found


def _follow(start: str, found: dict[str, str]) -> None:
    waiting = deque([start])
    while waiting:
        file = waiting.popleft()
        for place in sorted(needs(file) - found.keys()):
            if place != DRAWING or file.startswith("tests/"):
                found[place] = file
                waiting.append(place)


def _asked(callers: Iterable[str]) -> set[str]:
    """What test files ask of the program: the commands that they name; all where one asks for the list of them."""
    modules = dict(COMMAND.findall((ROOT / APP).read_text()))
    words: set[str] = set()
    for file in callers:
        words.update(word for text in Source(file).strings for word in WORD.findall(text))
        if "COMMANDS" in (ROOT / file).read_text():
            words.update(modules)
    found = {_place(module) for command, module in modules.items() if command in words}
    return {place for place in found if place} | ({DRAWING} if words & OF_DRAWING else set())


def _readers(file: str) -> tuple[str, ...]:
    """What stands for a changed file: itself, or what reads it; every test where no rule knows it."""
    if file in files():
        return (file,)
    is_gone = file.endswith(".py") and not file.startswith("tests/")
    return ("*",) if is_gone else next((readers for pattern, readers in READ_BY if fnmatch(file, pattern)), ("*",))


def concerned(changed: Iterable[str]) -> dict[str, list[str]]:
    """The test files that changed files concern, and "rust" where they do; each with the way to one of them."""
    reasons: dict[str, str] = {}
    found: dict[str, list[str]] = {}
    for file in changed:
        for reader in _readers(file):
            if reader in {RUST, "*"}:
                found.setdefault(RUST, [file])
            for pattern in AREAS.get(reader, (reader,)):
                reasons.setdefault(pattern, file)
    for test in tests():
        way = ways(test) if reasons else {}
        hit = next((one for one in way if one in reasons), None)
        pattern = next((pattern for pattern in reasons if fnmatch(test, pattern)), None)
        if pattern:
            found[test] = [test, *([reasons[pattern]] if reasons[pattern] != test else [])]
        elif hit:
            chain, at = [reasons[hit]] if reasons[hit] != hit else [], hit
            while at:
                chain.append(at)
                at = way[at]
            found[test] = chain[::-1]
    return found


def changed(base: str) -> list[str] | None:
    """The files that differ between a commit and the working tree; None where the commit is not known here."""
    if not base:
        return None
    done = subprocess.run(
        ["git", "diff", "--name-only", "--no-renames", "-z", base, "--"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    return [name for name in done.stdout.split("\0") if name] if done.returncode == 0 else None


def main(arguments: list[str]) -> str:
    """What a command line is answered with."""
    match arguments:
        case []:
            return " ".join(AREAS)
        case ["--tests", area] if area in AREAS:
            return " ".join(tests_of(area))
        case ["--changed" | "--why" as how, base]:
            differ = changed(base)
            found = concerned(["all files: nothing to compare with"] if differ is None else differ)
            return " ".join(found) if how == "--changed" else "\n".join(" <- ".join(way) for way in found.values())
    sys.exit(
        f"error: tools/areas.py: found {' '.join(arguments)!r}; expected nothing, --tests AREA, --changed BASE or "
        f"--why BASE, where AREA is one of {', '.join(AREAS)}."
    )


if __name__ == "__main__":
    print(main(sys.argv[1:]))
