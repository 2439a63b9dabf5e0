"""The report: one page about a run or a campaign, complete in one file.

Order of reading: content.py (the content), page.py (its form), page.html.j2.
"""

from scpslab.analysis.report.page import write_report

__all__ = ["write_report"]
