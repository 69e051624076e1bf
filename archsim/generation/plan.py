"""`ServingPlan`: what is asked of an engine, with every default filled in, and the formats of weights, keys and values."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from archsim.base.arguments import LARGEST_BATCH
from archsim.base.errors import ArgumentError, Unsupported, refuse_arguments
from archsim.base.files import is_path
from archsim.base.naming import resolve
from archsim.base.record import kept
from archsim.calibration.constants import Calibration, default
from archsim.device.device import Gpu
from archsim.device.spec import Spec, follow_notes
from archsim.estimation.clock import check_core_clock, check_limit
from archsim.estimation.hardware import find_device, on_tensor_cores
from archsim.estimation.request import following
from archsim.node.node import Node
from archsim.node.spec import joining
from archsim.stack import catalog as stacks
from archsim.stack.parts import Passes
from archsim.stack.stack import Stack
from archsim.trace.huggingface import catalog as models
from archsim.trace.huggingface.model import TransformerModel
from archsim.trace.kinds.dense import Experts, Linear
from archsim.trace.trace import BoundOp

HEAD, WORDS = "head", "tokens.embedding"  # the projection to words, and their table
HALF = 2.0  # B of a value that no format narrows
# Bytes over values of a block of llama.cpp (ggml/src/ggml-common.h): 32 values with a scale of two bytes, or 256 with scales of
# scales.
Q4_0, Q5_0, Q8_0 = 18 / 32, 22 / 32, 34 / 32
Q2_K, Q3_K, Q4_K, Q5_K, Q6_K = 84 / 256, 110 / 256, 144 / 256, 176 / 256, 210 / 256
PARTS = {"value": "value", "output": "output", "down": "down", "mlp2": "down", "shared.down": "down"}


@dataclass(frozen=True, slots=True, kw_only=True)
class WeightFormat:
    """Bytes of a stored weight, on average over the layers, some of which may keep more.

    most: of projections and experts
    parts: of those that differ: `value`, `output` (the result of attention), `down` (out of the feed-forward part)
    head: of the projection to words, and of the table of words where this is it; table: of that table elsewhere
    """

    most: float
    parts: Mapping[str, float] = field(default_factory=dict)
    head: float = HALF
    table: float = HALF

    def bytes_of(self, op: BoundOp, model: TransformerModel) -> float:
        """Bytes of a learned value of an op of this model; norms, biases and tables of positions stay in 16 bit."""
        if model.keeps(op.name):
            return HALF
        if isinstance(op.kind, Experts):
            return self._mixed("down", 1 / (3 if model.gated else 2))
        if op.name == WORDS:
            return self.head if model.tied else self.table
        if not isinstance(op.kind, Linear):
            return HALF
        part = op.name.partition(".")[2]
        if part == "qkv":
            return self._mixed("value", model.kv_heads / (model.heads + 2 * model.kv_heads))
        return self.head if op.name == HEAD else self._mixed(PARTS.get(part, ""), 1.0)

    def _mixed(self, part: str, share: float) -> float:
        """A product of which this share is a part with bytes of its own."""
        return _some(share, self.parts.get(part, self.most), self.most)


def _gguf(most: float, head: float = Q6_K, **parts: float) -> WeightFormat:
    """A file of llama.cpp, by the rule of `llama_tensor_get_type` (src/llama-quant.cpp), which has more bits for some tensors.

    Left out: what it does for Falcon, for eight experts, for Llama 70B's values, and in Q2_K for heads that share no keys.
    """
    return WeightFormat(most=most, parts=parts, head=head, table=most)


def _some(share: float, more: float, most: float) -> float:
    """A tensor that this share of the layers keeps in more bytes."""
    return share * more + (1.0 - share) * most


HALF_MORE = {bits: _some(1 / 2, Q6_K, bits) for bits in (Q4_K, Q5_K)}  # `use_more_bits`: an eighth at either end, a third between
FIRST = _some(1 / 8, Q5_K, Q4_K)
# int4: a scale and a zero for 128 values; nvfp4: a scale of one byte for 16; mxfp4: one for 32; nf4: a scale of four bytes for
# 64; nf4_dq: of one byte, and four for 256 of these (Dettmers et al. 2023).
PLAIN = {"bf16": HALF, "fp16": HALF, "fp32": 4.0, "fp8": 1.0, "int8": 1.0, "int4": 0.5 + 2.5 / 128, "nvfp4": 0.5 + 1 / 16,
         "mxfp4": 0.5 + 1 / 32, "nf4": 0.5 + 4 / 64, "nf4_dq": 0.5 + (1 + 4 / 256) / 64}  # fmt: skip
WEIGHTS = {
    **{name: WeightFormat(most=size) for name, size in PLAIN.items()},
    "q8_0": _gguf(Q8_0, head=Q8_0), "q6_k": _gguf(Q6_K),
    "q5_k_m": _gguf(Q5_K, value=HALF_MORE[Q5_K], down=HALF_MORE[Q5_K]), "q5_k_s": _gguf(Q5_K), "q5_0": _gguf(Q5_0),
    "q4_k_m": _gguf(Q4_K, value=HALF_MORE[Q4_K], down=HALF_MORE[Q4_K]), "q4_k_s": _gguf(Q4_K, value=FIRST, down=FIRST),
    "q4_0": _gguf(Q4_0), "q3_k_l": _gguf(Q3_K, value=Q5_K, output=Q5_K, down=Q5_K),
    "q3_k_m": _gguf(Q3_K, value=_some(1 / 16, Q5_K, Q4_K), output=Q4_K, down=_some(1 / 16, Q5_K, Q4_K)), "q3_k_s": _gguf(Q3_K),
    "q2_k": _gguf(Q2_K, value=Q4_K, output=Q3_K, down=Q3_K),
}  # fmt: skip
ALSO = {"awq": "int4", "gptq": "int4", "w4a16": "int4", "w8a16": "int8", "fp8_e4m3": "fp8", "fp8_e5m2": "fp8", "q3_k": "q3_k_m",
        "q4_k": "q4_k_m", "q5_k": "q5_k_m"}  # fmt: skip
CACHE_BYTES = {"bf16": 2.0, "fp16": 2.0, "fp8": 1.0, "int8": 1.0}
BOTH_NARROW = ("fp8",)  # weights whose products take activations of the same format, where the chip multiplies it
ENGINE = "vllm"  # without another one
USUAL = "bf16"
MOST_TOKENS = 1 << 24


@dataclass(frozen=True, slots=True, kw_only=True)
class Speculation:
    """Tokens guessed ahead and checked in one step (Leviathan et al. 2023).

    tokens: guessed for each step; accepted: the share of guesses that are taken; draft: the model that guesses, None: a table of
    the text so far, which takes no time
    """

    tokens: int
    accepted: float
    draft: TransformerModel | None = None

    @property
    def yielded(self) -> float:
        """Tokens that a step yields on average: (1 - a^(k + 1)) / (1 - a)      (Leviathan et al. 2023, equation 1)

        >>> round(Speculation(tokens=4, accepted=0.5).yielded, 4)
        1.9375
        """
        if self.accepted >= 1.0:
            return self.tokens + 1.0
        return float((1.0 - self.accepted ** (self.tokens + 1)) / (1.0 - self.accepted))


@dataclass(frozen=True, slots=True, kw_only=True)
class ServingPlan:
    """A model served by an engine on devices of one kind.

    input, output: tokens of a request; batch: requests at once
    tensor, stages, experts: devices that share each layer, parts of the layers one after the other, devices that share experts
    precision: of activations and arithmetic; weights, cache: formats in which weights, and keys and values, are stored
    node: where several devices are joined; None for one
    graph: whether decode steps are replayed as CUDA graphs
    speculative: as it was asked for; speculation: the same, read
    follows: what of a request follows the device (`archsim.estimation.request.following`)
    """

    model: TransformerModel
    spec: Spec
    stack: Stack
    input: int
    output: int
    batch: int
    tensor: int = 1
    stages: int = 1
    experts: int = 1
    precision: str = USUAL
    weights: str = USUAL
    cache: str = USUAL
    node: Node | None = None
    graph: bool = True
    speculative: str | None = None
    speculation: Speculation | None = None
    follows: Mapping[str, Any]
    calibration: Calibration
    notes: tuple[str, ...] = ()

    @property
    def devices(self) -> int:
        """Devices in all."""
        return self.tensor * self.stages

    @property
    def both_narrow(self) -> bool:
        """Whether products of the stored weights multiply activations of their format."""
        return self.weights in BOTH_NARROW and on_tensor_cores(self.spec.device, self.weights)


def serving_plan(
    net: str, hw: str, *, input: int, output: int, batch: int = 1, tp: int = 1, pp: int = 1, ep: int = 1,
    engine: str | None = None, precision: str | None = None, weights: str | None = None, kv: str | None = None,
    node: str | None = None, graph: bool | None = None, speculative: str | None = None, draft: str | None = None,
    clock: float | None = None, power_limit: float | None = None, settings: Mapping[str, str] | None = None,
    scales: Mapping[str, float] | None = None, host_cpu: str | None = None, calibration: Calibration | None = None,
) -> ServingPlan:  # fmt: skip
    """A plan from names and numbers; what is not given takes its default, and `notes` say which.

    Raises UnknownName, ArgumentError, Unsupported, or InputError for a file that a name leads to.
    """
    model, notes = models.find(net), []
    if not model.generates:
        why = "decodes what an encoder has read, as no engine here" if model.audio else "does not make text token by token"
        raise Unsupported(f"{model.name}: {model.model_type} {why}; `archsim estimate` has the time of one pass")
    spec = find_device(hw, settings, scales)
    device = spec.device
    if not isinstance(device, Gpu):
        raise Unsupported(f"hw {spec.identity.id}: engines are described for GPUs only")
    vendor = spec.identity.vendor
    stack = served(stacks.find(engine_named(engine or engine_of(vendor), vendor), spec.identity.kernels_of))
    if not _serves(stack, vendor):
        own = f"; --engine {engine_of(vendor)} is that of {spec.identity.id}" if engine_of(vendor) else ""
        raise Unsupported(f"engine {stack.id} is for cards of {stack.vendor}, not of {vendor}{own}")
    if engine is None:
        notes.append(f"engine {stack.id}: --engine names another")
    sizes = (("input", input, MOST_TOKENS), ("output", output, MOST_TOKENS), ("batch", batch, LARGEST_BATCH))
    refuse_arguments({
        **{f"{name} {value} is not between 1 and {most}": not 1 <= value <= most for name, value, most in sizes},
        f"input {input} + output {output}: {model.name} takes at most {model.context} tokens": input + output - 1 > model.context,
    })
    if weights is None and model.stored is not None:
        weights, said = model.stored.format, f"quantization_config of {net} says {model.stored.said}"
        if not weights:
            raise ArgumentError(f"weights: {said}, which is not known here; --weights takes {', '.join(WEIGHTS)}")
        notes.append(f"weights {weights}: {said}; --weights names another format")
    else:
        model = replace(model, stored=None)
    stored = _formats(precision, weights, kv, device)
    joined = joining(spec.identity.id, tp * pp, "tp x pp =", node).node if node or tp * pp > 1 else None
    _check_shares(model, tp, pp, ep)
    check_core_clock(spec, clock)
    if power_limit is not None:
        check_limit(device, power_limit)
    replays = stack.serving.graph_sequences > 0 if graph is None else graph
    if replays and not stack.records:
        raise Unsupported(f"graph: stack {stack.id} does not replay CUDA graphs")
    return ServingPlan(
        model=model, spec=spec, stack=stack, input=input, output=output, batch=batch, tensor=tp, stages=pp, experts=ep, **stored,
        node=joined, graph=replays, speculative=speculative, speculation=_speculation(speculative, draft),
        follows=following(spec, stack, {"clock": clock, "power_limit": power_limit, "host_cpu": host_cpu}),
        calibration=calibration or default(), notes=(*notes, *model.notes, *follow_notes(spec.entries)),
    )  # fmt: skip


@kept(64)
def served(stack: Stack) -> Stack:
    """The stack as it runs inside its engine, where one kernel rounds activations that a single call of an operator takes apart.

    >>> called = stacks.find("vllm-0.14")
    >>> [stack.passes["quantise"]["forward"].launches for stack in (called, served(called))]
    [4, 1]
    """
    if "quantise" not in stack.passes:
        return stack
    return replace(stack, passes={**stack.passes, "quantise": {"forward": Passes(inputs=1, outputs=1)}})


def engines() -> list[str]:
    """The stacks that say how they serve language models."""
    return [name for name in stacks.names() if ("serving", "step_clocks") in stacks.composition(name).assigned]


def engine_of(vendor: str) -> str | None:
    """The engine whose kernels are for this maker's cards alone, where they are not those of the usual one.

    >>> engine_of("Apple"), engine_of("NVIDIA")
    ('llama.cpp-metal', None)
    """
    usual = stacks.find(engine_named(None)).vendor
    return next((name for name in engines() if stacks.find(name).vendor == vendor != usual), None)


def _serves(stack: Stack, vendor: str) -> bool:
    """Whether kernels are for cards of this maker, or for those of others too that have no engine of their own."""
    return stack.vendor in ("", vendor) or not (engine_of(vendor) or engine_of(stack.vendor))


def engine_named(name: str | None, vendor: str = "") -> str:
    """The stack of an engine's name, by which its newest version for cards of this maker is meant. Raises UnknownName.

    >>> engine_named("llama.cpp", "NVIDIA"), engine_named("llama.cpp", "Apple")
    ('llama.cpp-cuda', 'llama.cpp-metal')
    """
    if name and is_path(name):
        return name
    known, wanted = engines(), name or ENGINE
    versions = [each for each in sorted(known, key=_version, reverse=True) if each.rpartition("-")[0] == wanted]
    if versions and wanted not in known:
        wanted = next((each for each in versions if not vendor or _serves(stacks.find(each), vendor)), versions[0])
    return resolve("engine", wanted, known, dict, f"one of {', '.join(known)}")


def _version(name: str) -> tuple[float, ...]:
    return tuple(map(float, re.findall(r"\d+", name.rpartition("-")[2])))


def _formats(precision: str | None, weights: str | None, kv: str | None, device: Gpu) -> dict[str, str]:
    """Formats of activations, weights and cache: 16 bit where nobody says."""
    found = precision or (weights if weights in ("bf16", "fp16") else None) or (USUAL if device.has_tensor("bf16") else "fp16")
    if found not in ("bf16", "fp16"):
        raise ArgumentError(f"precision {found!r}: activations are bf16 or fp16; --weights and --kv set how others are stored")
    weights, kv = (ALSO.get(value.lower(), value.lower()) if value else None for value in (weights, kv))
    for what, value, table in (("weights", weights, WEIGHTS), ("kv", kv, CACHE_BYTES)):
        if value is not None and value not in table:
            raise ArgumentError(f"{what} {value!r} is not one of {', '.join(table)}")
    return {"precision": found, "weights": weights or found, "cache": kv or found}


def _check_shares(model: TransformerModel, tp: int, pp: int, ep: int) -> None:
    experts = 0 if model.experts is None else model.experts.experts
    refuse_arguments({
        **{f"{name} {value} is not between 1 and 4096": not 1 <= value <= 4096
           for name, value in (("tp", tp), ("pp", pp), ("ep", ep))},
        f"tp {tp}: does not divide the {model.heads} heads of {model.name}": model.heads % max(1, tp) > 0,
        f"pp {pp}: {model.name} has only {model.layers} layers": pp > model.layers,
        f"ep {ep}: {model.name} has no experts": ep > 1 and not experts,
        f"ep {ep}: experts are spread over the devices that share a layer, --tp {ep}, and divide evenly":
            ep > 1 and (ep != tp or experts % ep > 0),
    })  # fmt: skip


def _speculation(text: str | None, draft: str | None) -> Speculation | None:
    """`tokens=4,accept=0.7`, and the model that guesses."""
    if text is None:
        if draft is not None:
            raise ArgumentError("draft: belongs to --speculative tokens=4,accept=0.7")
        return None
    words = dict(part.partition("=")[::2] for part in text.replace(" ", "").split(","))
    try:
        tokens, accepted = (float(words.pop(key, "")) for key in ("tokens", "accept"))
    except ValueError:
        tokens = accepted = math.nan
    both = "speculative: takes tokens=NUMBER and accept=SHARE, both, as in tokens=4,accept=0.7"
    refuse_arguments({
        f"{both}, not {text!r}": bool(words) or math.isnan(tokens),
        f"speculative: tokens={tokens:g} is not a whole number from 1 to 64": tokens not in range(1, 65),
        f"speculative: accept={accepted:g} is not between 0 and 1": not 0.0 <= accepted <= 1.0,
    })
    return Speculation(tokens=int(tokens), accepted=accepted, draft=models.find(draft) if draft else None)
