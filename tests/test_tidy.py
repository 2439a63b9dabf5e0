"""The rules of the repository that no linter knows, as tests.

Each rule is one test; its message names every place that breaks it.
"""

import ast
import io
import re
import subprocess
import sys
import tokenize
import tomllib
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from graphlib import TopologicalSorter
from itertools import chain
from pathlib import Path

import pytest

from scpslab.engine import bundle

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "scpslab"
COURSE = ROOT / "src" / "scpslab_course"
BUILDERS = ROOT / "tools" / "build"
FILE_LINES = 700
FUNCTION_LINES = 75
SLACK_LINES = 200
NO_CODE = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER}
DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
RUST_FILE_LINES = 800
BANNED_MODULES = {"utils", "util", "helpers", "helper", "common", "misc", "constants", "manager"}
# Data flows one way (docs/ARCHITECTURE.md): a package may import those before it, and none after it.
ORDER = (
    "core",
    "documents",
    "plan",
    "lab",
    "scenario",
    "setup",
    "runs",
    "measure",
    "audit",
    "engine",
    "analysis",
    "running",
    "studio",
    "kinds",
    "cli",
)
# A kind's folder is in several layers: what a file in it may import is what that layer may.
LAYERS = {"plan.py": "plan", "lab.py": "lab", "scenario.py": "scenario", "metrics.py": "analysis"}
MOST_ARROWS = 58
# Lines of code and files of src (docs/decisions/0035, 0037); whoever removes lowers them, and only a decision page raises
# them.
CEILING_LINES, CEILING_FILES = 38_853, 360
# The doors for topology files of users and of archives, and for programs of users.
DOORS = ("topology", "api")
PRINTERS = ("scpslab/cli/", "scpslab/lab/", "scpslab/setup/__main__.py", "scpslab_course/cli/")
# Pages that code and documents cite by section (`scps-tp §4.4`) or by requirement (`apparatus A-10`), under the names
# they are cited by.
CITED_PAGES = {
    "scps-tp": "docs/protocol/scps-tp.md",
    "scps-fp": "docs/protocol/scps-fp.md",
    "scps-np": "docs/protocol/scps-np.md",
    "scps-sp": "docs/protocol/scps-sp.md",
    "apparatus": "docs/apparatus.md",
    "link-model": "docs/link-model.md",
}
FOREIGN_SOURCES = r"(?:RFC \d+|draft-[a-z-]+|[A-Z][a-z]+(?: and [A-Z][a-z]+)? (?:19|20)\d\d)"
# Within the package beside the laboratory: what a part of it may not import.
COURSE_LATER = {"course": {"grading", "cli", "autograder"}, "grading": {"cli", "autograder"}, "autograder": {"cli"}}


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


def lines_with(pattern: re.Pattern[str], *names: str) -> list[str]:
    """The places of a pattern in files of the repository."""
    return [
        where(path, number)
        for path in tracked(*names)
        for number, line in enumerate(path.read_text(errors="replace").splitlines(), 1)
        if pattern.search(line)
    ]


def python_files() -> list[Path]:
    """All Python of the packages."""
    return sorted(path for package in (PACKAGE, COURSE) for path in package.rglob("*.py"))


@cache
def imports(path: Path) -> tuple[tuple[str, int], ...]:
    """The modules a file imports, with the line."""
    found = []
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found += [(name.name, node.lineno) for name in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            names = [node.module, *(f"{node.module}.{name.name}" for name in node.names)]
            found += [(name, node.lineno) for name in names]
    return tuple(found)


def layer(path: Path) -> str:
    """The package whose imports a file may have; "" for what is in none: the package itself, and doors."""
    parts = path.relative_to(PACKAGE).parts
    if len(parts) == 1:
        return ""
    return LAYERS.get(path.name, "kinds") if parts[0] == "kinds" else parts[0]


def layer_of_module(module: str) -> str:
    """The same of a module's name, which may end in a name within the module."""
    words = module.split(".")
    if words[0] != "scpslab" or len(words) < 2 or words[1] in DOORS:
        return ""
    if words[1] != "kinds":
        return words[1] if words[1] in ORDER else ""
    return next((LAYERS[f"{word}.py"] for word in words[4:] if f"{word}.py" in LAYERS), "")


def arrows() -> dict[tuple[str, str], list[str]]:
    """From each package to those that it imports, with the places."""
    found: dict[tuple[str, str], list[str]] = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        here = layer(path)
        for module, line in imports(path):
            there = layer_of_module(module)
            if here and there and here != there:
                found.setdefault((here, there), []).append(f"{where(path, line)}: {module}")
    return found


def importing(paths: Iterable[Path], is_wrong: Callable[[str], bool]) -> list[str]:
    """The places where files import what they may not."""
    return [f"{where(path, line)}: {module}" for path in paths for module, line in imports(path) if is_wrong(module)]


def test_guest_code_imports_only_what_the_guest_has():
    """A plain Python with Mininet, and the files of the bundle: of a kind its plan and its part of the lab."""
    names = {name.removesuffix(".py").removesuffix("/__init__").replace("/", ".") for _, name in bundle.sources()}
    shipped, tops = names | {"scpslab.lab.run_lab"}, {"mininet", *sys.stdlib_module_names}
    folders = {name.rpartition(".")[0] for name in names}

    def is_wrong(module: str) -> bool:
        is_there = module in folders or {module, module.rpartition(".")[0]} & shipped
        return not (module.split(".", maxsplit=1)[0] in tops or is_there)

    assert importing((path for path, _ in bundle.sources()), is_wrong) == []
    of_kinds = {file.name for file, name in bundle.sources() if name.startswith("scpslab/kinds/")}
    assert of_kinds == {"__init__.py", "plan.py", "lab.py"}


def test_what_is_installed_to_run_is_imported_by_the_program():
    """What tests alone need is in the extra `dev`."""
    modules = {"dask-jobqueue": "dask_jobqueue", "markdown-it-py": "markdown_it", "pyyaml": "yaml"}
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = (lines for extra, lines in project["optional-dependencies"].items() if extra not in ("dev", "site"))
    wanted = [re.split(r"[<>=~! ]", line)[0] for line in [*project["dependencies"], *chain(*extras)]]
    text = "\n".join(path.read_text() for path in python_files())
    imported = {
        name for name in wanted if re.search(rf"^\s*(?:from|import) {modules.get(name, name)}\b", text, re.MULTILINE)
    }
    assert set(wanted) - imported == set()


def test_the_tree_is_the_order():
    """What is in the package is what the order lists."""
    folders = {path.name for path in PACKAGE.iterdir() if path.is_dir() and any(path.rglob("*.py"))}
    assert folders == set(ORDER)
    assert {path.stem for path in PACKAGE.glob("*.py")} == {"__init__", "__main__", *DOORS}


def test_data_flows_one_way():
    wrong = [
        place
        for (here, there), places in arrows().items()
        if ORDER.index(there) > ORDER.index(here)
        for place in places
    ]
    for package, later in COURSE_LATER.items():
        names = [["scpslab_course", name] for name in later]
        wrong += importing((COURSE / package).rglob("*.py"), lambda module, names=names: module.split(".")[:2] in names)
    wrong += importing(PACKAGE.rglob("*.py"), lambda module: module.startswith("scpslab_course"))
    assert wrong == []
    assert len(arrows()) <= MOST_ARROWS


def test_no_file_imports_itself_by_way_of_others():
    """Imports for types and those within functions included; the list of kinds imports by name, and nobody it."""
    source = ROOT / "src"
    files = {
        ".".join(path.relative_to(source).with_suffix("").parts).removesuffix(".__init__"): path
        for path in python_files()
    }

    def files_of(path: Path) -> Iterator[str]:
        """The files that a file imports; of `from a import b` that of a.b, where b is one."""
        modules = {module for module, _ in imports(path)}
        doors = {module for module in modules if any(other.rpartition(".")[0] == module for other in modules)}
        for module in modules - doors:
            name = module
            while name and name not in files:
                name = name.rpartition(".")[0]
            yield name

    TopologicalSorter({name: {*files_of(path)} - {name, ""} for name, path in files.items()}).prepare()


def test_kinds_are_folders_of_layers():
    assert [where(path) for path in (PACKAGE / "kinds").glob("*/**/*.py") if path.name not in LAYERS] == []


def test_layers_find_kinds_by_name_and_name_none():
    layers = (path for path in PACKAGE.rglob("*.py") if "kinds" not in path.relative_to(PACKAGE).parts)
    assert importing(layers, lambda module: module.startswith("scpslab.kinds.")) == []


def test_only_the_recipes_know_the_builders():
    """The laboratory runs without tools/build, and the builders know the laboratory's parts and words alone."""
    recipes = PACKAGE / "setup" / "recipes.py"
    wrong = importing(python_files(), lambda module: module.startswith("tools"))
    wrong += [where(path) for path in python_files() if "tools.build" in path.read_text() and path != recipes]
    wrong += importing(BUILDERS.glob("*.py"), lambda module: layer_of_module(module) not in ("", "core", "setup"))
    assert wrong == []


def test_nothing_below_the_commands_and_beside_the_lab_prints_or_knows_of_a_console():
    """Tables may be made elsewhere; where and whether they are shown is the commands' (docs/ARCHITECTURE.md)."""
    silent = [path for path in python_files() if not str(path.relative_to(ROOT / "src")).startswith(PRINTERS)]
    consoles = re.compile(r"(rich\.(console|progress)(\..*)?|rich\.status|typer)")
    wrong = importing(silent, lambda module: consoles.fullmatch(module) is not None)
    for path in silent:
        calls = (node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Call))
        # A name, or the last name of an attribute.
        wrong += [
            where(path, call.lineno)
            for call in calls
            if {getattr(call.func, "id", ""), getattr(call.func, "attr", "")} & {"print", "Console"}
        ]
    assert wrong == []


def lines_of_code(path: Path) -> int:
    """The lines of a file that hold code: no blank lines, comments and docstrings."""
    text = path.read_text()
    with_code: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in NO_CODE:
            with_code.update(range(token.start[0], token.end[0] + 1))
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, DOCUMENTED) and ast.get_docstring(node) is not None:
            with_code -= set(range(node.body[0].lineno, (node.body[0].end_lineno or 0) + 1))
    return len(with_code)


def test_a_file_has_as_many_lines_of_code_as_one_counts(tmp_path):
    file = tmp_path / "file.py"
    head, body = (
        '"""Says.\n\nMore.\n"""\n\nimport os  # why\n\n\n',
        '    """Does."""\n    # why\n    return """\n\ntext"""\n',
    )
    file.write_text(f"{head}def f(\n    a,\n):\n{body}")
    assert lines_of_code(file) == 1 + 3 + 3


def test_what_is_wrong_with_a_file_has_one_form():
    """A problem says apart what was found, expected and is to be done: no text of one is made by hand, or cut."""
    by_hand, asked = [], set()
    for path in python_files():
        text, tree = path.read_text(), ast.parse(path.read_text())
        lines = text.splitlines()
        for node in (node for node in ast.walk(tree) if isinstance(node, ast.Raise | ast.Call)):
            *above, last = lines[node.lineno - 1 : node.end_lineno]
            said = "\n".join([*above, last[: node.end_col_offset]])[node.col_offset :]
            is_raised = isinstance(node, ast.Raise) and said.startswith("raise ValueError") and "expected" in said
            is_cut = isinstance(node, ast.Call) and re.match(r"[\w.()]+(partition|split)\(.*expected", said)
            if (is_raised and "from scpslab.documents" in text and path.name != "lab.py") or is_cut:
                by_hand.append(where(path, node.lineno))
        for kind in (node for node in ast.walk(tree) if isinstance(node, ast.ClassDef)):
            methods = (one for one in kind.body if isinstance(one, ast.FunctionDef) and one.name == "problems")
            asked |= {tuple(argument.arg for argument in one.args.args) for one in methods}
    assert by_hand == [], "raise UnfitError(found, expected, advice), or use its `problem`"
    assert len(asked) <= 3, f"found {asked}; expected the parts of a file to be asked in three ways at most"


def test_the_whole_stays_below_the_ceiling():
    files = python_files()
    lines = sum(map(lines_of_code, files))
    assert lines <= CEILING_LINES, "remove as much as you add, or write a decision page (docs/decisions/0035)"
    assert len(files) <= CEILING_FILES, "unite as much as you add, or write a decision page (docs/decisions/0035)"
    assert lines > CEILING_LINES - SLACK_LINES, f"lower CEILING_LINES to {lines}: something was removed"


def test_files_and_functions_stay_small():
    wrong = []
    for path in python_files():
        text = path.read_text()
        if len(text.splitlines()) > FILE_LINES:
            wrong.append(f"{where(path)}: {len(text.splitlines())} lines")
        for node in ast.walk(ast.parse(text)):
            # What a function takes is a declaration, and so is what its docstring says of that, an option of a command each.
            if isinstance(node, ast.FunctionDef) and node.end_lineno:
                body = node.body[1:] if ast.get_docstring(node) and len(node.body) > 1 else node.body
                lines = node.end_lineno - body[0].lineno + 1
                if lines > FUNCTION_LINES:
                    wrong.append(f"{where(path, node.lineno)}: {node.name}: {lines} lines")
    assert wrong == []


def test_files_of_rust_stay_small():
    counts = {path: len(path.read_text().splitlines()) for path in tracked("stack/**/*.rs")}
    assert counts
    assert [f"{where(path)}: {lines} lines" for path, lines in counts.items() if lines > RUST_FILE_LINES] == []


def test_the_changelog_stays_short():
    """What a user must know; the rest is git's."""
    assert len((ROOT / "CHANGELOG.md").read_bytes()) <= 25_000


def test_no_module_is_a_drawer_for_everything():
    assert [where(path) for path in python_files() if path.stem in BANNED_MODULES] == []


def test_nothing_is_left_for_later():
    marker = re.compile(r"\b(TO" + r"DO|FIX" + r"ME|XX" + r"X)\b(?! #\d)")
    assert lines_with(marker, "*.py", "*.c", "*.h", "*.md", "*.sh", "*.yaml", "*.rs", "Makefile", "tools/*") == []


def test_no_text_names_a_machine_of_ours():
    # In pieces, so that this file does not name them either.
    folders = "|".join(
        re.escape("/" + "/".join(parts) + "/") for parts in (("wo" + "rk",), ("tm" + "p", "k"), ("ro" + "ot",))
    )
    personal = re.compile(rf"{folders}|\b{'clau' + 'de'}\b|\b{'open' + 'ai'}\b", re.IGNORECASE)
    names = ("*.py", "*.c", "*.md", "*.yaml", "*.toml", "Makefile", "tools/*", "images/*", "scpslab", ".ci/*")
    assert lines_with(personal, *names) == []


def test_no_text_names_the_host_of_a_mirror():
    host = re.compile(re.escape("deb." + "debian.org"))
    names = ("src", "tools", "images", "docs", "tests", "*.md", "Makefile", "playbooks", "Vagrantfile")
    assert lines_with(host, *names) == []


def anchors(page: Path) -> set[str]:
    """The names by which headings of a page can be linked to, as GitHub makes them."""
    headings = re.findall(r"^#+ (.+)$", page.read_text(), flags=re.MULTILINE)
    return {
        re.sub(r"[^\w\- ]", "", re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading)).strip().lower().replace(" ", "-")
        for heading in headings
    }


def test_links_in_documents_lead_somewhere():
    link = re.compile(r"\[[^\]]*\]\(([^)#\s]*)(?:#([^)\s]*))?\)")
    wrong = []
    for path in tracked("*.md"):
        for number, line in enumerate(path.read_text().splitlines(), 1):
            for target, anchor in link.findall(line):
                if target.startswith(("http://", "https://", "mailto:")):
                    continue
                page = path.parent / target if target else path
                if not page.exists() or (anchor and anchor not in anchors(page)):
                    wrong.append(f"{where(path, number)}: {target}{'#' if anchor else ''}{anchor}")
    assert wrong == []


def test_c_files_say_their_licence():
    files = tracked("images/**/*.c", "images/**/*.patch")
    assert files
    assert [where(path) for path in files if "SPDX-License-Identifier:" not in path.read_text()] == []


def test_decisions_are_numbered_once_and_short():
    pages = sorted((ROOT / "docs" / "decisions").glob("*.md"))
    numbers = [page.name[:4] for page in pages]
    assert len(set(numbers)) == len(numbers)
    assert [where(page) for page in pages if len(page.read_text().splitlines()) > 60] == []


def cited_texts() -> list[Path]:
    """Every text of the repository that may cite a page of docs/, but this file, which holds citations as examples."""
    texts = tracked(
        "*.rs", "*.py", "*.c", "*.h", "*.md", "*.yaml", "*.yml", "*.toml", "*.j2", "Makefile", "tools/*", ".ci/*"
    )
    return [path for path in texts if path != Path(__file__).resolve()]


def sections(page: Path) -> dict[str, str]:
    """The numbered sections of a page, with the text of each up to the next heading."""
    parts = re.split(r"^#+ (\d+(?:\.\d+)*)\.? .*$", page.read_text(), flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def items(section: str) -> set[int]:
    """The numbers of a section's list items, or of the rows of its table."""
    return {int(number) for number in re.findall(r"^(?:\| )?(\d+)(?:\. | \|)", section, flags=re.MULTILINE)}


def requirements() -> set[str]:
    """The ids that docs/apparatus.md defines."""
    return set(re.findall(r"^\| ([A-Z]-\d\d) \|", (ROOT / CITED_PAGES["apparatus"]).read_text(), flags=re.MULTILINE))


def before(text: str, position: int) -> str:
    """What stands before a place, with line breaks and comment signs between lines taken out."""
    return re.sub(r"\s*\n\s*(?://[/!]?|#|\*|>)?\s*", " ", text[max(0, position - 160) : position])


def section_citations(path: Path) -> Iterator[tuple[int, str, str, str]]:
    """Every § of a text: its line, the page it belongs to ("" if the text does not say), its number and its item ("" if
    none).
    """
    text, source = path.read_text(errors="replace"), ""
    own = next((name for name, page in CITED_PAGES.items() if ROOT / page == path), "")
    for match in re.finditer(r"§(\d+(?:\.\d+)*)?(?: items? (\d+))?", text):
        lead = before(text, match.start())
        named = re.search(r"([\w.-]+)[`,]? ?$", lead)
        if other := re.search(FOREIGN_SOURCES + r",? $", lead):
            source = other.group()
        elif named and named.group(1).removesuffix(".md") in CITED_PAGES:
            source = named.group(1).removesuffix(".md")
        elif not re.search(r"§\d+(?:\.\d+)*(?: items? [\d, and]+)?(?:,|;| and| to|, and| or)? $", lead):
            source = own
        yield text.count("\n", 0, match.start()) + 1, source, match.group(1) or "", match.group(2) or ""


def test_cited_sections_exist():
    """A § has its page, as in `scps-tp §4.4` or `RFC 9293 §3.4`."""
    known = {name: sections(ROOT / page) for name, page in CITED_PAGES.items()}
    wrong = []
    for path in cited_texts():
        for line, source, number, item in section_citations(path):
            there = known.get(source, {number: f"{item}. "})
            if not source or number not in there or (item and int(item) not in items(there[number])):
                wrong.append(f"{where(path, line)}: {source or 'no page named'} §{number} {item}")
    assert wrong == []


def test_cited_requirements_exist():
    """One has its page, as in `apparatus A-10`."""
    known, wrong = requirements(), []
    for path in cited_texts():
        if path == ROOT / CITED_PAGES["apparatus"]:
            continue
        text = path.read_text(errors="replace")
        for match in re.finditer(r"(?<![\w/.-])[A-CMPT]-\d\d\b(?![-\w])", text):
            lead = before(text, match.start())
            is_figure = re.search(r"(?:[Ff]igs?\.?|[Ff]igures?) [\w., -]*$", lead)  # of the FY97 report's appendix A
            has_page = re.search(r"\bapparatus `?(?:[A-Z]-\d\d(?:,|,? and| to| or)? )*$", lead)
            if not is_figure and not (has_page and match.group() in known):
                wrong.append(f"{where(path, text.count(chr(10), 0, match.start()) + 1)}: {match.group()}")
    assert wrong == []


@pytest.mark.parametrize("name", ["scps-tp", "scps-fp"])
def test_conformance_tables_have_every_item_of_the_checklist(name):
    page, table = ROOT / CITED_PAGES[name], ROOT / "docs" / "conformance" / f"{name}.md"
    checklist = next(
        text for text in re.split(r"^## ", page.read_text(), flags=re.MULTILINE) if "onformance checklist\n" in text
    )
    rows = [int(number) for number in re.findall(r"^\| (\d+) \|", table.read_text(), flags=re.MULTILINE)]
    assert rows == sorted(items(checklist)) == list(range(1, len(rows) + 1))


def test_the_citation_names_the_current_version():
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    assert f"\nversion: {version}\n" in (ROOT / "CITATION.cff").read_text()
