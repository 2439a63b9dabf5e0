"""The course's slides as PDF: each on a page of its own, with figures that leave the text least room."""

import re
import shutil
import subprocess

import matplotlib as mpl
import pytest
from matplotlib.figure import Figure

from tests.unit.test_docs import DECKS, DRAWN, ROOT, slides

# As wide and as tall as a slide's figure may be (slides.css).
LARGEST_IN = (11.2, 10)
PAGE = re.compile(rb"/Type /Page\b")


@pytest.mark.parametrize("missing", [name for name in ("pandoc", "weasyprint") if shutil.which(name) is None] or [None])
def test_no_slide_overflows_its_page(missing, tmp_path):
    if missing:
        pytest.skip(f"no {missing} here")
    (tmp_path / "figures").mkdir()
    with mpl.rc_context({"savefig.dpi": 20}):
        for name in DRAWN:
            Figure(LARGEST_IN).savefig(tmp_path / "figures" / f"{name}.png")
    subprocess.run([ROOT / "tools/slides", tmp_path], check=True, capture_output=True, timeout=300)
    pages = {deck.stem: len(PAGE.findall((tmp_path / f"{deck.stem}.pdf").read_bytes())) for deck in DECKS}
    assert pages == {deck.stem: len(slides(deck)) for deck in DECKS}
