"""Real architectures as exporters write them, and their work by torch's own counter. Needs torch, torchvision, transformers:

    python tests/trace/exports/record.py

writes, without any weights, ONNX models (by TorchScript and by torch.export), programs of torch.export, and flop_counter.json,
the FLOP that `torch.utils.flop_counter` counts at a batch of 2. Tests read them; none of them needs torch.
"""

from __future__ import annotations

import gzip
import json
import sys
import tempfile
from pathlib import Path
from typing import Any

import torch
import torchvision.models as vision
from torch.utils.flop_counter import FlopCounterMode
from transformers import BertConfig, BertModel, GPT2Config, GPT2LMHeadModel

from archsim.trace.readers.torch_program import programs
from archsim.trace.readers.wire import slimmed

HERE = Path(__file__).parent
IMAGES = ("alexnet", "vgg16", "resnet18", "resnet50", "densenet121", "mobilenet_v2", "mobilenet_v3_large", "googlenet",
          "inception_v3", "efficientnet_b0", "convnext_tiny", "vit_b_16", "shufflenet_v2_x1_0", "swin_t")  # fmt: skip
BY_EXPORT = ("resnet50", "vit_b_16", "bert_base", "gpt2")  # written as ONNX by torch.export, the others by TorchScript


class Scores(torch.nn.Module):
    """A model with a softmax over its scores."""

    def __init__(self, model: torch.nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.softmax(self.model(x), -1)


class Words(torch.nn.Module):
    """A language model without caches: its pooled or its next words."""

    def __init__(self, model: torch.nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, input_ids: torch.Tensor) -> torch.Tensor:
        if isinstance(self.model, BertModel):
            return self.model(input_ids).pooler_output
        return torch.softmax(self.model(input_ids, use_cache=False).logits, -1)


def model_of(name: str) -> tuple[torch.nn.Module, torch.Tensor]:
    """A model with random weights, and an input of two samples."""
    torch.manual_seed(0)
    if name in IMAGES:
        words: dict[str, Any] = {"init_weights": False} if name in ("googlenet", "inception_v3") else {}
        made: torch.nn.Module = Scores(getattr(vision, name)(weights=None, **words))
        side = 299 if name == "inception_v3" else 224
        given = torch.zeros(2, 3, side, side)
    else:
        held = BertModel(BertConfig()) if name == "bert_base" else GPT2LMHeadModel(GPT2Config())
        made, given = Words(held), torch.zeros(2, 64, dtype=torch.long)
    for parameter in made.parameters():  # biases of nothing are left out by exporters
        torch.nn.init.normal_(parameter, 0.01, 0.02)
    return made.eval(), given


def onnx_of(name: str, model: torch.nn.Module, given: torch.Tensor, place: Path) -> None:
    """The model as ONNX."""
    if name in BY_EXPORT:
        words = given.dtype == torch.long
        sizes = {0: torch.export.Dim("batch"), **({1: torch.export.Dim("sequence", min=2, max=512)} if words else {})}
        torch.onnx.export(model, (given,), str(place), dynamo=True, dynamic_shapes=(sizes,), external_data=False, verbose=False)
        return
    sizes = {"x": {0: "batch"}}
    torch.onnx.export(model, (given,), str(place), dynamo=False, input_names=["x"], dynamic_axes=sizes, opset_version=14,
                      training=torch.onnx.TrainingMode.PRESERVE, do_constant_folding=False)  # fmt: skip


def main(names: list[str]) -> None:
    """Record the models of these names, or all."""
    torch.backends.mha.set_fastpath_enabled(False)  # whose products the counter does not see
    counts = json.loads((HERE / "flop_counter.json").read_text()) if (HERE / "flop_counter.json").exists() else {}
    with tempfile.TemporaryDirectory() as folder:
        for name in names or [*IMAGES, "bert_base", "gpt2"]:
            model, given = model_of(name)
            place = Path(folder) / f"{name}.onnx"
            onnx_of(name, model, given, place)
            (HERE / f"{name}.onnx.gz").write_bytes(gzip.compress(slimmed(place), mtime=0))
            place.unlink()
            record = json.dumps(programs(model, [given], {}, True), separators=(",", ":"))
            (HERE / f"{name}.program.json.gz").write_bytes(gzip.compress(record.encode(), mtime=0))
            with torch.no_grad(), FlopCounterMode(display=False) as counter:
                model(given)
            counts[name] = counter.get_total_flops()
            print(name, counts[name], flush=True)
            (HERE / "flop_counter.json").write_text(json.dumps(counts, indent=1, sort_keys=True) + "\n")


if __name__ == "__main__":
    main(sys.argv[1:])
