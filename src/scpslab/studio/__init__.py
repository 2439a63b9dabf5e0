"""The studio: a run in a browser, to look at and to scrub through (docs/studio.md).

Order of reading: columns.py (numbers as bytes), layout.py (where nodes stand), flows.py (who talks to whom), cell.py
(a cell as the page has it), page.py (one file of HTML), server.py (pages on request). The viewer is in page/.
It reads runs, and writes nothing into them.
"""
