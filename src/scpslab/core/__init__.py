"""What every layer stands on: quantities, names, seeds, errors, the list of kinds, folders of files."""
