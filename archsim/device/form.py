"""The forms of a spec file: header and entries."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from archsim.base.schema import Form, Word


class DeviceHeaderForm(Form):
    """The keys before the first table."""

    schema_: Literal[1] = Field(alias="schema")
    id: Annotated[str, Field(pattern=r"^[a-z0-9_]{2,40}$")]
    name: Word
    kind: Literal["gpu", "cpu"] | None = None
    vendor: Word | None = None
    architecture: Word | None = None
    year: Annotated[int, Field(ge=1990, le=2100)] | None = None
    default_stack: Word | None = None
    aliases: list[Word] = []
    inherits: Word | None = None


class EntryForm(Form):
    """One value with its provenance."""

    value: str | int | float
    source: Word
    kind: Literal["datasheet", "measured", "derived", "assumed"]
    note: str = ""


class StatedForm(EntryForm):
    """A peak as the vendor states it, at one of the device's clocks."""

    clock: Literal["base", "boost", "sustained", "all_core", "simd", "simd512", "none"] = "boost"
