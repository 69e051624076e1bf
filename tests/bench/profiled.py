"""Time and memory of reading a large profile of PyTorch."""

from __future__ import annotations

import json
import resource
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from archsim.study.profiled import compare_profile

from ..trace.kineto import events
from .figure import arguments


def main(words: Sequence[str] | None = None) -> None:
    """Write a profile, read it, print what that took."""
    asked = arguments(__doc__, ("gigabytes", {"nargs": "?", "type": float, "default": 1.0})).parse_args(words)
    wanted = 1e-3 if asked.smoke else asked.gigabytes
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "trace.json"
        size = 0
        with path.open("w", encoding="utf-8") as stream:
            size += stream.write('{"schemaVersion": 1, "traceEvents": [\n')
            for number, event in enumerate(events(10**9, layers=1 if asked.smoke else 24)):
                size += stream.write((",\n" if number else "") + json.dumps(event, indent=2))
                if size > wanted * 1e9 and event["name"].startswith("ProfilerStep"):
                    break
            stream.write("\n]}\n")
        before, began = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.perf_counter()
        found = compare_profile(str(path), "a100_sxm4_40gb", stack="pytorch-2")
        took, peak = time.perf_counter() - began, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(f"{size / 1e9:.2f} GB, {number + 1:,} events, {len(found.run_s)} runs: {took:.1f} s, {size / took / 1e6:.0f} MB/s; "
          f"peak {peak / 1024:.0f} MB, {before / 1024:.0f} MB before")  # fmt: skip
