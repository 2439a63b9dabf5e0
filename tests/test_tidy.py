"""The rules of the repository that no linter knows, as tests. Each rule is one test; its message names every place that breaks it."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from scpslab.cli.app import COMMANDS

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "scpslab"
FILE_LINES = 700
FUNCTION_LINES = 75
RUST_FILE_LINES = 800
BANNED_MODULES = {"utils", "util", "helpers", "helper", "common", "misc", "constants", "manager"}
# The guest has a plain Python with Mininet: what runs there may import nothing else.
GUEST_PARTS = ("lab", "plan", "topology")
GUEST_IMPORTS = {"mininet", "scpslab.lab", "scpslab.topology", "scpslab.units", "scpslab.errors", "scpslab.names", "scpslab.plan", "scpslab.strict_json"}
PRINTERS = ("cli/", "lab/", "setup/__main__.py")
# What a lab, on whatever kernel, knows nothing of.
LAB_ALONE = {"scenario", "planning", "engine", "running", "results", "figures", "claims", "report", "cli", "doctor"}
# Data flows one way (docs/ARCHITECTURE.md): a package may import none of those on its right.
LATER = {
    "plan": {"topology", "scenario", "planning", "engine", "running", "results", "figures", "claims", "report", "cli", "doctor", "lab"},
    "presets": LAB_ALONE | {"lab", "hostlab", "setup", "stacks", "topology", "plan"},
    "stacks": LAB_ALONE | {"lab", "hostlab", "setup", "topology"},
    "lab": LAB_ALONE | {"hostlab", "setup", "stacks", "presets", "errormodels"},
    "hostlab": LAB_ALONE | {"setup", "stacks", "presets", "errormodels", "topology"},
    "topology": {"lab", "hostlab", "setup", "scenario", "planning", "engine", "running", "results", "figures", "claims", "report", "cli", "doctor"},
    "scenario": {"planning", "engine", "running", "results", "figures", "claims", "report", "cli", "doctor"},
    "planning": {"engine", "running", "results", "figures", "claims", "report", "cli", "doctor"},
    "errormodels": {"scenario", "planning", "engine", "running", "results", "figures", "claims", "report", "cli", "doctor"},
    "setup": {"scenario", "planning", "engine", "running", "results", "figures", "claims", "report", "cli", "doctor"},
    "engine": {"scenario", "planning", "running", "results", "figures", "claims", "report", "cli", "doctor"},
    "running": {"figures", "claims", "report", "cli", "doctor"},
    "results": {"engine", "running", "figures", "claims", "report", "cli", "doctor"},
    "figures": {"engine", "running", "claims", "report", "cli", "doctor"},
    "claims": {"engine", "running", "report", "cli", "doctor"},
    "report": {"engine", "running", "cli", "doctor"},
    "doctor": {"cli"},
}


def tracked(*patterns: str) -> list[Path]:
    """Files of the repository, also those that are not committed yet."""
    if not (ROOT / ".git").exists():
        pytest.skip("not a git checkout")
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", "--", *patterns]
    names = subprocess.run(command, cwd=ROOT, capture_output=True, check=True).stdout.decode().split("\0")
    return sorted({ROOT / name for name in names if name and (ROOT / name).is_file()})


def where(path: Path, line: int = 0) -> str:
    """A place as messages have it."""
    return f"{path.relative_to(ROOT)}:{line}" if line else str(path.relative_to(ROOT))


def python_files() -> list[Path]:
    """All Python of the package."""
    return sorted(PACKAGE.rglob("*.py"))


def imports(path: Path) -> Iterator[tuple[str, int]]:
    """The modules a file imports, with the line."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            for name in node.names:
                yield name.name, node.lineno
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module, node.lineno
            for name in node.names:
                yield f"{node.module}.{name.name}", node.lineno


def test_guest_code_imports_only_what_the_guest_has():
    wrong = []
    for part in GUEST_PARTS:
        for path in (PACKAGE / part).rglob("*.py"):
            for module, line in imports(path):
                top = module.split(".")[0]
                mine = any(module == allowed or module.startswith(allowed + ".") for allowed in GUEST_IMPORTS)
                if not (mine or module == "scpslab" or top in sys.stdlib_module_names):
                    wrong.append(f"{where(path, line)}: {module}")
    assert wrong == []


def test_data_flows_one_way():
    wrong = []
    for package, later in LATER.items():
        for path in (PACKAGE / package).rglob("*.py"):
            for module, line in imports(path):
                words = module.split(".")
                if words[0] == "scpslab" and len(words) > 1 and words[1] in later:
                    wrong.append(f"{where(path, line)}: {package} imports {module}")
    assert wrong == []


def test_nothing_prints_but_commands_and_the_lab():
    wrong = []
    for path in python_files():
        if str(path.relative_to(PACKAGE)).startswith(PRINTERS):
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "print":
                wrong.append(where(path, node.lineno))
    assert wrong == []


def test_files_and_functions_stay_small():
    wrong = []
    for path in python_files():
        text = path.read_text()
        if len(text.splitlines()) > FILE_LINES:
            wrong.append(f"{where(path)}: {len(text.splitlines())} lines")
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.FunctionDef) and node.end_lineno and node.end_lineno - node.lineno >= FUNCTION_LINES:
                wrong.append(f"{where(path, node.lineno)}: {node.name}: {node.end_lineno - node.lineno + 1} lines")
    assert wrong == []


def test_files_of_rust_stay_small():
    counts = {path: len(path.read_text().splitlines()) for path in tracked("stack/**/*.rs")}
    assert counts
    assert [f"{where(path)}: {lines} lines" for path, lines in counts.items() if lines > RUST_FILE_LINES] == []


def test_no_module_is_a_drawer_for_everything():
    assert [where(path) for path in python_files() if path.stem in BANNED_MODULES] == []


def test_nothing_is_left_for_later():
    marker = re.compile(r"\b(TO" + r"DO|FIX" + r"ME|XX" + r"X)\b(?! #\d)")
    wrong = []
    for path in tracked("*.py", "*.c", "*.h", "*.md", "*.sh", "*.yaml", "*.rs", "Makefile", "tools/*"):
        for number, line in enumerate(path.read_text(errors="replace").splitlines(), 1):
            if marker.search(line):
                wrong.append(where(path, number))
    assert wrong == []


def test_no_text_names_a_machine_of_ours():
    # In pieces, so that this file does not name them either.
    folders = "|".join(re.escape("/" + "/".join(parts) + "/") for parts in (("wo" + "rk",), ("tm" + "p", "k"), ("ro" + "ot",)))
    personal = re.compile(rf"{folders}|\b{'clau' + 'de'}\b|\b{'open' + 'ai'}\b", re.IGNORECASE)
    wrong = []
    for path in tracked("*.py", "*.c", "*.md", "*.yaml", "*.toml", "Makefile", "tools/*", "images/*", "scpslab", ".ci/*"):
        for number, line in enumerate(path.read_text(errors="replace").splitlines(), 1):
            if personal.search(line):
                wrong.append(where(path, number))
    assert wrong == []


def test_no_text_names_the_host_of_a_mirror():
    host = "deb." + "debian.org"
    found = [
        where(path)
        for path in tracked("src", "tools", "images", "docs", "tests", "*.md", "Makefile", "playbooks", "Vagrantfile")
        if host in path.read_text(errors="replace")
    ]
    assert found == []


def test_links_in_documents_lead_somewhere():
    link = re.compile(r"\[[^\]]*\]\(([^)#\s]+)(?:#[^)]*)?\)")
    wrong = []
    for path in tracked("*.md"):
        for number, line in enumerate(path.read_text().splitlines(), 1):
            for target in link.findall(line):
                if not target.startswith(("http://", "https://", "mailto:")) and not (path.parent / target).exists():
                    wrong.append(f"{where(path, number)}: {target}")
    assert wrong == []


def test_every_command_is_in_the_readme():
    readme = (ROOT / "README.md").read_text()
    assert [name for name in COMMANDS if f"./scpslab {name}" not in readme] == []


def test_c_files_say_their_licence():
    files = tracked("images/**/*.c", "images/**/*.patch")
    assert files
    assert [where(path) for path in files if "SPDX-License-Identifier:" not in path.read_text()] == []


def test_decisions_are_numbered_once_and_short():
    pages = sorted((ROOT / "docs" / "decisions").glob("*.md"))
    numbers = [page.name[:4] for page in pages]
    assert len(set(numbers)) == len(numbers)
    assert [where(page) for page in pages if len(page.read_text().splitlines()) > 60] == []
