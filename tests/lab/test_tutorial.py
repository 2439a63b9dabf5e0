"""The pages that lead somebody by the hand: every command as written, in a folder that knows nothing of earlier
runs.
"""

import pytest

from tests.lab.pages import DOCS, follow

pytestmark = pytest.mark.lab


@pytest.mark.parametrize("page", ["tutorial", "teaching", "assignments"])
def test_a_page_s_commands_do_what_the_page_says(page, tmp_path):
    assert not (wrong := follow(DOCS / f"{page}.md", tmp_path)), "\n".join(wrong)
