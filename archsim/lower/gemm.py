"""Products: full connections, matrix products, and recurrent layers, which are products of each step.

The product of a step adds to that of the input, gate by gate, and the element-wise kernel of the gates reads the sums and the
state; where a reset gate acts between the two products (GRU), it reads both products.
"""

from __future__ import annotations

from dataclasses import replace
from math import ceil, gcd, prod

from archsim.lower.columns import GpuColumns, Role
from archsim.lower.context import HALF, Context, element_wise, plan, single
from archsim.lower.fusion import quantised
from archsim.lower.kernel import Kernel, Option, Plan
from archsim.trace.kinds.dense import Experts
from archsim.trace.kinds.sequence import GATES, Lstm, Recurrent
from archsim.trace.trace import BoundOp

VECTOR = 16  # bytes of the widest load; rows that are no multiple of it are loaded in narrower ones
# Most rows or columns of what a GPU library computes as a matrix-vector product, which reads the matrix once; in a batch, 1. On a
# GTX 1080 (ck_gtx1080) 4096 x 4096 weights take 0.30 ms with 2 to 8 columns, 0.37 with 10 and 0.44 with 14, as tiles would. Inner
# dimensions of 500,000 (DeepBench) are for another kernel, sgemm_largek.
THIN, LONGEST = 8, 65536
CHOICES = 3  # kernels before the products of experts: scores to choices, tokens sorted by expert, their order stored


def loaded_at_once(context: Context, *lengths: float) -> int:
    """What a lane can load at once of operands whose rows have these lengths, in values [B]: at most 16, less where they begin at
    no multiple of that.

    >>> from types import SimpleNamespace as some
    >>> loaded_at_once(some(element=2), 768, 30522), loaded_at_once(some(element=2), 197)
    (4, 2)
    """
    return gcd(VECTOR, *(int(length) * context.element for length in lengths))


def product(
    context: Context, m: float, n: float, k: float, *, count: float = 1, menu: str = "gemm", family: str = "gemm",
    repeat: float = 1, transposed: bool = False, suffix: str = "", rows: tuple[float, ...] = (),
) -> Kernel:  # fmt: skip
    """`count` dense products C[m, n] = A[m, k] B[k, n] in one launch, `repeat` launches one after the other.

    flop = 2 m n k count        a_bytes = m k count element        b_bytes = k n count element        c_bytes = m n count result

    element: size of an operand's value [B], result: of a result's [B]. A is the operand that the op before has not just
    written: the weights, where there are any. `transposed`: the rows of both operands are contiguous along k. A thin product,
    of up to `THIN` rows or columns on lanes and of one on tensor cores, is an element-wise kernel, which reads the matrix once;
    so is any product of a stack that loses nothing (`ideal`). `menu` and `family` name the tiles and the constant of the
    library's kernel, `suffix` completes its display name. `rows`: lengths of the rows of operands and result in memory; where
    one is no multiple of 16 B, tensor cores have the tiles of `menu_narrow`.
    """
    element = float(context.element)
    a_bytes, b_bytes = m * k * count * element, k * n * count * element
    c_bytes = m * n * count * float(context.result)
    flop = 2.0 * m * n * k * count
    gpu = context.device_kind == "gpu"
    thin = min(m, n) <= (THIN if gpu and not context.tensor and count == 1 and k <= LONGEST else 1)
    thin &= gpu or context.stack.vector_products == "gemv"
    if thin or context.lossless:
        name, role = (f"gemv{suffix}", Role.MATRIX_VECTOR) if thin else (f"gemm{suffix}", Role.PRODUCT)
        return element_wise(name, role, b_bytes, c_bytes, flop=flop, weights=a_bytes, element=context.vector, repeat=repeat,
                            efficiency=context.efficiency("gemv"), dense=True)  # fmt: skip
    aligned = not context.tensor or context.element < HALF
    load = VECTOR if aligned or not rows else loaded_at_once(context, *rows)
    narrow = context.menu(f"{menu}_narrow", "gemm_narrow") if load < VECTOR else ""
    if narrow not in context.stack.menus:
        narrow, load = "", VECTOR
    return Kernel(
        name=f"gemm{suffix}", role=Role.PRODUCT, efficiency=context.efficiency(family), menu=narrow or context.menu(menu, "gemm"),
        m=m, n=n, k=k, count=count, operand_a=element, operand_b=element, a_bytes=a_bytes, b_bytes=b_bytes, c_bytes=c_bytes,
        flop=flop, items=m * n * count, repeat=repeat,
        gpu=GpuColumns(load=float(load), row_bytes=k * element * transposed,
                       row_step=k * element * (transposed and k <= LONGEST)),
    )  # fmt: skip


def linear(op: BoundOp, context: Context) -> Plan:
    """Fully connected: weights [features, inner] are A, activations [rows, inner] are B; the bias is a pass of its own, or fused.

        forward            m = features    n = rows     k = inner
        backward_data      m = inner       n = rows     k = features
        backward_filter    m = features    n = inner    k = rows
    """
    rows, features = prod(op.shape[:-1]), op.shape[-1]
    inner = op.input_shapes[0][-1]
    m, n, k = {
        "backward_data": (inner, rows, features),
        "backward_filter": (features, inner, rows),
    }.get(op.phase, (features, rows, inner))
    # k is contiguous in both operands of the pass whose inner dimension is the last of the weights.
    transposed = op.phase == ("backward_data" if getattr(op.kind, "inner_first", False) else "forward")
    # With a bias the library is cuBLASLt from its version 11 on, which has kernels of its own whatever the layout.
    family = "gemm.transposed" if op.phase == "forward" else "gemm"
    if op.phase == "forward" and inner * context.element % VECTOR:
        family = context.family("gemm.unaligned", family)
    block = context.stack.linear_rows if op.phase == "forward" else 0
    blocks = ceil(rows / block) if block else 1
    each = rows / blocks if block else n
    main = narrowed(product(context, m, each, k, menu=weights_menu(context), family=family, transposed=transposed, repeat=blocks,
                            rows=(features, inner)), context)  # fmt: skip
    kernels = [*quantised(context, rows, inner), main]
    out = context.bytes(op.shape)
    if getattr(op.kind, "bias", False) and context.stack.linear_bias == "product":
        kernels += ones_product(op, context, channels=features, values=rows)
    if getattr(op.kind, "bias", False) and context.stack.linear_bias in ("separate", "epilogue"):
        flop, element = out / context.element, context.element
        if op.phase == "forward" and context.stack.linear_bias == "separate":
            kernels.append(element_wise("bias", Role.BIAS, out, out, flop=flop, element=element))
        elif op.phase == "backward_filter":
            kernels.append(element_wise("bias_gradient", Role.BIAS_GRADIENT, out, 0, flop=flop, element=element))
    return plan(op, context, Option(algorithm="gemm", kernels=tuple(kernels)))


def weights_menu(context: Context) -> str:
    """The menu of products with weights: tiles of kernels that widen them have one of their own."""
    return "gemm_widened" if context.stored.weight_bytes else "gemm"


def narrowed(kernel: Kernel, context: Context) -> Kernel:
    """A product whose weights are stored in fewer bytes than are multiplied, and widened in its kernel as they are loaded.

    a_bytes, operand_a x weight_bytes / element        a matrix-vector kernel: its weights' bytes alone
    """
    if not context.stored.weight_bytes:
        return kernel
    share = context.stored.weight_bytes / context.element
    loaded = kernel.operand_a * (share if kernel.menu else 1.0)
    return replace(kernel, a_bytes=kernel.a_bytes * share, operand_a=loaded)


def ones_product(op: BoundOp, context: Context, *, channels: int, values: int, repeat: int = 1) -> tuple[Kernel, ...]:
    """A bias by the BLAS: the product of the bias and a vector of ones, added to the results; its gradient sums by such a vector.

        forward            m = channels    n = values    k = 1        C is read and written
        backward_filter    a matrix [channels, values] times a vector

    channels: values of the bias; values: results of each, in one of `repeat` launches [1].
    """
    element, out = float(context.element), float(channels * values * context.element)
    if op.phase == "forward":
        return (Kernel(
            name="bias", role=Role.PRODUCT, efficiency=context.efficiency("gemm"), menu=context.menu("gemm"), m=channels,
            n=values, k=1, operand_a=element, operand_b=element, a_bytes=channels * element, b_bytes=values * element,
            c_bytes=out, flop=2.0 * channels * values, items=float(channels * values), repeat=repeat,
        ),)  # fmt: skip
    if op.phase == "backward_filter":
        return (element_wise("bias_gradient", Role.BIAS_GRADIENT, out, 0, flop=2.0 * channels * values, element=element,
                             repeat=repeat, efficiency=context.efficiency("gemv"), dense=True),)  # fmt: skip
    return ()


def matmul(op: BoundOp, context: Context) -> Plan:
    """Products of two activations [..., n, k] x [..., k, m], one for each leading index, or one of their two gradients.

    Libraries count columns first, so that the rows of a matrix in memory are the n of a kernel and its columns the m.
    """
    n, m = op.shape[-2:]
    count = prod(op.shape[:-2])
    k = prod(op.input_shapes[0]) / (n * count)
    sizes = {"backward_data": (k, n, m), "backward_filter": (m, k, n)}.get(op.phase, (m, n, k))
    narrow = quantised(context, prod(op.input_shapes[0][:-1]), op.input_shapes[0][-1], "quantise_batched")
    batched = product(context, *sizes, count=count, menu="gemm_batched", suffix="_batched", rows=(m, k))
    return single("gemm", op, context, *narrow, batched)


def experts(op: BoundOp, context: Context) -> Plan:
    """Products of the experts that any token chose, one for each in one launch, with the rows of its tokens (vLLM's fused_moe).

        choice                        scores read and a place for each row written, `CHOICES` kernels
        up     m = hidden (x 2)       n = rows / active      k = features    count = active
        gate   an element-wise kernel over the rows
        down   m = features           n = rows / active      k = hidden      count = active
        sum    rows read, tokens written

    Where operands have one byte, tokens are rounded before they are chosen, and each row again before `down`.

    rows: tokens times experts of each; active: experts that any token chose, whose weights are read
    """
    kind = op.kind
    assert isinstance(kind, Experts)
    tokens, scores = op.input_shapes
    features, rows, active = tokens[-1], kind.rows(op.input_shapes), kind.active(op.input_shapes)
    each, value = rows / active, float(context.result)
    wide = kind.hidden * (kind.projections - 1)
    chosen = element_wise("choose", Role.PASS, context.bytes(scores) / CHOICES, 4.0 * rows, element=context.vector,
                          repeat=CHOICES)  # fmt: skip
    gated = element_wise("gate", Role.PASS, rows * wide * value, rows * kind.hidden * value, element=context.vector,
                         flop=6.0 * rows * kind.hidden)  # fmt: skip
    summed = element_wise("sum", Role.PASS, rows * features * value, context.bytes(op.shape), element=context.vector,
                          flop=2.0 * rows * features)  # fmt: skip

    def grouped(m: float, k: float) -> Kernel:
        made = product(context, m, each, k, count=active, menu=weights_menu(context), family="gemm.transposed", transposed=True,
                       suffix="_grouped")  # fmt: skip
        return narrowed(made, context)

    up, down = grouped(wide, features), grouped(features, kind.hidden)
    rounding = "quantise_experts"
    narrow = quantised(context, float(prod(tokens[:-1])), tokens[-1], rounding)
    again = quantised(context, rows, kind.hidden, rounding)
    return single("grouped", op, context, chosen, *narrow, up, gated, *again, down, summed)


# ----------------------------------------------------------------------------------------------------- recurrent layers

ACTIVATION_FLOP = 5.0  # issue slots of a sigmoid or tangent, with the arithmetic around it, in those of an addition


def sequence(op: BoundOp, context: Context) -> Plan:
    """Layers over a sequence [T, N, features]: the input product is batched over time, the recurrent one runs step by step.

    The two directions of a layer run one after the other: kernels of one CUDA stream do not overlap.
    """
    steps, batch, features = op.input_shapes[0]
    kind = op.kind
    assert isinstance(kind, Recurrent)
    kernels: list[Kernel] = []
    for multiplied in kind.multiplied(features):
        kernels += _layer(context, type(kind), op.phase, steps, batch, multiplied, kind.hidden)
    calls = steps * kind.layers * kind.directions * _launches(context, type(kind)) if context.stack.recurrent == "steps" else 1
    return plan(op, context, Option(algorithm=kind.op, kernels=tuple(kernels)), host_ops=calls)


def lstm_cell(op: BoundOp, context: Context) -> Plan:
    """One time step of an LSTM, [N, features] to [N, hidden]: the products of input and state, and the gates."""
    batch, features = op.input_shapes[0]
    kernels = _layer(context, Lstm, op.phase, 1, batch, features, op.shape[-1])
    return plan(op, context, Option(algorithm="lstm", kernels=tuple(kernels)), host_ops=context.stack.recurrent_launches)


def _launches(context: Context, kind: type[Recurrent]) -> int:
    """Kernels for each step and layer: one product, and element-wise ones in proportion to the gates; the stack has an LSTM's."""
    return 1 + max(1, ceil((context.stack.recurrent_launches - 1) * kind.gates / GATES))


def _layer(
    context: Context, kind: type[Recurrent], phase: str, steps: int, batch: int, features: int, hidden: int
) -> list[Kernel]:
    """The kernels of one layer; one that adds its input without weights (`features` = 0) has no input product.

        forward            input: m = gates hidden, n = steps batch, k = features
                           step:  m = gates hidden, n = batch, k = hidden
        backward_data      input: m = features, n = steps batch, k = gates hidden
                           step:  m = hidden, n = batch, k = gates hidden
        backward_filter    input: m = gates hidden, n = features, k = steps batch
                           state: m = gates hidden, n = hidden, k = steps batch

    In the data gradient the library's kernels compute one product for each gate and add up, a framework's one for all.
    """
    rows, gates = steps * batch, kind.gates * hidden
    if phase == "backward_filter":
        of_input = [product(context, gates, features, rows, suffix="_input_weights")] if features else []
        return [*of_input, product(context, gates, hidden, rows, suffix="_recurrent_weights")]
    forward = phase == "forward"
    whole = (gates, rows, features) if forward else (features, rows, gates)
    library = context.stack.recurrent == "fused" and "recurrent" in context.stack.menus and not context.tensor
    apart = kind.gates if library and not forward else 1
    step = (gates, batch, hidden) if forward else (hidden, batch, gates / apart)
    state = float(batch * hidden * context.element)
    of_input = [product(context, *whole, suffix="_input")] if features else []
    return [
        *of_input,
        product(context, *step, count=apart, menu="recurrent" if library else "gemm", family="recurrent", repeat=steps,
                suffix="_recurrent"),
        element_wise("gates", Role.GATES, _read(kind) * state, kind.states * state,
                     flop=ACTIVATION_FLOP * kind.activations * batch * hidden, element=context.element,
                     repeat=steps * (_launches(context, kind) - 1)),
    ]  # fmt: skip


def _read(kind: type[Recurrent]) -> int:
    """Values that the gates of a unit read: for each gate the sum of both products, or both (reset); and the state if gated."""
    mixed = 1 if kind.gates > 1 else 0
    return kind.gates * (2 if kind.reset else 1) + mixed
