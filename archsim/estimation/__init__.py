"""From a request to an estimate: the one pipeline."""
