"""Reports: an estimate for a terminal, as data, and as a page."""
