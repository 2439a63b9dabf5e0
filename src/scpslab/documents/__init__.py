"""Documents: YAML files that people write, such as scenarios, campaigns, claims and figure recipes.

One package reads them all.

Order of reading: parts.py (the base of strict models), quantities.py (text with units as fields), yaml_lines.py (data
with lines), places.py (the place of each value), document.py (reads a file, and says in words what is wrong).
"""

from scpslab.core.problems import KeyPath, dotted
from scpslab.documents.document import Document, complaints, load, read, validated
from scpslab.documents.parts import Part, key
from scpslab.documents.places import Places
from scpslab.documents.yaml_lines import Form
