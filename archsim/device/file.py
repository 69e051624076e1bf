"""The spec file: one device in TOML, alone or inheriting from another one; all problems of a file are reported at once."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import cache
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any

from archsim.base.errors import ArchsimError, InputError, near_words, refuse
from archsim.base.files import LIMITS, data_folder, read_text
from archsim.base.toml import parsed
from archsim.base.units import TEXT, show
from archsim.device.cpu_core import FORMS, TILE_FORM
from archsim.device.device import CLASSES, OPTIONAL_PARTS, PARTS, Gpu, Identity, Tpu
from archsim.device.entry import ARCHITECTURE, Entry, StatedForm, read_table
from archsim.device.part import LARGEST, Unit, declared
from archsim.device.spec import TOLERANCE, Spec, followed, keys, missing, relations, unit_of

SCHEMA = 1
FOLDER, ARCHITECTURES = "hwspecs", "architectures"  # what all devices of an architecture share
_ID = re.compile(r"[a-z0-9_]{2,40}")
_LONGEST = 2000
STATED_BANDWIDTH = Unit(unit="B/s", doc="stated by the vendor", low=1e6, high=1e16, above=False)
STATED_PEAK = Unit(unit="FLOP/s", doc="stated by the vendor", low=1e6, high=LARGEST, above=False)
CPU_PEAKS = ("fp32", "fp64", "fp16", "bf16", "int8")
NAMED = {"id": '"my_gpu"', "name": '"My GPU"'}  # what every file says of itself
HEADER = ("schema", "kind", "inherits", *declared(Identity), "aliases", "faster")  # the words before the first table


def load(place: Path | Traversable, parent: Callable[[str], Spec]) -> Spec:
    """Read one spec file. `parent(name)` gives the spec named by `inherits`.

    Raises InputError with every problem of the file, each beginning with its key.
    """
    return loads(read_text(place, LIMITS["device"].size), str(place), parent)


def loads(text: str, path: str, parent: Callable[[str], Spec]) -> Spec:
    """The spec that `text` holds; `path` is what an error calls it."""
    words = parsed(text, path, "device")
    tables = {key: value for key, value in words.items() if isinstance(value, dict) and key not in HEADER}
    header = {key: value for key, value in words.items() if key not in tables}
    problems = _schema_problems(words) + _header_problems(header)
    base, said = _parent(header.get("inherits"), parent)
    kind = str(header.get("kind") or (base.kind if base else ""))
    if said:
        problems.append(said)
    elif not kind:
        problems.append('kind: is missing; write kind = "gpu", kind = "cpu" or kind = "tpu", or inherits = "gtx_1080"')
    elif base is not None and base.kind != kind:
        problems.append(f"inherits: {header['inherits']} is a {base.kind}, this is a {kind}")
    if kind not in CLASSES or (base is not None and base.kind != kind):  # nobody knows which keys it may have
        raise InputError(path, problems)
    sources, stated_table = tables.pop("sources", {}), tables.pop("stated", {})
    found, dropped = _inherited(base)
    own, wrong = str(header.get("id", "")), list[str]()
    for table, content in tables.items():
        wrong += _read_part(kind, table, content, sources, own, found)
    # A key that was written and refused is not missing as well.
    written = {f"{table}.{name}" for table, content in tables.items() for name in content}
    gone = {key for key, entry in found.items() if entry.absent}
    wrong += _drop_absent(kind, found, written)
    stated = dict[str, Entry]()
    peaks = {name: STATED_BANDWIDTH if name == "bandwidth" else STATED_PEAK for name in stated_keys(kind)}
    wrong += read_table("stated", stated_table, peaks, sources, own, stated, form=StatedForm)
    found = found if base is None or wrong else followed(base.entries, found, written, clocks=False)
    wrong += [_way_out(said, dropped) for said in missing(kind, found, written)] or relations(kind, found)
    identity, lacking = _identity(header, base)
    problems += [*wrong, *lacking]
    if problems or identity is None:
        raise InputError(path, dict.fromkeys(problems), "" if base is None else _written_by(base, tables))
    try:
        shared = _of_architecture(kind, identity.architecture)
    except InputError:
        raise InputError(path, [f"architecture: {identity.architecture} is none of a {kind}"]) from None
    if base is None or (shared and identity.architecture != base.identity.architecture):
        others = {key: entry for key, entry in found.items() if not entry.file.startswith(ARCHITECTURE)}
        found = {key: entry for key, entry in shared.items() if key not in gone} | others
    ordered = {key: found[key] for key, _, _ in keys(kind) if key in found}
    stated = {key.partition(".")[2]: entry for key, entry in stated.items()}
    spec = Spec(path=path, kind=kind, identity=identity, entries=ordered, stated=stated, base=base)
    problems += contradictions(spec, TOLERANCE)
    refuse(path, problems)
    return spec


def _written_by(base: Spec, tables: Mapping[str, Mapping[str, Any]]) -> str:
    """The command that writes what a file with bare values is meant to be."""
    known = {key for key, _, _ in keys(base.kind)}
    values = {f"{table}.{name}": raw for table, content in tables.items() for name, raw in content.items()}
    bare = {key: raw for key, raw in values.items() if key in known and not isinstance(raw, dict)}
    changes = [f"--set {key}={str(raw).replace(' ', '')[:40]}" for key, raw in bare.items()]
    if not changes:
        return ""
    return f"`archsim new hw --from {base.identity.id} {' '.join(changes)} --out FILE.toml` writes a whole file"


def document(text: str, path: str, kind: str = "device") -> dict[str, Any]:
    """The tables of the file of a device or a node; InputError where it is no TOML or of another schema."""
    words = parsed(text, path, kind)
    refuse(path, _schema_problems(words))
    return words


def _schema_problems(words: Mapping[str, Any]) -> list[str]:
    if type(words.get("schema")) is int and words["schema"] == SCHEMA:
        return []
    return [f"schema: must be {SCHEMA}, is {words.get('schema', 'missing')!r}; write schema = {SCHEMA}"]


# ---------------------------------------------------------------------------------------------- the words before the tables


def _header_problems(header: Mapping[str, Any]) -> list[str]:
    problems = []
    for key, value in header.items():
        if key not in HEADER:
            problems.append(f"{key}: unknown key; nearest: {near_words(key, HEADER)}")
        elif (said := _header_problem(key, value)) is not None:
            problems.append(f"{key}: {said}, is {str(value)[:60]!r}")
    return problems + [f"{key}: is missing; write {key} = {like}" for key, like in NAMED.items() if key not in header]


def _header_problem(key: str, value: Any) -> str | None:
    """What a word before the tables must be and is not; None for a good one."""
    known = declared(Identity)
    if key == "aliases":
        return None if isinstance(value, list) and all(map(_is_word, value)) else "must be a list of texts"
    if key == "kind":
        return None if isinstance(value, str) and value in CLASSES else f"must be {', '.join(CLASSES)}"
    if key == "id":
        return None if isinstance(value, str) and _ID.fullmatch(value) else "must be 2 to 40 of a to z, 0 to 9 and _"
    if key in known and known[key][0].unit != TEXT:
        unit = known[key][0]
        return None if type(value) is int and unit.low <= value <= unit.high else f"must be a whole number, {unit.range}"
    return None if key == "schema" or _is_word(value) else "must be text"


def _is_word(value: Any) -> bool:
    return isinstance(value, str) and 0 < len(value) <= _LONGEST


def _identity(header: Mapping[str, Any], base: Spec | None) -> tuple[Identity | None, list[str]]:
    words: dict[str, Any] = {}
    lacking = []
    for name, (unit, _) in declared(Identity).items():
        given = base is not None and unit.inherited
        words[name] = header.get(name, getattr(base.identity, name) if base is not None and given else None)
        if words[name] is None and name not in NAMED:
            lacking.append(f"{name}: is missing ({unit.doc})" + ("; it is not inherited" if base is not None else ""))
    own = {"aliases": tuple(header.get("aliases", ())), "faster": header.get("faster", "")}
    return (None if None in words.values() else Identity(**own, **words)), lacking


# ---------------------------------------------------------------------------------------------- what is inherited


def _parent(name: object, parent: Callable[[str], Spec]) -> tuple[Spec | None, str]:
    """What a file inherits from, if anything, or the reason why it cannot."""
    if not isinstance(name, str):
        return None, ""
    try:
        return parent(name), ""
    except ArchsimError as error:
        return None, f"inherits: {error}"


@cache
def _of_architecture(kind: str, name: str) -> dict[str, Entry]:
    """What a device has from its architecture's file, where there is one and it is of this kind of device."""
    place = data_folder(FOLDER).joinpath(ARCHITECTURES, f"{name}.toml")
    if not _ID.fullmatch(name) or not place.is_file():
        return {}
    words = document(read_text(place, LIMITS["device"].size), str(place))
    sources, found, problems = words.pop("sources", {}), dict[str, Entry](), list[str]()
    for table, content in words.items():
        if isinstance(content, dict):
            problems += _read_part(kind, table, content, sources, f"{ARCHITECTURE}{name}", found)
    refuse(place, problems)
    return found


def _inherited(base: Spec | None) -> tuple[dict[str, Entry], dict[str, Entry]]:
    """The values that a device inherits from `base`, and those that belong to `base` alone."""
    found: dict[str, Entry] = {}
    dropped: dict[str, Entry] = {}
    for key, entry in base.entries.items() if base is not None else ():
        if base is not None and unit_of(base.kind, key).inherited:
            found[key] = entry.inherited()
        else:
            dropped[key] = entry
    return found, dropped


def _way_out(said: str, dropped: Mapping[str, Entry]) -> str:
    """What is missing, and what to write where only the parent has it."""
    entry = dropped.get(said.partition(":")[0])
    if entry is None:
        return said
    return (f"{said}; that of {entry.file} ({entry.written}) belongs to that device alone and is not inherited: write this "
            'one\'s, kind = "assumed" with a note where nobody published it')  # fmt: skip


def _drop_absent(kind: str, found: dict[str, Entry], written: set[str]) -> list[str]:
    """Take out what the file says to be absent; what every device of the kind has cannot be."""
    problems = []
    required = {key for key, _, needed in keys(kind) if needed and key.partition(".")[0] not in OPTIONAL_PARTS}
    for key in [key for key, entry in found.items() if entry.absent]:
        if key in required:
            problems.append(f"{key}: cannot be absent, every {kind} has one")
        else:
            del found[key]
            written.discard(key)
    return problems


# ---------------------------------------------------------------------------------------------- the tables


def _read_part(kind: str, table: str, content: Mapping[str, Any], sources: Any, file: str, found: dict[str, Entry]) -> list[str]:
    if table not in PARTS[kind]:
        return [f"[{table}]: no such table in a {kind} spec; nearest: {near_words(table, PARTS[kind])}"]
    known = {name: unit for name, (unit, _) in declared(PARTS[kind][table]).items()}
    return read_table(table, content, known, sources, file, found, absent=True)


# ---------------------------------------------------------------------------------------------- what the vendor states


def stated_keys(kind: str) -> list[str]:
    """The keys of [stated]: the bandwidth of the memory, and a peak for each arithmetic rate of the kind."""
    rates = list(CPU_PEAKS) if kind == "cpu" else [name for name in declared(PARTS[kind]["rate"]) if name != "special"]
    return ["bandwidth", *(f"peak_{name}" for name in rates)]


def contradictions(spec: Spec, tolerance: float) -> list[str]:
    """Stated figures that differ from the derived ones by more than `tolerance` of these, one sentence each.

    A GPU's peak [FLOP/s] is 2 x sm.count x rate.X x clock, a TPU's 2 x array.count x array.rows x array.columns x rate.X x clock,
    a CPU's 2 x core.count x core.simd / element bits x core.fma_ports x clock, or that of its fastest form for narrow operands
    at the clock that the vendor names; the bandwidth [B/s] is that of [memory].
    """
    found = []
    for name, entry in spec.stated.items():
        derived, keys = _derived(spec, name, entry.clock)
        if derived is None:
            found.append(f"stated.{name}: {entry.written} is stated, but the spec has no {' or no '.join(keys)}")
            continue
        off = float(entry.number) / derived - 1.0
        if abs(off) > tolerance:
            follows = show(derived, "B/s" if name == "bandwidth" else "FLOP/s")
            off_by = f"{abs(off):.1%} {'more' if off > 0 else 'less'}"
            found.append(f"stated.{name}: {entry.written} is {off_by} than {follows}, which follows from {', '.join(keys)}; "
                         f"rounding explains {tolerance:.1%} at most, so one of them is wrong")  # fmt: skip
    return found


def _derived(spec: Spec, name: str, clock: str) -> tuple[float | None, list[str]]:
    """The figure that follows from the spec, None where it cannot, and the keys that it follows from, or that are not there."""
    device = spec.device
    if name == "bandwidth":
        return float(device.memory.bandwidth), ["memory.bandwidth"]
    precision = name.removeprefix("peak_")
    if isinstance(device, Gpu):
        keys, rate = ["sm.count", f"rate.{precision}"], getattr(device.rate, precision)
        work = None if rate is None else 2.0 * float(device.sm.count) * float(rate)
    elif isinstance(device, Tpu):
        keys = ["array.count", "array.rows", "array.columns", f"rate.{precision}"]
        work = float(device.peak_flops(precision, 1.0)) if precision in device.precisions else None
    else:
        forms = device.forms(precision)
        keys = ["core.count", "core.simd", *([_key(form) for form in forms] or ["core.fma_ports"])]
        if precision == "int8" and not forms:
            return None, ["dot", "tile"]
        work = 2.0 * float(device.core.count) * float(device.pipe(precision))
    hertz = getattr(device.clock, clock, None)
    lacking = ([keys[-1]] if work is None else []) + ([f"clock.{clock}"] if hertz is None else [])
    if work is None or hertz is None:
        return None, lacking
    return work * float(hertz), [*keys, f"clock.{clock}"]


def _key(form: str) -> str:
    """The key of a spec that says how many products of a form start, or how long one takes."""
    return f"tile.{FORMS[form].precision}" if form.endswith(TILE_FORM) else f"dot.{form}"
