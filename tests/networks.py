"""Shipped networks, each read once for all tests of a process: all of them together take more than a second."""

from __future__ import annotations

from functools import cache

import archsim.trace

load = cache(archsim.trace.load)
