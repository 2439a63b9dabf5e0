"""The golden file of messages has nothing that no test holds."""

import re
from pathlib import Path

from tests import golden


def test_every_family_is_held_by_a_test_and_has_its_words():
    tests = "".join(path.read_text() for path in Path(golden.__file__).parent.rglob("test_*.py"))
    known = golden.families()
    held = set(re.findall(r'\b(?:each|Case|told)\(\s*"([^"]+)"', tests))
    assert [family for family in known if family not in held] == []
    assert [case for cases in known.values() for case, said in cases.items() if not said] == []
