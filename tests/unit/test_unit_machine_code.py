"""Machine code that is kept on disk is that of the source as it is now."""

from pathlib import Path
from types import ModuleType

from archsim.base.machine_code import digest


def module(path: Path, source: str) -> ModuleType:
    path.write_text(source, "utf-8")
    found = ModuleType(path.stem)
    found.__file__ = str(path)
    return found


def test_a_change_in_any_module_is_another_version(tmp_path: Path) -> None:
    caller, callee = module(tmp_path / "caller.py", "from callee import f"), module(tmp_path / "callee.py", "def f(): return 1")
    before = digest(caller, callee)
    assert digest(caller, callee) == before
    module(tmp_path / "callee.py", "def f(): return 2")
    assert digest(caller, callee) != before
