"""The studio in a real browser: Debian's chromium, by its controls and its keys, on a page of a real cell."""

import dataclasses
import json
import re
import shutil
import signal
import socket
import subprocess
from pathlib import Path
from urllib.parse import urlsplit

import pytest
import yaml

from scpslab.analysis.run import open_run
from scpslab.analysis.table import read_results
from scpslab.core.project import ROOT
from scpslab.measure.losses import Fates
from scpslab.measure.packets import FATES
from scpslab.studio.cell import cell_data
from scpslab.studio.page import Entry, Page
from tests.lab.command import scpslab

CHROMIUM = shutil.which("chromium")
SCENARIO = """\
topology: point_to_point
links:
  hop:
    forward: {rate: 2 Mbit/s, delay: 100 ms, queue: {discipline: drop-tail, limit: 30 kB}, errors: {model: independent, ber: 2e-6}}
    return: {rate: 2 Mbit/s, delay: 100 ms}
workloads:
  - {kind: bulk, name: transfer, from: h1, to: h2, size: 400 kB}
  - {kind: ping, name: echo, from: h1, to: h2, start: 2 s, count: 5, interval: 200 ms}
probes:
  - {kind: tcp_info, node: h1, interval: 50 ms}
events:
  - {at: 3 s, link: hop, rate: 1 Mbit/s}
sweep:
  stack:
    cases:
      cubic: {hosts.*.preset: cubic}
      bbr: {hosts.*.preset: bbr}
repeats: 1
seed: 3
"""
EVIL = '<img src=x onerror="document.title=1"></script><svg onload=alert(1)>'
LIMIT_MS = 30_000
# How far to the right the strip over the cells has losses, as a share of its width: what is drawn in its upper rows.
LAST_OF_STRIP = """() => {
  const strip = document.getElementById("strip"), { width } = strip, { data } = strip.getContext("2d").getImageData(0, 0, width, 6);
  return data.reduce((last, ink, at) => (at % 4 === 3 && ink ? Math.max(last, ((at - 3) / 4) % width) : last), 0) / width;
}"""

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="chromium is not installed (apt-get install chromium)")


@pytest.fixture(scope="module")
def ran(run_once):
    """A run of two cells with losses."""
    return open_run(run_once(SCENARIO).folder)


@pytest.fixture(scope="module")
def browser():
    """A browser without a window."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture
def opened(browser):
    """Opens addresses, offline where wanted; at the end nothing has gone wrong in them."""
    wrong, contexts = [], []

    def open_(address, *, width=1280, offline=False, scheme="light", is_studio=True):
        context = browser.new_context(viewport={"width": width, "height": 900}, offline=offline, color_scheme=scheme)
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(LIMIT_MS)
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.on("console", lambda said: wrong.append(said.text) if said.type == "error" else None)
        page.on("dialog", lambda dialog: wrong.append(dialog.message))
        page.asked = []
        page.on("request", lambda request: page.asked.append(request.url))
        page.goto(address)
        if is_studio:
            page.wait_for_selector("html[data-ready]", state="attached")
        return page

    yield open_
    for context in contexts:
        context.close()
    assert wrong == []


@pytest.fixture(scope="module")
def file(ran, tmp_path_factory):
    """The page of the first cell, as a file."""
    path = tmp_path_factory.mktemp("pages") / "cell.html"
    scpslab("studio", ran.folder, ran.cells[0].id, "--export", path)
    return path


@pytest.fixture
def page(opened, file):
    return opened(file.as_uri(), offline=True)


def at_ns(page) -> int:
    """Where the cursor is, when the page has told in words what is there: a timer after the frame."""
    page.evaluate("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(done))))")
    return int(re.sub(r"\D", "", page.input_value("#at")))


def window(page) -> list[int]:
    """The span of time that the plots show, by the address."""
    page.wait_for_timeout(400)
    return [int(one) for one in re.findall(r"(?:from|to)=(-?\d+)", page.evaluate("location.hash"))]


def serious(page) -> list[tuple[str, str]]:
    """What axe finds that keeps people from using a page: its rules, and where they are broken."""
    from axe_playwright_python.sync_playwright import Axe

    found = Axe().run(page).response
    assert len(found["passes"]) > 10
    broken = [one for one in found["violations"] if one["impact"] in ("serious", "critical")]
    return [(one["id"], node["html"]) for one in broken for node in one["nodes"]]


def act(page, name: str) -> None:
    page.click(f"[data-act={name}]")


def test_a_file_works_offline_and_asks_for_nothing(page, ran, file):
    assert page.asked == [file.as_uri()]
    assert page.text_content("h1") == "A test's"
    assert page.text_content("h2") == ran.cells[0].id
    packets = sum(len(one) for one in ran.cells[0].record.by_place.values())
    assert re.sub(r"\D", "", page.text_content(".facts li").partition(" packets")[0]) == str(packets)


def test_a_report_has_the_packets_of_its_most_telling_cell(opened, ran):
    """In a frame that may run the studio's program and nothing else."""
    report = Path(scpslab("report", ran.folder).strip())
    page = opened(report.as_uri(), offline=True, is_studio=False)
    page.locator("#packets").scroll_into_view_if_needed()
    frame = page.frame_locator("iframe")
    frame.locator("html[data-ready]").wait_for(state="attached")

    longest = max(read_results(ran.folder).rows, key=lambda row: row.numbers["transfer_s"])
    assert frame.locator("h2").first.text_content() == longest["cell"]
    assert page.asked == [report.as_uri()]
    assert page.evaluate("document.querySelector('iframe').contentDocument") is None
    assert report.read_bytes() == Path(scpslab("report", ran.folder).strip()).read_bytes()


def test_the_losses_of_the_page_are_those_of_the_record(page, ran):
    record = ran.cells[0].record
    lost = [
        (
            int(one.arrived_ns[row]) if FATES[one.fate[row]] != "queue" else int(one.offered_ns[row]),
            FATES[one.fate[row]],
        )
        for one in record.by_place.values()
        for row in range(len(one))
        if FATES[one.fate[row]] in ("queue", "corrupt")
    ]
    assert {cause for _, cause in lost} == {"queue", "corrupt"}
    page.fill("#at", "0")
    page.keyboard.press("Enter")
    found = []
    for _ in lost:
        act(page, "next-loss")
        found.append((at_ns(page), "queue" if "lost: queue full" in page.text_content(".packet") else "corrupt"))
    assert found == sorted(lost)
    act(page, "next-loss")
    assert at_ns(page) == found[-1][0]
    act(page, "previous-loss")
    assert at_ns(page) == found[-2][0]


def test_a_lost_packet_leads_to_its_repair(page):
    page.fill("#at", "0")
    page.keyboard.press("Enter")
    act(page, "next-loss")
    lost = at_ns(page)
    assert "Repaired by sequence" in page.text_content(".repair")
    sequence = re.search(r"· sequence (\S+)", page.text_content(".packet"))[1]
    page.click(".repair button")
    assert at_ns(page) > lost
    assert f"sequence {sequence}" in page.text_content(".packet")
    assert "delivered" in page.text_content(".hops")


def go(page, second: str) -> None:
    page.fill("#at", second)
    page.keyboard.press("Enter")
    at_ns(page)
    page.wait_for_timeout(100)


def test_a_fall_of_the_window_leads_to_the_loss_that_its_sender_had_heard_of(opened, ran, tmp_path):
    """CUBIC sends a packet again in the nanosecond in which its window falls for it."""
    scpslab("studio", ran.folder, "stack=cubic,*", "--export", tmp_path / "cubic.html")
    page = opened((tmp_path / "cubic.html").as_uri(), offline=True)
    go(page, "3")
    fell = page.text_content(".moment button >> nth=0")
    page.click(".moment button >> nth=1")
    assert at_ns(page) < int(re.sub(r"\D", "", fell))
    assert page.text_content(".repair button") == f"sent at {fell}"


def test_the_queue_drains_while_nothing_comes(page, ran):
    """At the cursor, in the plot as in the network."""
    packets = ran.cells[0].record.by_place["hop", "forward"]
    pause = int((packets.offered_ns[1:] - packets.left_ns[:-1]).argmax())
    gone_ns, wire = int(packets.left_ns[pause]), int(packets.wire_bytes[pause])
    for ns, queue in ((gone_ns - 1, wire), (gone_ns, 0)):
        go(page, str(ns / 1e9))
        said = re.match(r"(\S+).(k?)B in the queue before hop h1 → h2", page.text_content(".moment p:last-child"))
        assert float(said[1]) * (1000 if said[2] else 1) == queue
        assert f"queue {said[1]}" in page.get_attribute(".map", "aria-label") or not queue


def test_flows_say_who_got_what_in_the_window(page, ran):
    """As the plot of rates does: of what came, not of what was sent."""
    packets = ran.cells[0].record.by_place["hop", "forward"]
    begin, end = window(page)
    came = packets.wire_bytes[packets.arrived & packets.is_tcp].sum()
    rate, share = re.search(r": (\S+).kbit/s, (\d+) %", page.text_content(".flows li >> nth=0")).groups()
    assert float(rate) == pytest.approx(came * 8e6 / (end - begin), rel=0.01)
    assert int(share) > 90
    page.keyboard.press("+")
    assert window(page) != [begin, end]
    assert rate not in page.text_content(".flows li >> nth=0")


def test_packets_follow_each_other_by_their_offers(page, ran):
    packets = ran.cells[0].record.by_place["hop", "forward"]
    page.select_option(".place", index=1)
    page.fill("#at", "0")
    page.keyboard.press("Enter")
    found = []
    for _ in range(4):
        act(page, "next-packet")
        found.append(at_ns(page))
    assert found == packets.offered_ns[:4].tolist()
    act(page, "previous-packet")
    assert at_ns(page) == packets.offered_ns[2]
    assert page.locator("tbody tr[aria-current]").count() == 1
    page.locator("tbody button").first.click()
    assert at_ns(page) == packets.offered_ns[0]


def test_events_zoom_and_play(page):
    page.fill("#at", "1.5")
    page.keyboard.press("Enter")
    assert at_ns(page) == 1_500_000_000
    act(page, "next-event")
    assert at_ns(page) == 2_000_000_000
    act(page, "next-event")
    assert 3_000_000_000 <= at_ns(page) < 3_001_000_000
    act(page, "previous-event")
    begin, end = window(page)
    for _ in range(40):
        act(page, "zoom-in")
    narrow = window(page)
    assert narrow[1] - narrow[0] <= 40
    assert narrow[0] <= at_ns(page) <= narrow[1]
    act(page, "zoom-out")
    assert window(page)[1] - window(page)[0] > narrow[1] - narrow[0]
    act(page, "fit")
    assert window(page) == [begin, end]
    page.select_option("#speed", "0.1")
    act(page, "play")
    assert page.text_content("#play") == "Pause"
    page.wait_for_timeout(1500)
    act(page, "play")
    assert 2_000_000_000 < at_ns(page) < 3_900_000_000
    assert page.text_content("#play") == "Play"


def test_flows_are_chosen(page):
    assert page.locator(".flows li").count() == 2
    before = page.locator(".chart").screenshot()
    page.uncheck(".flows li >> nth=1 >> input")
    page.check(".level")
    assert page.locator(".chart").screenshot() != before
    page.click(".flows li >> nth=1 >> button")
    assert page.get_attribute(".flows li >> nth=1 >> button", "aria-pressed") == "true"


def test_the_keyboard_is_enough(page):
    page.keyboard.press("?")
    assert page.locator("dialog[open]").count() == 1
    page.keyboard.press("Escape")
    page.focus("#cursor")
    for key, differs in (
        ("l", True),
        ("L", False),
        ("ArrowRight", True),
        ("ArrowLeft", True),
        ("e", True),
        ("E", True),
    ):
        before = at_ns(page)
        page.keyboard.press(key)
        assert (at_ns(page) != before) or not differs, key
    before = at_ns(page)
    page.keyboard.press("Shift+ArrowRight")
    assert at_ns(page) > before
    begin, end = window(page)
    page.keyboard.press("+")
    assert window(page)[1] - window(page)[0] < end - begin
    page.keyboard.press("0")
    page.keyboard.press("]")
    assert page.input_value("#speed") == "10"
    for _ in range(3):
        page.keyboard.press("[")
    assert page.input_value("#speed") == "0.01"
    page.keyboard.press(" ")
    assert page.text_content("#play") == "Pause"
    page.keyboard.press(" ")
    assert page.text_content("#play") == "Play"
    page.evaluate("document.body.focus()")
    reached = set()
    for _ in range(60):
        page.keyboard.press("Tab")
        reached.add(page.evaluate("(one => one.dataset.act ?? one.id ?? one.className)(document.activeElement)"))
    assert {"play", "next-packet", "next-loss", "next-event", "zoom-in", "fit"} <= reached
    assert page.evaluate("document.getElementById('live').textContent") != ""


def test_the_cursor_is_dragged(page):
    box = page.locator(".overlay").bounding_box()
    page.mouse.move(box["x"] + 200, box["y"] + 60)
    page.mouse.down()
    first = at_ns(page)
    page.mouse.move(box["x"] + 400, box["y"] + 60)
    second = at_ns(page)
    page.mouse.up()
    page.mouse.move(box["x"] + 500, box["y"] + 60)
    assert first < second == at_ns(page)


def test_a_place_is_kept_in_the_address(opened, file):
    page = opened(f"{file.as_uri()}#from=1000000000&to=2000000000&at=1500000123")
    assert at_ns(page) == 1_500_000_123
    assert window(page) == [1_000_000_000, 2_000_000_000]


@pytest.mark.parametrize("width", [420, 1280])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_nothing_is_cut_at_any_width(opened, file, width, scheme):
    page = opened(file.as_uri(), width=width, scheme=scheme)
    assert page.evaluate("document.documentElement.scrollWidth") == width


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_serious(opened, ran, file, scheme):
    report = Path(scpslab("report", ran.folder).strip())
    assert serious(opened(file.as_uri(), scheme=scheme)) == []
    assert serious(opened(report.as_uri(), is_studio=False, scheme=scheme)) == []


def test_it_is_one_page_of_paper(page, tmp_path):
    page.pdf(path=tmp_path / "page.pdf", format="A4")
    assert len(re.findall(rb"/Type\s*/Page\b", (tmp_path / "page.pdf").read_bytes())) == 1


def test_two_cells_share_the_cursor(opened, ran, tmp_path):
    scpslab("studio", ran.folder, "--export", tmp_path / "run.html")
    page = opened((tmp_path / "run.html").as_uri(), offline=True)
    assert page.locator("#grid tbody tr").count() == 2
    for box in page.locator("#grid tbody input").all():
        box.check()
    page.click("#compare")
    page.wait_for_selector(".cell >> nth=1")
    assert page.locator(".cell h2").all_text_contents() == [cell.id for cell in ran.cells]
    before = [chart.screenshot() for chart in page.locator(".overlay").all()]
    page.keyboard.press("0")
    page.keyboard.press("Shift+ArrowRight")
    at_ns(page)
    assert all(chart.screenshot() != one for chart, one in zip(page.locator(".overlay").all(), before, strict=True))
    page.click("#back")
    page.wait_for_selector("#grid:not([hidden])")
    page.click("#grid tbody button >> nth=1")
    page.wait_for_selector(".cell")
    assert page.locator(".cell h2").all_text_contents() == [ran.cells[1].id]


def test_the_strip_is_of_all_cells_that_are_shown(opened, ran, tmp_path):
    """Also of one that is longer than the first."""
    datas = [cell_data(cell) for cell in ran.cells]
    end_ns = 2 * max(data.meta["end_ns"] for data in datas)
    datas[1] = dataclasses.replace(datas[1], meta={**datas[1].meta, "end_ns": end_ns})
    entries = [Entry(name, ("", name), "completed", data=data) for name, data in zip("ab", datas, strict=True)]
    (tmp_path / "two.html").write_text(Page("two", "", entries, shown=(0, 1)).html)
    page = opened((tmp_path / "two.html").as_uri(), offline=True)
    at_ns(page)
    last_ns = max(round(one.t_s * 1e9) for cell in ran.cells for one in Fates(cell.record).lost())
    assert page.evaluate(LAST_OF_STRIP) == pytest.approx(last_ns / end_ns, abs=0.01)


def test_names_that_are_markup_are_text(opened, ran, tmp_path):
    data = cell_data(ran.cells[0])
    meta = json.loads(json.dumps(data.meta))
    names = {name: f"{EVIL}{name}" for name in ("h1", "h2", "hop", "transfer", "echo")}

    def renamed(value):
        match value:
            case dict():
                return {key: renamed(one) for key, one in value.items()}
            case list():
                return [renamed(one) for one in value]
        return names.get(value, value) if isinstance(value, str) else value

    evil = renamed(meta) | {"id": EVIL, "notes": [EVIL], "reason": EVIL}
    evil["marks"] = [mark | {"text": EVIL} for mark in evil["marks"]]
    entries = [Entry(EVIL, (EVIL, EVIL), EVIL, [EVIL], dataclasses.replace(data, meta=evil)) for _ in range(2)]
    (tmp_path / "evil.html").write_text(Page(EVIL, EVIL, entries, shown=(0,), numbers=[(EVIL, EVIL)]).html)
    page = opened((tmp_path / "evil.html").as_uri(), offline=True)
    page.keyboard.press("l")
    at_ns(page)
    assert page.text_content("h1") == page.text_content("h2") == page.evaluate("document.title") == EVIL
    assert page.locator("img, svg, iframe").count() == 0


def test_a_lab_is_used_by_its_page(opened, tmp_path):
    """By its controls, while they are watched; what was done is a scenario, and the lab ends with the page's button."""
    words = [
        "studio",
        "--live",
        "point_to_point",
        "--set",
        "links.hop.forward.delay=20 ms",
        "--keep",
        tmp_path / "kept",
    ]
    command = subprocess.Popen([ROOT / "scpslab", *words], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    try:
        page = opened(command.stdout.readline().strip())
        page.wait_for_selector("#console:has-text('scpslab>')")
        page.fill("#line", "h1 sleep 8; echo done sleeping")
        page.keyboard.press("Enter")
        forward = page.locator("fieldset").first
        assert forward.locator("legend").text_content() == "hop forward, h1 → h2"
        forward.locator("input[type=text]").first.fill("1 Mbit/s")
        page.keyboard.press("Enter")
        forward.locator("input[type=range]").last.fill("-5")
        # A command runs; what a link is changed to is told by the transcript.
        page.wait_for_selector("#console:has-text('ber 1e-5')")
        page.fill("#work-for", "4")
        page.click("#traffic button")
        page.wait_for_selector("text=/bit errors/")
        forward.locator("button").click()
        page.wait_for_selector("fieldset >> nth=0 >> text=take up")
        page.click("#play")
        page.fill("#at", "999")
        page.keyboard.press("Enter")
        page.keyboard.press("L")
        at_ns(page)
        assert "lost" in page.text_content(".packet")
        page.click("#play")
        assert serious(page) == []
        page.click("#keep")
        page.wait_for_selector("text=scpslab run")
        page.click("#end")
        page.wait_for_selector("text=The lab has ended")
        assert command.wait(LIMIT_MS / 1000) == 0
    finally:
        command.kill()
    steps = yaml.safe_load((tmp_path / "kept" / "transcript.yaml").read_text())["events"]
    assert [step.get("rate") or step.get("ber") for step in steps if "link" in step] == ["1 Mbit/s", 1e-5, None]
    number, unit = steps[1]["at"].split()
    assert float(number) * {"ms": 0.001, "s": 1}[unit] < 8
    assert any("iperf3 -c" in step.get("command", "") for step in steps)
    assert "done sleeping" in page.text_content("#console")


def test_the_server_shows_the_run_and_ends_with_its_command(opened, ran):
    command = subprocess.Popen(
        [ROOT / "scpslab", "studio", str(ran.folder)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        address = command.stdout.readline().strip()
        page = opened(address)
        page.click("#grid tbody a >> nth=0")
        page.wait_for_selector(".cell")
        page.click("#back")
        page.wait_for_selector("#grid:not([hidden])")
        for box in page.locator("#grid tbody input").all():
            box.check()
        page.click("#compare")
        page.wait_for_selector(".cell >> nth=1")
        assert {urlsplit(url).netloc for url in page.asked if url.startswith("http")} == {urlsplit(address).netloc}
    finally:
        command.send_signal(signal.SIGINT)
        assert command.wait(30) == 0
    with socket.socket() as other:
        assert other.connect_ex(("127.0.0.1", urlsplit(address).port)) != 0
