"""A `config.json` as a network: what `--net config.json` reads."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from archsim.base.errors import InputError
from archsim.trace.formats import with_symbols
from archsim.trace.huggingface.graph import graph_of
from archsim.trace.huggingface.reader import load_model
from archsim.trace.trace import Trace

MARKS = re.compile(rb'"(model_type|hidden_size|num_hidden_layers|n_embd|n_layer|d_model|architectures|num_attention_heads)"\s*:')


def begins_as_config(head: bytes) -> bool:
    """Whether a JSON file begins as the configuration of a transformer does.

    >>> begins_as_config(b'{"n_embd": 768}'), begins_as_config(b'{"traceEvents": []}')
    (True, False)
    """
    return bool(MARKS.search(head))


def read(path: Path, sizes: Mapping[str, int]) -> Trace:
    """The network of a model, in its attention one kernel for each layer. Raises MissingFile, InputError or ArgumentError."""
    model = load_model(path)
    if model.stored is not None:
        said = f"quantization_config ({model.stored.said}) counts where an engine serves the model: archsim llm"
        model = replace(model, notes=(*model.notes, said))
    try:
        trace = graph_of(model)
    except ValueError as error:
        raise InputError(str(path), str(error)) from None
    return with_symbols(trace, sizes, path)


def read_eager(path: Path, sizes: Mapping[str, int]) -> Trace | None:
    """The same op by op, as the module runs it without fused attention; None for a family that is not written so."""
    from archsim.trace.zoo import eager

    model = load_model(path)
    standard = "post" if model.model_type == "bert" else "pre"
    if model.model_type not in eager.FAMILIES or model.windows or model.projected or model.order != standard:
        return None
    return with_symbols(replace(eager.build(model.name, eager.config_of(model)), source=model.source), sizes, path)
