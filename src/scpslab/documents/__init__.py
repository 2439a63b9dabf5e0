"""Documents: YAML files that people write, such as scenarios, campaigns, claims and figure recipes.

One package reads them all.

Order of reading: parts.py (the base of strict models), quantities.py (text with units as fields), yaml_lines.py (data
with lines), places.py (the place of each value), document.py (reads a file, and says in words what is wrong).
"""
