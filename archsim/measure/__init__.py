"""Running networks for real on this machine, so that what was predicted can stand beside what was measured."""
