"""Whatever a spec file says, it makes a device with finite estimates, or an error that names the file and the key."""

from __future__ import annotations

import math
import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from archsim.base.errors import ArchsimError, InputError, Unsupported
from archsim.base.units import COUNT, TEXT, show
from archsim.device import catalog
from archsim.device.part import Unit
from archsim.device.spec import Spec, keys
from archsim.device.variant import called
from archsim.estimation.estimate import estimate_of
from archsim.estimation.request import make_request
from archsim.estimation.result import Estimate

WORDS = st.sampled_from(["GDDR6", "HBM3", "FOO", "i7_6700k", "gtx_980", "nobody", "board", "", "-", "\u00e9", "x" * 80])
NAMES = st.sampled_from(["pascal", "Pascal", "zebra", "skylake", "hopper2", "x y", "\u00fcber"])
STACKS = st.sampled_from(["torch7-cudnn5.1", "intel-mkl", "pytorch-2", "nonsense"])
Value = tuple[str, str]  # dotted key, its value in TOML


def within(unit: Unit) -> st.SearchStrategy[str]:
    """A value inside the range of a key, as a file has it; near the ends as often as not."""
    low, high = max(unit.low, 1e-6), unit.high
    exponent = st.one_of(st.floats(0.0, 1.0), st.sampled_from([0.0, 1.0]))
    numbers = exponent.map(lambda share: low ** (1.0 - share) * high**share)
    if unit.whole:
        numbers = numbers.map(lambda value: float(round(value)))
    return numbers.map(lambda value: f"{value!r}" if unit.unit == COUNT else f'"{value!r} {unit.unit}"')


def value_of(spec: Spec, key: str, unit: Unit) -> st.SearchStrategy[str]:
    """What a file may have for a key: near the value of the parent, anywhere within the range, or nonsense."""
    nonsense = st.sampled_from(["0", "-1", "1e400", '"nan"', '"1e9 s"', '"absent"', '""', "true", "[]", '"12 parsec"', "1e30"])
    if unit.unit == TEXT:
        return st.one_of(WORDS.map(lambda word: f'"{word}"'), nonsense)
    near = []
    if key in spec.entries:
        base = float(spec.entries[key].number)
        scaled = [base * factor for factor in (0.5, 1.0, 1.5, 2.0, 4.0)]
        near = [st.sampled_from([f"{v:g}" if unit.unit == COUNT else f'"{show(v, unit.unit, 12)}"' for v in scaled])]
    return st.one_of(*near, *near, within(unit), nonsense)


@st.composite
def children(draw: st.DrawFn) -> str:
    """The text of a file that inherits a shipped device and changes some of it."""
    spec = catalog.find(draw(st.sampled_from(catalog.names())))
    known = {key: unit for key, unit, _ in keys(spec.kind)}
    changed = {key: draw(value_of(spec, key, known[key])) for key in draw(st.sets(st.sampled_from(sorted(known)), max_size=6))}
    for key in ("clock.sustained", "power.idle"):  # not inherited
        if key in spec.entries:
            changed.setdefault(key, f'"{spec.entries[key].written}"')
    head = ['schema = 1', f'id = "{draw(st.sampled_from(["mine", spec.identity.id]))}"', 'name = "mine"',
            f'inherits = "{spec.identity.id}"', f"year = {draw(st.sampled_from([2016, 2030, 1066]))}"]  # fmt: skip
    head += [f'architecture = "{draw(NAMES)}"'] if draw(st.booleans()) else []
    head += [f'default_stack = "{draw(STACKS)}"'] if draw(st.booleans()) else []
    tables: dict[str, list[str]] = {}
    for key, value in changed.items():
        table, _, name = key.partition(".")
        tables.setdefault(table, []).append(f'{name} = {{ value = {value}, source = "a test", kind = "assumed", note = "x" }}')
    return "\n".join([*head, *(line for table, rows in tables.items() for line in (f"[{table}]", *rows))]) + "\n"


def outcome(text: str, net: str) -> str:
    """The error of a file, or "" where its estimate is sound."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / "mine.toml"
        place.write_text(text, "utf-8")
        try:
            found = estimate_of(make_request(net, str(place)))
        except Unsupported as error:  # well formed, and not modelled
            return str(error)
        except ArchsimError as error:
            said = error
        else:
            check_sound(found, catalog.find(str(place)))
            return ""
        if not isinstance(said, InputError) or said.path != str(place) or not all(": " in text for text in said.problems):
            pytest.fail(f"names neither file nor key: {type(said).__name__}: {said}")
        return str(said)


def check_sound(found: Estimate, spec: Spec) -> None:
    numbers = (found.latency_s, found.energy_j, found.power_w, found.memory_bytes, *found.latency_interval_s)
    assert all(math.isfinite(number) and number > 0 for number in numbers), numbers
    assert math.isfinite(found.dram_bytes)
    assert found.dram_bytes >= 0  # the L2 of some cards holds all of a small network from one run to the next
    assert len(found.warnings) < 10
    assert called(spec) == found.hardware_name


@given(children(), st.sampled_from(["alexnet", "lstm_32"]))
def test_a_child_is_estimated_or_refused_by_file_and_key(text: str, net: str) -> None:
    outcome(text, net)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ('default_stack = "nonsense"', "default_stack: unknown stack"),
        ('default_stack = "intel-mkl"', "default_stack: stack intel-mkl is for a cpu, not a gpu"),
        ('[launch]\nhost_cpu = { value = "nobody", source = "x", kind = "datasheet" }', "launch.host_cpu: unknown device"),
        ('[launch]\nhost_cpu = { value = "gtx_980", source = "x", kind = "datasheet" }', "launch.host_cpu: gtx_980 is no CPU"),
        ('[memory]\ntype = { value = "FOO", source = "x", kind = "datasheet" }', "memory.type: 'FOO' is no family of memory"),
    ],
)  # fmt: skip
def test_a_name_that_leads_nowhere_is_an_error_of_its_key(line: str, said: str) -> None:
    head = 'schema = 1\nid = "mine"\nname = "mine"\ninherits = "gtx_1080"\nyear = 2020\n'
    own = 'value = "1650 MHz", source = "x", kind = "datasheet"', 'value = "40 W", source = "x", kind = "datasheet"'
    rest = f"\n[clock]\nsustained = {{ {own[0]} }}\n[power]\nidle = {{ {own[1]} }}\n"
    assert said in outcome(head + line + rest, "alexnet")


def test_a_name_that_is_set_is_an_error_of_the_option() -> None:
    with pytest.raises(InputError, match=r"--set: memory.type: 'FOO' is no family .* HBM4"):
        make_request("alexnet", "gtx_1080", settings={"memory.type": "FOO"})
    make_request("alexnet", "gtx_1080", settings={"launch.host_cpu": "nobody"}, host_cpu="i7_6700k")
