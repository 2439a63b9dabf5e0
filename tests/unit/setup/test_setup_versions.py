"""The versions of recipes: files that are read strictly."""

from scpslab.core.errors import CapabilityError
from scpslab.setup import published
from tests import golden
from tests.cases import refusal
from tools.build import pin, versions

MADE = published.Entry("kernel", "0" * 16, "a" * 64, "gcc 12")


@golden.each("versions.txt")
def test_anything_else_is_refused_with_its_line(case, tmp_path):
    file = tmp_path / "versions.txt"
    text = case.replace("DATE", "date 20261122T210000Z").replace(r"\n", "\n").replace("NOTHING", "")
    file.write_bytes(f"{text}\n".encode("latin-1"))
    case.hold(refusal(versions.read, file, error=CapabilityError), tmp_path)


def test_the_published_file_is_read_back_and_strict(tmp_path, told):
    file = tmp_path / "published.txt"
    assert published.read(file) == []
    file.write_text(pin.published_text([MADE]))
    assert published.read(file) == [MADE]
    file.write_text("kernel 0 a\n")
    told("published.txt", "kernel 0 a", published.read, file)


@golden.each("verdict on a built part", "case sha256 tools recipe differs")
def test_the_verdict_says_why_bytes_differ(case, sha256, tools, recipe, differs):
    made = published.Entry("kernel", recipe * 16, sha256 * 64, tools)
    verdict = published.judge("lab kernel", made, differs.split(), [MADE])
    case.hold(f"{verdict.same}: {verdict.text}")
