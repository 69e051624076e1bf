"""What every layer stands on: errors, units, files, the form of data files."""
