"""What happened in a cell, from the record of its packets (docs/plan-format.md)."""
