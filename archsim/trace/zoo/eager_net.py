"""What all transformers op by op share: the numbers of a model, and a network under construction with the parts of a layer."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from archsim.trace.dims import Dim, Extent
from archsim.trace.kind import Kind
from archsim.trace.kinds.activation import Gelu, GeluTanh, Relu, Silu
from archsim.trace.kinds.dense import Linear, Matmul
from archsim.trace.kinds.normalise import LayerNorm, RmsNorm, Softmax
from archsim.trace.kinds.shaping import Concat
from archsim.trace.zoo.builder import Builder

SOURCE = "Hugging Face transformers 4.38, models/{}/modeling_{}.py, eager attention"
HEADS_FIRST, TOKENS_FIRST = (0, 2, 1, 3), (0, 2, 1, 3)  # [N, T, heads, d] to [N, heads, T, d], and back
FEATURES_FIRST = (0, 2, 3, 1)  # [N, S, heads, d] to [N, heads, d, S]
ACTIVATIONS: dict[str, Kind] = {
    "gelu": Gelu(), "gelu_pytorch_tanh": Gelu(), "gelu_new": GeluTanh(), "relu": Relu(), "silu": Silu(), "swish": Silu(),
}  # fmt: skip
HEADS = ("classifier", "pretraining", "none")  # what stands on an encoder of text


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """The numbers of a model, under one name each whatever the family calls them.

    family: `model_type`; head: what stands on an encoder, one of `HEADS`; size: features of a head; sparse: every so many layers
    the feed-forward part is `experts` of which each takes `capacity` rows of a sample, 0: never
    """

    family: str
    layers: int
    width: int
    heads: int
    hidden: int
    vocabulary: int
    positions: int = 0
    kv_heads: int = 0
    size: int = 0
    segments: int = 0
    activation: str = "gelu"
    dropout: float = 0.0
    attention_dropout: float = 0.0
    head: str = "classifier"
    tied: bool = True
    experts: int = 0
    capacity: int = 0
    sparse: int = 0

    @property
    def head_size(self) -> int:
        """Features of a head."""
        return self.size or self.width // self.heads

    @property
    def shared(self) -> int:
        """Heads of keys and values."""
        return self.kv_heads or self.heads


class EagerNet:
    """A network under construction with the parts that all families share."""

    def __init__(self, name: str, config: Config, tokens: Extent, notes: str, module: str, *more: str) -> None:
        inputs: dict[str, tuple[Dim, ...]] = {"tokens": ("N", "T")} | dict.fromkeys(more, (1, "T"))
        self.net = Builder(name, SOURCE.format(module, module), inputs, notes, tokens)
        self.config = config

    def linear(
        self, x: str, features: int, name: str, *, bias: bool = True, inner_first: bool = False, tied: bool = False
    ) -> str:
        """Fully connected layer."""
        kind = Linear(bias=bias, inner_first=inner_first)
        return self.net.add(kind, x, name=name, recorded=(features,), tied=tied)

    def norm(self, x: str, name: str) -> str:
        """The family's normalisation of each token."""
        return self.net.add(RmsNorm() if self.config.family in ("llama", "switch_transformers") else LayerNorm(), x, name=name)

    def dropped(self, x: str, ratio: float | None = None) -> str:
        """With dropout, if the model has any."""
        ratio = self.config.dropout if ratio is None else ratio
        return self.net.dropout(x, ratio, name=f"{x}.dropout") if ratio else x

    def split(self, x: str, heads: int, name: str) -> str:
        """[N, T, heads d] as [N, T, heads, d]: a view."""
        return self.net.reshape(x, ("N", "T", heads, self.config.head_size), name=name)

    def heads(self, x: str, heads: int, name: str, *, turned: bool = False) -> str:
        """The copy that batched products ask for: [N, heads, T, d], or `turned` [N, heads, d, T]."""
        order = FEATURES_FIRST if turned else HEADS_FIRST
        return self.net.transpose(self.split(x, heads, f"{name}.split"), *order, name=name)

    def attended(self, query: str, key: str, value: str, at: str, scores: Callable[[str], str]) -> str:
        """Products around a softmax: `scores` scales and masks what the first one gives; tokens come first again in the end."""
        config = self.config
        key = self._repeated(key, f"{at}.key.repeated")
        value = self._repeated(value, f"{at}.value.repeated")
        found = scores(self.net.add(Matmul(), query, key, name=f"{at}.scores"))
        weights = self.dropped(self.net.add(Softmax(), found, name=f"{at}.softmax"), config.attention_dropout)
        mixed = self.net.add(Matmul(), weights, value, name=f"{at}.mixed")
        mixed = self.net.transpose(mixed, *TOKENS_FIRST, name=f"{at}.tokens")
        return self.net.reshape(mixed, ("N", "T", config.heads * config.head_size), name=f"{at}.attended")

    def _repeated(self, x: str, name: str) -> str:
        """Keys or values that heads share, copied for each of them."""
        times = self.config.heads // self.config.shared
        return x if times == 1 else self.net.add(Concat(axis=1), *[x] * times, name=name)

    def activated(self, x: str) -> str:
        """The model's activation."""
        kind = ACTIVATIONS[self.config.activation]
        return self.net.add(kind, x, name=f"{x}.{kind.op}")
