"""Finding any device that a user can name: a shipped one, a file, or `host`, the computer that this process runs on."""

from __future__ import annotations

from archsim.device import catalog
from archsim.device.catalog import names
from archsim.device.spec import Spec

__all__ = ["HOST", "find", "names"]

HOST = "host"


def find(name_or_path: str) -> Spec:
    """The spec of a shipped device (by id or alias), of a file, or of this computer.

    Raises what `archsim.device.catalog.find` does.
    """
    return catalog.find(name_or_path, {HOST: _host})


def _host() -> Spec:
    from archsim.detect.detect import host

    return host()
