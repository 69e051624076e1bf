"""Programs of torch.export as PyTorch's observer of execution traces would have written them: nodes with tensors by number."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

ROOT = 2  # the id of the node that stands for a thread
# arguments that programs pass by name -> their place in the operator's schema
PLACES = {"scaled_dot_product_attention": {"attn_mask": 3, "dropout_p": 4, "is_causal": 5, "scale": 6, "enable_gqa": 7}}
WRITTEN = {"scaled_dot_product_attention": (None, 0.0, False, None, False)}  # behind the three tensors


class Observer:
    """The nodes of a program, in the order of its calls."""

    def __init__(self, program: Mapping[str, Any], quoted: bool = False) -> None:
        self.quoted = quoted  # lists as texts, as a converter writes them
        self.nodes: list[dict[str, Any]] = [
            {"id": ROOT, "name": "[pytorch|profiler|execution_trace|thread]", "ctrl_deps": 1, **self._io((), ())}
        ]
        self.tensors: dict[str, list[Any]] = {}
        self.shapes: dict[str, list[int]] = {}
        whole = set(program["integers"])
        for name, shape in (*program["held"].items(), *program["inputs"].items()):
            self._tensor(name, shape)
        self.types = {name: "Tensor(long int)" if name in whole else "Tensor(float)" for name in self.tensors}
        for call in program["calls"]:
            self._call(call)

    def record(self) -> dict[str, Any]:
        """The file."""
        return {"schema": "1.1.1-chakra.0.0.4", "pid": 7, "time": "2026", "start_ts": 0, "nodes": self.nodes}

    def _tensor(self, name: str, shape: Sequence[int]) -> list[Any]:
        self.shapes[name] = list(shape)
        self.tensors[name] = [100 + len(self.tensors), 5000 + len(self.tensors), 0, math.prod(shape), 4, "cuda:0"]
        return self.tensors[name]

    def _call(self, call: Mapping[str, Any]) -> None:
        if call["call"] == "getitem":  # which picks a result, and is no operator
            source, number = call["args"][0]["tensor"], call["args"][1]
            made = f"{source}.{number}" if f"{source}.{number}" in self.tensors else source
            self.tensors[call["name"]], self.shapes[call["name"]] = self.tensors[made], self.shapes[made]
            self.types[call["name"]] = self.types.get(made, "Tensor(float)")
            return
        kind = call["call"].split(".")[1]
        args = self._full(kind, call)
        several = len(call["shapes"]) > 1
        names = [f"{call['name']}.{i}" if several else call["name"] for i in range(len(call["shapes"]))]
        made = [self._tensor(name, shape or []) for name, shape in zip(names, call["shapes"], strict=True)]
        self.types |= dict.fromkeys(names, "Tensor(float)")
        caller = len(self.nodes) + ROOT + 1
        out = (made, [self.shapes[name] for name in names], ["Tensor(float)"] * len(names))
        attributes = [{"name": "op_schema", "type": "string", "value": f"{call['call'].replace('.', '::', 1)}(...)"}]
        self._node(caller, f"aten::{kind}", ROOT, self._inputs(args), out, attributes)
        self._node(caller + 1, f"aten::_{kind}_within", caller, self._inputs(args), out, attributes)
        self.nodes.append({"id": caller + 2, "name": "void kernel<float>(float*)", "ctrl_deps": caller + 1, "cat": "kernel",
                           "exclusive_dur": 12, **self._io((), ())})  # fmt: skip

    def _full(self, kind: str, call: Mapping[str, Any]) -> list[Any]:
        args = list(call["args"])
        if kind in PLACES:
            args += WRITTEN[kind][len(args) - 3 :]
            for name, value in call["named"].items():
                args[PLACES[kind][name]] = value
        return args

    def _inputs(self, args: Sequence[Any]) -> tuple[list[Any], list[Any], list[str]]:
        found = [self._argument(value) for value in args]
        return [one[0] for one in found], [one[1] for one in found], [one[2] for one in found]

    def _argument(self, value: Any) -> tuple[Any, Any, str]:
        if isinstance(value, dict):
            name = value["tensor"]
            return self.tensors[name], self.shapes[name], self.types[name]
        if isinstance(value, list):
            found = [self._argument(each) for each in value]
            kinds = ",".join(one[2] for one in found)
            return [one[0] for one in found], [one[1] for one in found], f"GenericList[{kinds}]"
        if value is None:
            return "<None>", [], "None"
        return value, [], {bool: "Bool", int: "Int", float: "Double"}.get(type(value), "String")

    def _node(self, id: int, name: str, parent: int, given: Any, made: Any, attributes: list[Any]) -> None:
        io = {"inputs": self._texts(*given), "outputs": self._texts(*made)}
        self.nodes.append({"id": id, "name": name, "ctrl_deps": parent, **io, "attrs": attributes})

    def _io(self, given: Any, made: Any) -> dict[str, Any]:
        return {"inputs": self._texts([], [], []), "outputs": self._texts([], [], [])}

    def _texts(self, values: Any, shapes: Any, types: Any) -> dict[str, Any]:
        found = {"values": values, "shapes": shapes, "types": types}
        return {key: str(each) for key, each in found.items()} if self.quoted else found


def recorded(program: Mapping[str, Any], quoted: bool = False) -> str:
    """The text of the file."""
    return json.dumps(Observer(program, quoted).record())
