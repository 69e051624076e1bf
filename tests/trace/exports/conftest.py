"""What is run by hand only: it needs torch."""

from __future__ import annotations

collect_ignore = ["record.py"]
