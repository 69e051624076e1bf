"""Finding any device that a user can name: a shipped one, a file, or `host`, the computer that this process runs on."""

from __future__ import annotations

from archsim.device import catalog
from archsim.device.catalog import names
from archsim.device.spec import Spec

__all__ = ["HOST", "find", "names"]

HOST = "host"


def find(name_or_path: str, threads: int = 0) -> Spec:
    """The spec of a shipped device (by id or alias), of a file, or of this computer; of the cores of it that `threads` occupy.

    Raises what `archsim.device.catalog.find` does.
    """
    return catalog.occupied(catalog.find(name_or_path, {HOST: _host}), threads)


def _host() -> Spec:
    from archsim.detect.detect import host

    return host()
