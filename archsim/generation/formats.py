"""Formats of weights, keys and values: bytes of a value by what the tensor is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

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
