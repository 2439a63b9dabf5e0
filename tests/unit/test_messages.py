"""The golden file of messages has nothing that no test holds."""

from pathlib import Path

from tests import golden


def test_every_family_is_held_by_a_test_and_has_its_words():
    tests = "".join(path.read_text() for path in Path(golden.__file__).parent.rglob("test_*.py"))
    known = golden.families()
    assert [family for family in known if f'each("{family}"' not in tests and f'Case("{family}"' not in tests] == []
    assert [case for cases in known.values() for case, said in cases.items() if not said] == []
