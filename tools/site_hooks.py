"""What mkdocs does not do by itself for the documentation's site: folders in the navigation, and pages for files of the
repository that docs/ links to.

A link from docs/ to a file or folder outside of it works in a clone. On the site the same link leads to a copy under
repository/, with the links of that copy changed the same way; nothing else of the repository is copied.
"""

from __future__ import annotations

import os
import posixpath
import re
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files, InclusionLevel

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parents[1]
DOCS, COPIES = "docs", "repository"
# Folders of assignments that students do not get.
PRIVATE = "instructor"
LINK = re.compile(r"(\]\()([^)#\s]*)(#[^)\s]*)?(\))")
# A link whose text is the name of a file: in a clone that says what to open, on the site the page's title does.
NAMED = re.compile(r"(?<=\[)([\w-]+\.md)(?=\]\(([^)#\s]+)(?:#[^)\s]*)?\))")
# Blocks of code and code in a line: what looks like a link there is none.
CODE = re.compile(r"(^```.*?^```$|`[^`\n]+`)", re.MULTILINE | re.DOTALL)
# What a browser fetches by itself.
LOADED = re.compile(r"<(?:script|link|img|iframe|source)\b[^>]*\b(?:src|href)=[\"']?(?:https?:)?//[^>]*>")
ELSEWHERE = ("http://", "https://", "mailto:")
LANGUAGES = {".py": "python", ".yaml": "yaml", ".toml": "toml", ".json": "json", ".c": "c", ".rs": "rust"}
# Pages of developers come behind those of users in what a search finds.
BEHIND, BOOST = ("decisions/", f"{COPIES}/"), 0.3
UNSEARCHED = "---\nsearch:\n  exclude: true\n---\n"


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Puts the pages of a folder where the navigation names the folder, such as `decisions/`."""
    config.nav = [_unfolded(entry, Path(config.docs_dir)) for entry in config.nav or []]
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Adds a page for everything outside docs/ that a page links to, for what those pages link to, and for folders of
    docs/ without a page of their own.
    """
    waiting = [(f"{DOCS}/{file.src_uri}", file.content_string) for file in files.documentation_pages()]
    while waiting:
        source, text = waiting.pop()
        for target in _targets(source, text):
            name = _place(target)
            if name in files.src_uris or not (ROOT / target).exists():
                continue
            if PRIVATE in target.split("/"):
                raise PluginError(f"{source}: found a link to {target}; expected none, because students read the site.")
            content = _content(target)
            files.append(File.generated(config, name, content=content, inclusion=InclusionLevel.NOT_IN_NAV))
            waiting.append((_source(target), content))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Lets links out of docs/, and all links of copies, lead to pages of the site.

    Links that lead nowhere stay as they are: mkdocs reports them.
    """
    here = page.file.src_uri
    if here.startswith(BEHIND):
        page.meta.setdefault("search", {"boost": BOOST})
    source = here.removeprefix(f"{COPIES}/") if here.startswith(f"{COPIES}/") else f"{DOCS}/{here}"

    def changed(path: str) -> str:
        target = _target(source, path)
        return posixpath.relpath(_place(target), posixpath.dirname(here) or ".") if (ROOT / target).exists() else path

    def title(name: re.Match[str]) -> str:
        target = ROOT / _target(source, name[2])
        return target.read_text(encoding="utf-8").partition("\n")[0].removeprefix("# ") if target.is_file() else name[1]

    return _with_links(NAMED.sub(title, markdown), changed)


def on_post_page(output: str, page: Page, config: MkDocsConfig) -> str:
    """Refuses a page that would load something from elsewhere."""
    if found := LOADED.search(output):
        raise PluginError(f"{page.file.src_uri}: found {found[0]}; expected nothing that is loaded from elsewhere.")
    return output


def _unfolded(entry: Any, docs: Path) -> Any:
    if isinstance(entry, dict):
        return {title: _unfolded(inside, docs) for title, inside in entry.items()}
    if isinstance(entry, list):
        return [_unfolded(one, docs) for one in entry]
    if not entry.endswith("/"):
        return entry
    pages = sorted((docs / entry).glob("*.md"), key=lambda page: (page.name != "README.md", page.name))
    return [f"{entry}{page.name}" for page in pages]


def _with_links(text: str, changed: Callable[[str], str]) -> str:
    """The text with every link's path changed, but not what stands in code."""

    def rewritten(link: re.Match[str]) -> str:
        before, path, anchor, after = link.groups(default="")
        return before + (changed(path) if path and not path.startswith(ELSEWHERE) else path) + anchor + after

    parts = CODE.split(text)
    # A link may have code for its text: the parts before and behind it are then read together.
    kept = {f"\0{number}\0": part for number, part in enumerate(parts[1::2])}
    joined = "".join(part if number % 2 == 0 else f"\0{number // 2}\0" for number, part in enumerate(parts))
    return re.sub(r"\0\d+\0", lambda mark: kept[mark[0]], LINK.sub(rewritten, joined))


def _targets(source: str, text: str) -> Iterator[str]:
    found: list[str] = []
    _with_links(text, lambda path: found.append(_target(source, path)) or path)
    yield from found


def _target(source: str, path: str) -> str:
    """A link's target as a path in the repository."""
    return posixpath.normpath(posixpath.join(posixpath.dirname(source), path))


def _source(target: str) -> str:
    """The file that the links of a target's page are relative to."""
    return f"{target}/README.md" if (ROOT / target).is_dir() else target


def _place(target: str) -> str:
    """The page or picture of the site that shows a path of the repository."""
    if (ROOT / target).is_dir():
        page = "README.md" if (ROOT / target / "README.md").exists() or not target.startswith(DOCS) else "index.md"
        target = f"{target}/{page}"
    if target.startswith(f"{DOCS}/"):
        return target.removeprefix(f"{DOCS}/")
    return posixpath.join(COPIES, target if target.endswith((".md", ".png", ".svg")) else f"{target}.md")


def _content(target: str) -> str:
    """A page for a file or folder outside docs/."""
    path = ROOT / target
    if path.is_dir() and (path / "README.md").exists():
        return (path / "README.md").read_text(encoding="utf-8")
    if path.is_dir() and target.startswith(DOCS):
        titles = {
            page.name: page.read_text(encoding="utf-8").partition("\n")[0].lstrip("# ")
            for page in sorted(path.glob("*.md"))
        }
        return (
            f"# {path.name.capitalize()}\n\n"
            + "\n".join(f"- [{title}]({name})" for name, title in titles.items())
            + "\n"
        )
    if path.is_dir():
        names = subprocess.run(
            ["git", "ls-files", "-z", target], cwd=ROOT, capture_output=True, text=True, check=True
        ).stdout.split("\0")
        inside = sorted({os.path.relpath(name, target).split("/")[0] for name in names if name} - {PRIVATE})
        return (
            f"{UNSEARCHED}# {target}/\n\nFiles of this folder:\n\n"
            + "\n".join(f"- [`{name}`]({name})" for name in inside)
            + "\n"
        )
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".md":
        return text
    return f"{UNSEARCHED}# {target}\n\n````{LANGUAGES.get(path.suffix, 'text')}\n{text}\n````\n"
