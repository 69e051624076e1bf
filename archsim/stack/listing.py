"""The table of keys of `traces/stacks/README.md`: `python -m archsim.stack.listing` prints it from the record's declarations."""

from __future__ import annotations

from archsim.stack.key import lines
from archsim.stack.stack import Stack


def markdown(record: type) -> str:
    """One row for each key: where it stands, the values it takes, its default, its meaning."""
    rows = [f"| `{line.path}` | {line.takes} | {line.default} | {line.doc} |" for line in lines(record)]
    return "\n".join(["| key | takes | default | meaning |", "| --- | --- | --- | --- |", *rows]) + "\n"


if __name__ == "__main__":
    print(markdown(Stack), end="")
