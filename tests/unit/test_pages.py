"""The reading of pages whose commands are tests: what they show is held against what was printed."""

import re

import pytest

from tests.lab.pages import DOCS, Command, File, agree, steps

PAGE = """
Some words. Save this as `mine/a.yaml`:

```yaml
kind: scenario
```

An example that nobody saves:

```yaml
kind: figure
```

Add this to the end of `mine/a.yaml`:

```yaml
seed: 1
```

```python mine/b.py
pass
```

```sh
zeroth
```

```console
$ first
one
$ second
scpslab> link
hop
scpslab> exit
```
"""


def test_a_page_is_files_and_commands_in_its_order(tmp_path):
    (tmp_path / "page.md").write_text(PAGE)

    assert list(steps(tmp_path / "page.md")) == [
        File("mine/a.yaml", "kind: scenario\n", added=False),
        File("mine/a.yaml", "seed: 1\n", added=True),
        File("mine/b.py", "pass\n", added=False),
        Command("zeroth", "", ""),
        Command("first", "", "one\n"),
        Command("second", "link\nexit\n", "scpslab> link\nhop\nscpslab> exit\n"),
    ]


@pytest.mark.parametrize(
    "shown", ["", "…\n", "one 100 two\n", "one 110 two\nend\n", "│ 3.0e-6 │ x │\n", "one … two\n…\nend\n", "━━━┳━\n"]
)
def test_what_was_printed_may_differ_a_little(shown):
    assert agree(shown, "one 100 two\n│   3e-06 │    x │\n━━━━━━┳━\nbetween\nend\n")


@pytest.mark.parametrize(
    "shown", ["one 200 two\n", "one 100\n", "end\none 100 two\n", "three\n", "one … three\n", "│ 3e-05 │ x │\n"]
)
def test_what_was_not_printed_is_found(shown):
    assert not agree(shown, "one 100 two\n│   3e-06 │    x │\n━━━━━━┳━\nbetween\nend\n")


@pytest.mark.parametrize(("page", "number"), [("tutorial", 6), ("compare-transports", 4)])
def test_lessons_have_steps_of_commands(page, number):
    assert re.findall(r"^## (\d+)\.", (DOCS / f"{page}.md").read_text(), re.MULTILINE) == [
        str(step) for step in range(1, number + 1)
    ]
    assert len([step for step in steps(DOCS / f"{page}.md") if isinstance(step, Command)]) >= number
