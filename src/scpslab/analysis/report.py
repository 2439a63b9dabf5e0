"""Report of a run or a campaign: one HTML file, with key numbers, figures, tables and the papers' findings inside.

`gather` makes the content, values without markup: key numbers, runs with tables and figures, verdicts by paper,
contradictions, and the method. `render` has report.html.j2 make a page of it: styles, tables and pictures are inside;
it has no scripts and fetches nothing.
"""

import base64
import math
import re
import shlex
import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from markupsafe import Markup

from scpslab.analysis.claims import QUESTIONS, Evidence, Outcome, Verdict, evaluate, load_all, load_beside, scoreboard
from scpslab.analysis.claims.load import load_contradictions
from scpslab.analysis.claims.measured import scenario_of
from scpslab.analysis.claims.model import Contradiction, Era
from scpslab.analysis.claims.scoreboard import CheckFinding, CheckResult
from scpslab.analysis.compare import Options, compare_axis
from scpslab.analysis.compare_texts import of_axis
from scpslab.analysis.figures.canvas import PNG_DOTS_PER_INCH, STACK, words_in
from scpslab.analysis.figures.drawing import Warn, applicable, draw, refuse
from scpslab.analysis.figures.plots.points import UNITS
from scpslab.analysis.figures.recipe import CellRecipe, Recipe
from scpslab.analysis.output import Report, pages
from scpslab.analysis.run import resolved_fields
from scpslab.analysis.statistics import Group, Mean, clopper_pearson
from scpslab.analysis.table import HEADLINE, OF_PARTS, Results, Summary, read_results, report, summarise, with_interval
from scpslab.core.contents import sha256_of
from scpslab.core.errors import ResultError
from scpslab.core.folders import is_own
from scpslab.core.scratch import replace_text
from scpslab.runs import CampaignFolder, RunFolder, is_campaign, runs_of
from scpslab.runs.run import REPORT, Campaign, Manifest

LARGEST_SVG_BYTES = 150_000
MEDIA_TYPES = {".svg": "image/svg+xml", ".png": "image/png"}
MOST_KEY_NUMBERS = 5
# Each outcome has a sign besides its colour: nobody needs to distinguish colours.
SIGNS = {
    Outcome.REPRODUCED: "✓",
    Outcome.DIFFERENT: "≠",
    Outcome.NOT_REPRODUCED: "✗",
    Outcome.UNDECIDED: "?",
    Outcome.NO_DATA: "…",
    Outcome.NOT_TESTABLE: "–",
}
MEANINGS = {
    Outcome.REPRODUCED: (
        "Our number is in the stated band, or the order is as the paper says and too clear to be chance."
    ),
    Outcome.DIFFERENT: "Our number is outside the band, but in the band of a deviation with a known reason.",
    Outcome.NOT_REPRODUCED: "Our number is in neither band, so the result differs without a known reason.",
    Outcome.UNDECIDED: "Our interval crosses a bound, or the difference may be chance: more repeats would decide it.",
    Outcome.NO_DATA: "The cells that would decide it have not been run.",
    Outcome.NOT_TESTABLE: "The lab cannot measure it; the reason is given.",
}
# What it means that a metric is so many times as large; for others the last.
COMPARED = {
    "transfer_s": "{more} takes {number} times as long as {less}",
    "user_s": "{more} takes {number} times as long as {less} for whoever waits",
    "goodput_bps": "{more} is {number} times as fast as {less}",
}
LARGER = "{metric} is {number} times as large with {more} as with {less}"
ERA_WORDS = {"period": "as then", "modern": "as today"}


@dataclass(frozen=True)
class Picture:
    """A figure as a file; `anchor` is its name on the page, `shows` describes it for who does not see it.

    `is_wide`: its letters would be too small where it is as wide as a phone, so that it is moved there.
    """

    name: str
    anchor: str
    title: str
    shows: str
    path: Path
    is_wide: bool

    @property
    def uri(self) -> Markup:
        """Its bytes as an address that an <img> can have."""
        data = base64.b64encode(self.path.read_bytes()).decode("ascii")
        uri = f"data:{MEDIA_TYPES[self.path.suffix]};base64,{data}"
        return Markup(uri)  # noqa: S704 (letters of base64)


@dataclass(frozen=True)
class KeyNumber:
    """A number with its spread and unit, and a sentence that says its meaning."""

    value: str
    says: str

    @property
    def parts(self) -> tuple[str, str]:
        """The number, and what stands behind it."""
        number, _, behind = self.value.partition(" ")
        return number, behind

    @property
    def unbroken(self) -> str:
        """The sentence without line breaks within numbers such as 1e-05, and before percent signs."""
        return re.sub(r"(?<=\de)-(?=\d)", "\N{NON-BREAKING HYPHEN}", self.says.replace(" %", "\N{NO-BREAK SPACE}%"))


@dataclass(frozen=True)
class RunPart:
    """One run: its question, its table, its figures.

    `changed`: the settings that gave it other conditions than its scenario's.
    """

    folder: Path
    scenario: str
    title: str
    source: str
    description: str
    table: Report
    pictures: tuple[Picture, ...]
    key_numbers: tuple[KeyNumber, ...]
    cells: int
    virtual_s: float
    results_sha256: str
    manifest: Manifest
    changed: tuple[str, ...]

    @property
    def meanings(self) -> dict[str, str]:
        """What the columns of its table mean."""
        return {column.name: HEADLINE[column.name] for column in self.table.columns if column.name in HEADLINE}

    @property
    def variant(self) -> str:
        """Its variant of the scenario, which the description is about; "" for the whole one."""
        return scenario_of(self.folder).partition(":")[2]

    @property
    def command(self) -> str | None:
        """The command that ran it, for a shell; None: not recorded."""
        return safe_command(self.manifest.command)

    @property
    def program(self) -> str | None:
        """The version of scpslab and the commit that ran it; None: not recorded."""
        program = self.manifest.program
        if program is None:
            return None
        commit = f", commit {program.commit}" if program.commit else ""
        return f"{program.version}{commit}{', changed' if program.is_changed else ''}"


@dataclass(frozen=True)
class Content:
    """Everything that is on the page."""

    name: str
    title: str
    campaign: Campaign | None
    runs: tuple[RunPart, ...]
    verdicts: tuple[Verdict, ...]
    all_claims: int
    contradictions: tuple[tuple[Contradiction, tuple[Verdict, ...]], ...]
    questions: tuple[Verdict, ...]

    @property
    def disagreements(self) -> list[Verdict]:
        """Headline claims that were not reproduced or are different."""
        bad = (Outcome.NOT_REPRODUCED, Outcome.DIFFERENT)
        return [verdict for verdict in self.verdicts if verdict.claim.weight == "headline" and verdict.outcome() in bad]

    @property
    def key_numbers(self) -> tuple[KeyNumber, ...]:
        """Those of the run; for a campaign, how many findings have which outcome."""
        if not self.campaign:
            return self.runs[0].key_numbers if self.runs else ()
        found = [verdict.outcome() for verdict in self.verdicts]
        decided = f"{scoreboard.decided(self.verdicts)} of {self.all_claims}"
        return (
            KeyNumber(decided, "findings of the papers are decided by these runs."),
            *(KeyNumber(f"{found.count(item)} {item.value}", MEANINGS[item]) for item in list(Outcome)[:3]),
        )

    @property
    def command(self) -> str | None:
        """The command that ran the campaign or the run; None: not recorded."""
        if self.campaign:
            return safe_command(self.campaign.command)
        return self.runs[0].command if self.runs else None

    @property
    def main_picture(self) -> Picture | None:
        """The figure that a run is about."""
        return next((picture for run in self.runs for picture in run.pictures if not self.campaign), None)

    @property
    def virtual_s(self) -> float:
        """Seconds of lab time in all cells."""
        return sum(run.virtual_s for run in self.runs)

    @property
    def cells(self) -> int:
        """Cells of all runs."""
        return sum(run.cells for run in self.runs)

    def by_paper(self) -> list[tuple[str, str, list[Verdict]]]:
        """Title and reference of each paper with its verdicts."""
        papers: dict[str, tuple[str, str, list[Verdict]]] = {}
        for verdict in self.verdicts:
            file = verdict.paper.file
            papers.setdefault(verdict.paper.name, (file.title, file.reference, []))[2].append(verdict)
        return list(papers.values())

    def picture_of(self, verdict: Verdict) -> Picture | None:
        """The figure that shows a claim, if a run of the report has drawn it."""
        pictures = (picture for run in self.runs for picture in run.pictures)
        return next((picture for picture in pictures if picture.name == verdict.claim.figure), None)


def gather(folder: Path, warn: Warn = refuse) -> Content:
    """The content for a run or a campaign. Draws figures that are missing or older than the results.

    For a campaign it has all claims, for a single run only those that the run has data for.

    Raises:
        ResultError: a run that cannot be read.
    """
    folders = runs_of([str(folder)])
    campaign = CampaignFolder(folder).read() if is_campaign(folder) else None
    if campaign:
        order = [Path(run).name for run in campaign.runs]
        folders.sort(key=lambda run: order.index(run.name))
    papers = load_all()
    evidence = Evidence.of_runs(folders, warn)
    own, wrong = load_beside(folders, papers)
    for text in wrong:
        warn(text)
    verdicts = evaluate([*papers, *own], evidence)
    shown = tuple(verdicts) if campaign else tuple(verdict for verdict in verdicts if has_data(verdict))
    questions = tuple(verdict for verdict in evaluate(load_all(QUESTIONS), evidence) if campaign or has_data(verdict))
    runs = tuple(_run_part(run, evidence.changed.get(run, ()), warn, is_alone=not campaign) for run in folders)
    known = {f"{verdict.paper.name}/{verdict.claim.id}": verdict for verdict in shown}
    contradictions = tuple(
        (item, tuple(known[name] for name in item.claims))
        for item in load_contradictions(papers)
        if all(name in known for name in item.claims)
    )
    title = campaign.title if campaign else (runs[0].title if runs else folder.name)
    return Content(folder.name, title, campaign, runs, shown, len(verdicts), contradictions, questions)


def safe_command(command: str | None) -> str | None:
    """A recorded command with every word quoted anew: the folder may come from a stranger, and a reader pastes the
    line into a shell.
    """
    if command is None or not command.isprintable():
        return None
    try:
        words = shlex.split(command)
    except ValueError:
        return None
    return shlex.join(words) if words[:2] == ["scpslab", "run"] else None


def check_lines(verdict: Verdict) -> list[tuple[CheckResult, list[str]]]:
    """Each check with its findings in words, combination by combination."""
    return [
        (result, [_in_words(finding, result.check.era) for finding in result.findings]) for result in verdict.results
    ]


def _in_words(finding: CheckFinding, era: Era) -> str:
    at = scoreboard.at_text(finding)
    return f"{at + ': ' if at else ''}{finding.text} – {scoreboard.word(finding.outcome, era)}"


def outcomes(verdict: Verdict) -> list[tuple[Era, Outcome]]:
    """The outcomes by era, for the eras that the claim has checks for."""
    return [
        (era, outcome)
        for era in scoreboard.ERAS
        if (outcome := verdict.outcome(era)) is not None and (era == "period" or not verdict.claim.not_testable)
    ]


def has_data(verdict: Verdict) -> bool:
    """Whether a run has data for a check of the claim."""
    return any(
        finding.outcome is not Outcome.NO_DATA and result.check.operands()
        for result in verdict.results
        for finding in result.findings
    )


def _run_part(folder: Path, changed: tuple[str, ...], warn: Warn, *, is_alone: bool) -> RunPart:
    """`is_alone`: the page is about this run, so that it has key numbers."""
    results = read_results(folder)
    run, summary = RunFolder(folder), summarise(results)
    manifest = run.manifest()
    resolved = resolved_fields(run.resolved)
    scenario = results.rows[0]["scenario"] if results.rows else folder.name
    return RunPart(
        folder,
        scenario,
        str(resolved.get("title") or scenario) + (", changed" if changed else ""),
        str(resolved.get("source") or ""),
        " ".join(str(resolved.get("description") or "").split()),
        report(summary),
        _pictures(folder, scenario, warn),
        tuple(key_numbers(results, summary))[:MOST_KEY_NUMBERS] if is_alone else (),
        len(results.rows),
        sum(cell.status().virtual_s or 0.0 for cell in run.planned_cells()),
        sha256_of(run.results),
        manifest,
        changed,
    )


def key_numbers(results: Results, summary: Summary) -> Iterator[KeyNumber]:
    """What to know first: the largest effect of each of two axes on the first metric, its extremes, and completion."""
    varied = [name for name in results.axes if len({row[name] for row in results.rows}) > 1]
    metric = next(iter(summary.metrics), "")
    for axis in varied[:2] if metric else ():
        yield from _effect(results, axis, metric, varied)
    measured = [group for group in summary.groups if metric and group.means[metric].mean is not None]
    if len(measured) > 1:
        ordered = sorted(measured, key=lambda group: group.means[metric].mean or 0.0)
        for word, group in (("Least", ordered[0]), ("Greatest", ordered[-1])):
            points = dict(zip(summary.by, group.key, strict=True))
            at = ", ".join(f"{name} {points[name]}" for name in varied)
            yield _mean(group.means[metric], metric, f"{word} mean {_named(metric)}: {at}")
    for group in measured if len(measured) == 1 else ():
        for name in (name for name in summary.metrics if group.means[name].n):
            yield _mean(group.means[name], name, f"Mean {_named(name)}")
    yield _completion(summary.groups)


def _mean(mean: Mean, metric: str, says: str) -> KeyNumber:
    unit = next((unit for suffix, unit in UNITS.items() if metric.endswith(suffix)), "")
    spread = "with its 95 % interval" if "±" in with_interval(mean) else "least to greatest in brackets"
    if not mean.ci95_half:
        spread = "all the same" if mean.n > 1 else "so without an interval"
    marked = f" {OF_PARTS}" if mean.is_partial else ""
    return KeyNumber(f"{with_interval(mean)} {unit}", f"{says}. {mean.n} cell{'s' * (mean.n != 1)}, {spread}.{marked}")


def _named(metric: str) -> str:
    return f"{metric} ({HEADLINE[metric]})" if metric in HEADLINE else metric


def _completion(groups: tuple[Group, ...]) -> KeyNumber:
    done = sum(group.completed for group in groups)
    ended = done + sum(group.incomplete for group in groups)
    others = sum(group.failed + group.unsupported for group in groups)
    low, high = (100 * end for end in clopper_pearson(done, ended))
    interval = f"; the share has the 95 % interval {low:.3g} to {high:.3g} %" if done < ended else ""
    says = f"cells completed{interval}."
    more = f" {others} more failed or could not be done, which says nothing about a protocol." if others else ""
    return KeyNumber(f"{done} of {ended}", says + more)


def _effect(results: Results, axis: str, metric: str, varied: Sequence[str]) -> Iterator[KeyNumber]:
    """The largest certain ratio of means between two values of an axis, or the largest if none is certain."""
    try:
        comparison = compare_axis(results, axis, options=Options(metrics=[metric], all_pairs=True))
    except ResultError:
        # No two values share a point.
        return
    pairs = [(pair, ratio) for pair in comparison.pairs if pair.metric == metric and (ratio := pair.effect.ratio)]
    if not pairs:
        return
    pair, ratio = max(pairs, key=lambda one: (one[0].is_certain or one[0].is_exact, abs(math.log(one[1].number))))
    (first, second), ends = pair.sides, (ratio.number, ratio.low, ratio.high)
    if ratio.number < 1:
        first, second = second, first
        ends = (1 / ratio.number, ratio.high and 1 / ratio.high, ratio.low and 1 / ratio.low)
    number, low, high = ("" if end is None else f"{end:.3g}" for end in ends)
    point = [f"{name} {value}" for name, value in zip(comparison.by, pair.key, strict=True) if name in varied]
    at = f", at {', '.join(point)}" if point else ""
    interval = f"; 95 % interval {low} to {high}" if low and low != high else ""
    tested = f"The largest of {len(pairs)} comparisons; it may be chance."
    if pair.is_exact:
        tested = "Exact: nothing is drawn there."
    elif pair.effect.p is None:
        tested = "Too few values for a test."
    elif pair.is_certain:
        tested = f"The largest that is certain after correction for {len(pairs)} comparisons."
    # What the column is called where one workload alone has it.
    bare = next((name for (_, name), columns in results.owned.items() if metric in columns), metric)
    says = COMPARED.get(bare, LARGER).format(
        more=of_axis(axis, second), number=number, less=of_axis(axis, first), metric=_named(metric)
    )
    yield KeyNumber(f"{number} ×", f"{says}{at}{interval}. {tested}")


def _pictures(folder: Path, scenario: str, warn: Warn) -> tuple[Picture, ...]:
    """The main one first."""
    recipes = sorted(applicable(folder), key=lambda recipe: _rank(recipe, scenario))
    if any(not _is_drawn(folder, recipe) for recipe in recipes):
        draw(folder, warn=warn)
    pictures: list[Picture] = []
    for recipe in recipes:
        name = recipe.name
        svg, png = (RunFolder(folder).figures / f"{name}.{suffix}" for suffix in ("svg", "png"))
        words = words_in(png) if is_own(folder, png) else None
        if words is not None:
            # A drawing of thousands of packets is smaller as dots.
            path = svg if is_own(folder, svg) and svg.stat().st_size <= LARGEST_SVG_BYTES else png
            shows = f"{words.title}. {words.conditions}. The values are in the table of this run."
            anchor = f"figure-{folder.name}-{name}"
            pictures.append(Picture(name, anchor, words.title, shows, path, _is_wide(png)))
    return tuple(pictures)


def _rank(recipe: Recipe, scenario: str) -> tuple[bool, bool, bool]:
    """The place of a figure on the page: the user's own, and that of the scenario's name, before others; those of the
    whole sweep before those of single cells.
    """
    named = scenario.partition(":")[0].replace("/", "-")
    return isinstance(recipe, CellRecipe), not recipe.is_own, not named.endswith(recipe.name)


def _is_wide(png: Path) -> bool:
    """Whether a picture is wider than those for a phone, by the first fields of a PNG file (RFC 2083 §4.1.1)."""
    (width,) = struct.unpack(">I", png.read_bytes()[16:20])
    return int(width) > STACK.width * PNG_DOTS_PER_INCH


def _is_drawn(folder: Path, recipe: Recipe) -> bool:
    run = RunFolder(folder)
    picture = run.figures / f"{recipe.name}.png"
    newest = max(run.results.stat().st_mtime_ns, recipe.file.stat().st_mtime_ns if recipe.is_own else 0)
    return is_own(folder, picture) and picture.stat().st_mtime_ns >= newest and words_in(picture) is not None


@dataclass(frozen=True)
class Embedded:
    """The page of a cell, a file of HTML, within the report; `script`: the source of its only program, as policies
    name it.
    """

    cell: str
    html: str
    script: str


def write_report(folder: Path, warn: Warn = refuse, embedded: Embedded | None = None) -> Path:
    """Writes report.html into the folder of a run or campaign; returns its path.

    The same results give the same bytes. `warn`: see `figures.draw`.

    Raises:
        ResultError: a run that cannot be read.
    """
    path = folder / REPORT
    replace_text(path, render(folder, warn, embedded))
    return path


def render(folder: Path, warn: Warn = refuse, embedded: Embedded | None = None) -> str:
    """The page as text."""
    # Content is text: everything is escaped except pictures, which are our own data.
    template = pages(Path(__file__).parent).get_template("report.html.j2")
    return template.render(
        content=gather(folder, warn),
        embedded=embedded,
        outcomes=list(Outcome),
        signs=SIGNS,
        meanings=MEANINGS,
        era_words=ERA_WORDS,
        outcomes_of=outcomes,
        check_lines=check_lines,
        has_data=has_data,
        scoreboard=scoreboard,
    )
