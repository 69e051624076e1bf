"""The profile in a file of any tool that is known here, by how the file begins."""

from __future__ import annotations

import re
from pathlib import Path

from archsim.base.errors import InputError
from archsim.base.files import read_head
from archsim.trace.profiles.record import Profile

HEAD = 1 << 16  # bytes from which the tool is recognised
ONNXRUNTIME = re.compile(rb'\s*\[[^\]]{0,4096}?"cat"\s*:\s*"(Session|Node)"')
NSIGHT = re.compile(rb'(^|\n)[^\n{\[]*(Total Time|Duration) \([^\n)]{1,3}\)"?,[^\n]*Name')
CHROME = re.compile(rb'\A\s*(\[|\{)')


def read(path: Path) -> Profile:
    """The profile. Raises MissingFile, or InputError for a file of another kind."""
    head = read_head(path, HEAD).removeprefix(b"\xef\xbb\xbf")
    if ONNXRUNTIME.match(head):
        from archsim.trace.profiles.onnxruntime import read as of_onnxruntime

        return of_onnxruntime(path)
    if NSIGHT.search(head):
        from archsim.trace.profiles.nsight import read as of_nsight

        return of_nsight(path)
    if not CHROME.match(head):
        known = "is empty" if not head.strip() else "is no profile that is read: a Chrome trace of PyTorch's profiler, " \
                "a profile of onnxruntime and the csv of `nsys stats` are"
        raise InputError(str(path), known)
    from archsim.trace.profiles.kineto import read as of_pytorch

    return of_pytorch(path)
