"""The report: complete in itself, escaped, reproducible, readable."""

import hashlib
import html.parser
import re
import shutil

import pytest

from scpslab.analysis.claims import Evidence, Outcome, evaluate, load_all
from scpslab.analysis.claims.load import load
from scpslab.analysis.compare import Options, compare_axis
from scpslab.analysis.report import (
    Content,
    KeyNumber,
    check_lines,
    gather,
    key_numbers,
    render,
    safe_command,
    write_report,
)
from scpslab.analysis.statistics import ResultRow, clopper_pearson
from scpslab.analysis.table import Results, read_results, summarise
from scpslab.running.run_plan import command
from scpslab.runs.run import Manifest
from scpslab_course.grading.grade import Status
from tests.cases import document

pytestmark = pytest.mark.slow


class Page(html.parser.HTMLParser):
    """Elements with their attributes, and the text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))

    def handle_data(self, data):
        self.texts.append(data)

    def all(self, tag):
        return [attributes for name, attributes in self.elements if name == tag]


OWN_CLAIM = document("claims of two eras")


@pytest.fixture(scope="module")
def text(campaign_dir):
    return write_report(campaign_dir).read_text()


@pytest.fixture(scope="module")
def page(text):
    return Page(text)


def test_the_page_fetches_nothing_and_runs_nothing(page, text):
    fetching = {"src", "href", "data", "action"}
    addresses = [found[name] for _, found in page.elements for name in fetching & found.keys()]

    assert addresses
    assert [value for value in addresses if not value.startswith(("#", "data:"))] == []
    assert page.all("script") == []
    assert "@import" not in text
    assert "url(" not in text


def test_every_finding_of_every_paper_is_there(page):
    shown = {attributes.get("id") for attributes in page.all("details")}
    assert {f"{paper.name}-{claim.id}" for paper in load_all() for claim in paper.file.claims} <= shown


def ids(page):
    return [attributes["id"] for _, attributes in page.elements if "id" in attributes]


def test_links_within_the_page_lead_somewhere_and_names_are_unique(campaign_dir, page, monkeypatch):
    """Also where a finding is on the page twice."""
    targets = {attributes["href"][1:] for attributes in page.all("a") if attributes["href"].startswith("#")}
    assert targets <= set(ids(page))
    monkeypatch.setattr(Content, "disagreements", property(lambda content: list(content.verdicts[:2])))
    twice = ids(Page(render(campaign_dir)))
    assert len([name for name in twice if name.startswith("again-")]) == 2
    for names in (ids(page), twice):
        assert len(names) == len(set(names))


def test_pictures_are_inside_and_say_what_they_show(page):
    pictures = page.all("img")
    assert len(pictures) >= 2
    assert all(picture["src"].startswith("data:image/") and picture["alt"] for picture in pictures)


def test_text_of_scenarios_is_text(text):
    assert "<b>" not in text
    assert "Corruption &lt;b&gt;&amp;amp; more&lt;/b&gt;" in text
    assert re.findall(r"&amp;(?:#\d+|lt|gt|quot);", text) == [], "escaped twice"


def test_tables_have_intervals_and_count_what_did_not_complete(page, run_dir):
    texts = " ".join(page.texts)
    assert "±" in texts
    assert "incomplete: transfer: sender gave up" in texts
    assert "The campaign is interrupted" in texts
    assert "sgls/*" in texts


def test_the_same_results_give_the_same_bytes(campaign_dir, run_dir, text):
    shutil.rmtree(run_dir / "figures")
    assert write_report(campaign_dir).read_text() == text


def test_a_single_run_shows_the_findings_that_it_has_data_for(run_dir):
    content = gather(run_dir)

    shown = {verdict.claim.id for verdict in content.verdicts}
    assert "fig05-tcp-delay-clean" not in shown, (
        "the synthetic transfers have 60,000 bytes: not the conditions of the paper"
    )
    assert not any(verdict.paper.name == "itc1999" for verdict in content.verdicts)
    assert content.all_claims == 173


def test_white_letters_on_every_ground_have_contrast(text):
    """WCAG 2.1, 1.4.3: 4.5 to 1. Grounds of chips, and text on both schemes."""
    rules = re.findall(r"^\.([a-z-]+)(?:, \.([a-z-]+))? \{ background: (#[0-9a-f]{6}); \}$", text, re.MULTILINE)
    grounds = [(name, ground) for *names, ground in rules for name in names if name]
    schemes = [dict(re.findall(r"--(\w+): (#[0-9a-f]{6})", block)) for block in re.findall(r":root \{([^}]*)\}", text)]

    chips = {outcome.value.replace(" ", "-") for outcome in Outcome} | set(Status)
    assert {name for name, _ in grounds} == chips
    assert len(schemes) == 3, "light, dark, paper"
    assert [name for name, ground in grounds if contrast("#ffffff", ground) < 4.5] == []
    assert [
        (name, ground)
        for scheme in schemes
        for name in ("ink", "soft", "link")
        for ground in ("ground", "shade")
        if contrast(scheme[name], scheme[ground]) < 4.5
    ] == []


def contrast(first: str, second: str) -> float:
    """Contrast ratio of two colours (WCAG 2.1)."""

    def luminance(colour: str) -> float:
        parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
        linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    low, high = sorted((luminance(first), luminance(second)))
    return (high + 0.05) / (low + 0.05)


@pytest.fixture
def claims_line(scpslab, run_dir, tmp_path, monkeypatch):
    """What `scpslab claims` prints of a claim on this run, in one line."""

    def line(text, claim):
        (path := tmp_path / "mine.yaml").write_text(text)
        monkeypatch.setenv("COLUMNS", "300")
        code, said, _ = scpslab("claims", run_dir, "--file", path)
        assert code == 0
        assert "\\" not in said
        return next(line for line in said.splitlines() if claim in line)

    return line


def test_a_stack_of_today_reproduces_nothing_that_is_said_of_another(run_dir, tmp_path, claims_line):
    line = claims_line(OWN_CLAIM, "vegas-holds")
    assert "holds (bbr instead of scps-vegas)" in line
    assert "reproduced" not in line
    (verdict,) = evaluate([load(tmp_path / "mine.yaml")], Evidence.of_runs([run_dir]))
    ((_, period), (_, today)) = check_lines(verdict)
    assert "no data yet" in period[0]
    assert today[0].endswith("– holds")


def test_brackets_of_intervals_are_printed_as_they_are(claims_line):
    own = OWN_CLAIM.replace("era: modern, ", "").replace("stack: scps-vegas", "stack: bbr")
    assert " [" in claims_line(own, "vegas-holds")


def test_the_page_of_a_run_is_figure_numbers_results_method(run_dir):
    page = Page(render(run_dir))
    places = [
        attributes.get("id") or attributes.get("class") or tag
        for tag, attributes in page.elements
        if tag in ("figure", "section", "table") or attributes.get("class") == "numbers"
    ]
    wanted = [f"figure-{run_dir.name}-fy97-fig04", "numbers", "results", "values", "method"]
    assert [place for place in places if place in wanted] == wanted
    assert places[0] == wanted[0], "not the traces of single cells, which their names would put first"
    assert "each way" not in " ".join(page.texts), "conditions are drawn into the picture"


def test_a_wide_figure_is_scrolled_on_a_phone(run_dir):
    page = Page(render(run_dir))
    assert page.all("img")[0]["class"] == "wide"
    assert page.all("figure")[0]["tabindex"] == "0"


def test_key_numbers_are_effects_extremes_and_completion(run_dir):
    content = gather(run_dir)
    numbers = {item.value: item.says for item in content.key_numbers}
    results = read_results(run_dir)
    times = [row.numbers["transfer_s"] for row in results.rows if row.has_completed]

    assert 3 <= len(numbers) <= 5
    assert list(numbers)[-1] == f"{len(times)} of {len(results.rows)}"
    said = " ".join(numbers.values())
    low, high = clopper_pearson(len(times), len(results.rows))
    assert f"95 % interval {100 * low:.3g} to {100 * high:.3g} %" in said
    assert re.search(r"\w+ takes [\d.]+ times as long as \w+, at ber", said)
    assert "Greatest mean transfer_s (transfer time in seconds): stack" in said


def test_the_largest_effect_is_that_of_the_means(run_dir):
    """The same as `scpslab compare`, seen from the smaller side."""
    first = gather(run_dir).key_numbers[0]
    pairs = compare_axis(read_results(run_dir), "stack", options=Options(metrics=["transfer_s"])).pairs
    ratios = [(pair.effect.ratio.number, pair.is_certain or pair.is_exact) for pair in pairs if pair.effect.ratio]
    certain = [max(number, 1 / number) for number, is_certain in ratios if is_certain]
    assert f"{max(certain):.3g} ×" == first.value
    assert "Exact: nothing is drawn there." in first.says


def test_a_run_without_a_completed_cell_has_its_count_alone(tmp_path):
    results = Results(tmp_path, (), (), (), (ResultRow({"status": "incomplete"}),))
    (number,) = key_numbers(results, summarise(results))
    assert number == KeyNumber("0 of 1", "cells completed; the share has the 95 % interval 0 to 97.5 %.")


def test_a_run_in_which_all_completed_has_no_interval_of_its_count(tmp_path):
    results = Results(tmp_path, (), (), (), (ResultRow({"status": "completed"}),))
    (number,) = key_numbers(results, summarise(results))
    assert number == KeyNumber("1 of 1", "cells completed.")


def test_numbers_do_not_break_within_a_line():
    item = KeyNumber("23 ×", "at ber 5e-05, of one-way delays; 95 % interval")
    assert item.unbroken == "at ber 5e\N{NON-BREAKING HYPHEN}05, of one-way delays; 95\N{NO-BREAK SPACE}% interval"
    assert item.parts == ("23", "×")


def test_the_page_says_what_was_run_and_which_bytes_came_out(run_dir):
    texts = " ".join(Page(render(run_dir)).texts)
    assert hashlib.sha256((run_dir / "results.csv").read_bytes()).hexdigest() in texts


def test_an_engine_other_than_the_default_is_in_the_command():
    assert command("fy97/fig04", "live", ["repeats=1"]) == "scpslab run fy97/fig04 --engine live --set repeats=1"


def test_a_run_of_an_earlier_version_is_read_and_says_that_nothing_is_recorded(run_dir):
    page = render(run_dir)
    assert "The command is not recorded" in page
    assert "of a version that is not recorded" in page


@pytest.mark.parametrize(
    ("recorded", "shown"),
    [
        ("scpslab run links/loss; rm -rf x", "scpslab run 'links/loss;' rm -rf x"),
        ("scpslab run $(date)", "scpslab run '$(date)'"),
        ("rm -rf x", None),
        ("scpslab run 'open", None),
        ("scpslab run a\nrm -rf x", None),
        (["scpslab", "run"], None),
        (None, None),
    ],
)
def test_a_line_of_a_stranger_s_folder_starts_nothing_else(recorded, shown):
    assert safe_command(Manifest.of({"command": recorded}).command) == shown
