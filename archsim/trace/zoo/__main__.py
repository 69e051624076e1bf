"""`python -m archsim.trace.zoo` writes all shipped networks to `traces/nets`."""

from __future__ import annotations

from pathlib import Path

from archsim.base.files import data_folder
from archsim.base.writer import OutputFile, json_with
from archsim.trace.file import FOLDER, dumps
from archsim.trace.zoo.networks import NETWORKS


def main() -> None:
    """Write all files."""
    folder = Path(str(data_folder(FOLDER)))
    folder.mkdir(parents=True, exist_ok=True)
    for name, build in NETWORKS.items():
        OutputFile(path=str(folder / f"{name}.jsonl"), kind=json_with("archsim-trace/"), command="zoo").write(dumps(build()))
    print(f"{len(NETWORKS)} networks written to {folder}")


if __name__ == "__main__":
    main()
