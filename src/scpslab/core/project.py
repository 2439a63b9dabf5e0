"""Where the files of the project are that are no code: scenarios, topologies, recipes of parts and so on.

In a clone they lie around src/. A wheel carries the same files in the same order in a folder of the package
(pyproject.toml lists them), and beside them the built parts. This module is the only place that knows the difference.
"""

from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[1]
CARRIED = PACKAGE / "project_files"
IS_INSTALLED = CARRIED.is_dir()
ROOT = CARRIED if IS_INSTALLED else PACKAGE.parents[1]
# Parts that are built already, as the wheel carries them (setup/packed.py). A clone has none.
PACKED_PARTS = CARRIED / "parts"
PARTS_INDEX = PACKED_PARTS / "parts.json"
