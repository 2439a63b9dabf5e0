"""The report: one page of a run or a campaign, whole in one file. Order of reading: content.py (what is said), page.py (how), page.html.j2."""

from scpslab.report.page import write_report

__all__ = ["write_report"]
