"""Rows and files of claims without any run."""

from pathlib import Path

import pytest

from scpslab.analysis.claims import Evidence, evaluate
from scpslab.analysis.claims.load import load
from scpslab.analysis.claims.measured import EvidenceRow
from scpslab.analysis.statistics import ResultRow
from tests.cases import document

HEAD = document("head of claims")


@pytest.fixture
def head():
    """The beginning of a file of claims, up to the claims."""
    return HEAD


@pytest.fixture
def rows():
    """Rows of results.csv: `rows("reno", {"ber": "0"}, [1.0, None])` are a completed cell and one that gave up."""

    def make(stack, axes, values, *, scenario="net/links", metric="transfer_s", run="run-1", first=1):
        made = []
        for repeat, value in enumerate(values, first):
            status = "incomplete" if value is None else "completed"
            number = "" if value is None else str(value)
            fields = {"scenario": scenario, "stack": stack, **axes, "repeat": str(repeat), "seed": f"s{repeat}"}
            fields |= {"status": status, metric: number}
            name, _, variant = scenario.partition(":")
            made.append(
                EvidenceRow(
                    Path(run),
                    name,
                    variant != "test",
                    tuple(sorted({"stack": stack, **axes}.items())),
                    ResultRow(fields),
                )
            )
        return made

    return make


@pytest.fixture
def verdict(tmp_path):
    """The verdict of one claim on rows: with these checks, each the keys of a YAML mapping, or without any."""

    def judge(rows, *checks):
        path = tmp_path / "paper.yaml"
        tested = [f"      - {{{check}}}\n" for check in checks]
        body = "".join(["    checks:\n", *tested]) if checks else "    not_testable: A hope.\n"
        path.write_text(
            f"{HEAD}  - id: one\n    weight: headline\n    source: Fig 1\n    says: Something is so.\n{body}"
        )
        return evaluate([load(path)], Evidence(rows))[0]

    return judge
