"""The studio: a run in a browser, to look at and to scrub through (docs/studio.md).

Order of reading: rows.py (packets as a table and as bytes), cell.py (a cell as the page has it, with windows),
page.py (one file of HTML), server.py (pages on request). The viewer is in page/.
It reads runs, and writes nothing into them.
"""
