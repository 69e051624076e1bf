"""Write golden.json anew, after a change that is meant to move predictions: `python tests/golden/regenerate.py`."""

from __future__ import annotations

import json
import sys
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[2])]

from cells import FILE, compute, text  # noqa: E402

if __name__ == "__main__":
    old = json.loads(FILE.read_text()) if FILE.exists() else {}
    new = compute()
    for name, values in new.items():
        for key, value in values.items():
            before = old.get(name, {}).get(key)
            if before != value:
                print(f"{name}: {key} {before} -> {value}" + (f" ({100 * (value / before - 1):+.2f} %)" if before else ""))
    FILE.write_text(text(new))
