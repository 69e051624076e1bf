"""What needs cosmic-ray (extra `mutation`) is collected only where it is installed."""

from importlib.util import find_spec

collect_ignore = [] if find_spec("cosmic_ray") else ["battery.py", "mutants.py", "operators.py", "score.py", "test_score.py"]
