"""The form of a stack file, which is checked after the files that it inherits from have been merged in."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from archsim.base.schema import Form, Word

Whole = Annotated[int, Field(ge=1)]
Positive = Annotated[float, Field(gt=0)]
Phase = Literal["forward", "training", "backward"]
ConvPhase = Literal["forward", "backward_data", "backward_filter"]


class TileForm(Form):
    """One row of a menu; `shared` is in bytes."""

    m: Whole
    n: Whole
    k: Whole
    threads: Whole
    registers: Whole
    shared: Annotated[int, Field(ge=0)]
    least_m: Whole = 1
    least_n: Whole = 1
    cluster: Whole = 1
    overlapped: bool = False


class MenuForm(Form):
    """A menu of tiles."""

    tiles: Annotated[list[TileForm], Field(min_length=1)]
    split_k: list[Whole] = [1]
    split_least_k: Whole = 1
    split_wide: Annotated[int, Field(ge=0)] = 0
    architectures: list[Word] = []
    split_launches: Whole = 1
    source: Word


class PassesForm(Form):
    """Passes over the inputs and outputs of an op, and kernels launched for it."""

    inputs: Annotated[float, Field(ge=0)]
    outputs: Annotated[float, Field(ge=0)]
    launches: Annotated[int, Field(ge=0)] = 1


class OwnKernelsForm(Form):
    """What differs on one architecture: the constants of some algorithms, and algorithms that have no kernel for it."""

    algorithms: dict[ConvPhase, dict[Word, Word]] = {}
    without: list[Word] = []
    source: Word


class ConvForm(Form):
    """How convolutions run."""

    algorithms: dict[ConvPhase, dict[Word, Word]]
    tensor: dict[ConvPhase, dict[Word, Word]] = {}
    own: dict[Word, OwnKernelsForm] = {}
    without: list[Word] = []
    workspace_limit: Word | None = None
    grouped: Literal["sequential", "batched"] = "sequential"
    bias: Literal["separate", "per_image", "prefilled", "fused"] = "separate"
    layout_copies: Literal["none", "tensor", "all", "blocked"] = "none"
    unfold_threads: Literal["one", "all"] = "all"
    unfold_flop: Annotated[float, Field(ge=0)] = 0.0
    unfold_pointwise: bool = False
    winograd_patches: list[Annotated[list[Whole], Field(min_length=3, max_length=3)]] = []
    barrier: bool = False
    index_launches: Annotated[int, Field(ge=0)] = 0
    filter_taps: Literal["together", "apart"] = "together"
    byte_tensor: bool = False
    channel_step: Annotated[int, Field(ge=0)] = 0
    images: Literal["sequential", "parallel"] = "sequential"
    source: Word


class AttentionForm(Form):
    """How attention runs."""

    fused: bool = False
    stores: Annotated[int, Field(ge=0)] = 0
    stores_cached: Annotated[int, Field(ge=0)] = 0
    packed: Literal["always", "cached"] = "always"
    most_packed: Whole = 65536
    source: Word = ""


class StackForm(Form):
    """A whole stack, merged."""

    schema_: Literal[1] = Field(alias="schema")
    id: Annotated[str, Field(pattern=r"^[a-z0-9_.\-]{2,40}$")]
    kind: Literal["gpu", "cpu", "any"]
    framework: Word
    library: Word
    inherits: list[Word] = []
    abstract: bool = False
    sources: dict[Word, Word]
    host: str = ""
    host_unit: Literal["op", "kernel"] = "op"
    host_calls: dict[Word, Positive] = {}
    elementwise_threads: Literal["one", "all"] = "all"
    vector: Annotated[int, Field(ge=0)] = 0
    threaded_ops: list[Word] = []
    loops: dict[Word, Positive] = {}
    multiply_adds: Positive | None = None
    grain: Annotated[float, Field(ge=0)] = 0.0
    vectorised: bool = False
    packing: Annotated[float, Field(gt=0)] = 1.0
    gather_clocks: Annotated[float, Field(ge=0)] = 0.0
    waiting: Literal["spin", "sleep"] = "spin"
    default_threads: Literal["cores", "hardware"] = "cores"
    recurrent: Literal["fused", "steps"] = "fused"
    recurrent_launches: Whole = 2
    window_slots: Annotated[float, Field(ge=0)] = 0.0
    linear_bias: Literal["separate", "fused"] = "separate"
    half: Literal["storage", "native"] = "storage"
    without_tensor: list[Word] = []
    optimiser: Literal["sgd", "sgd_momentum", "adam"] = "sgd_momentum"
    inputs: Literal["device", "host"] = "device"
    input_copies: Annotated[int, Field(ge=0)] = 1
    stall: str = ""
    stalls: dict[Word, dict[Word, Positive]] = {}
    reserved: Word = "0 MB"
    variants: dict[Word, Word] = {}
    conv: ConvForm
    attention: AttentionForm = AttentionForm()
    menus: dict[Word, MenuForm] = {}
    efficiency: dict[Word, Word]
    passes: dict[Word, dict[Phase, PassesForm]]
    optimiser_passes: dict[Word, PassesForm]
    buffers: Literal["own", "shared"] = "shared"
    in_place: list[Word] = ["relu", "relu6"]
    graphs: bool = False
