"""Normalisation, softmax, the loss and the prediction: ops that reduce along an axis."""

from __future__ import annotations

from archsim.trace.dims import Shape, Shapes, elements, show
from archsim.trace.kind import Kind, image, only
from archsim.trace.values import flag, integer


class Lrn(Kind, op="lrn", backward_reads=("inputs", "output")):
    """Local response normalisation across `size` neighbouring channels: x * (k + a * sum of x^2) ** -b.

    FLOP per element: square, size - 1 adds, scale, shift, power, multiply; backward about twice that: a second
    windowed sum, of dy * y / scale, and the products around it.
    """

    size: int = integer(least=1, default=5)

    def shape(self, inputs: Shapes, recorded: Shape) -> Shape:
        """That of the input."""
        return image(inputs)

    def flop(self, inputs: Shapes, out: Shape) -> int:
        """size + 4 per element."""
        return (self.size + 4) * elements(out)

    def gradient_flop(self, phase: str, inputs: Shapes, out: Shape) -> int:
        """2 size + 8 per element."""
        return 2 * (self.size + 4) * elements(out)


class BatchNorm(Kind, op="batch_norm", backward_flop_per_element=8, backward_reads=("inputs",)):
    """Batch normalisation along axis 1 of [N, C, ...], with a learned scale and shift per channel.

    At inference the stored statistics fold into one multiply and one add. With `training` the op first reduces the
    batch: mean (1), variance (2), normalise (2), scale and shift (2). Backward: two reductions (4) and the update (4). With
    `stored` it takes the stored statistics in training too, so that its gradient is a division, and that of the scale and shift.
    """

    training: bool = flag(default=False)
    stored: bool = flag(default=False)

    def shape(self, inputs: Shapes, recorded: Shape) -> Shape:
        """That of the input."""
        data = only(inputs)
        if len(data) < 2:
            raise ValueError(f"needs an input of the form [N, C, ...], got {show(data)}")
        return data

    def flop(self, inputs: Shapes, out: Shape) -> int:
        """2 per element at inference, 7 in training."""
        return (7 if self.training else 2) * elements(out)

    def parameters(self, inputs: Shapes, out: Shape) -> int:
        """Scale and shift; the running statistics are not learned."""
        return 2 * out[1]


class LayerNorm(Kind, op="layer_norm", flop_per_element=7, backward_flop_per_element=10, backward_reads=("inputs",)):
    """Normalisation along the last axis, with a learned scale and, if `shift`, a shift. FLOP: 7 per element, backward 10."""

    shift: bool = flag(default=True)

    def parameters(self, inputs: Shapes, out: Shape) -> int:
        """Scale and shift."""
        return (1 + self.shift) * out[-1]


class RmsNorm(Kind, op="rms_norm", flop_per_element=4, backward_flop_per_element=8, backward_reads=("inputs",)):
    """Division by the root mean square along `axis`, and a learned scale (Zhang and Sennrich 2019, equation 4).

    With the scale that it learns it is also the division by the Euclidean norm (Liu et al. 2015, ParseNet, section 3.3).

    FLOP per element: square, add, divide, scale. Backward 8: the scaled gradient (1), its product with x summed (2), what it
    takes from the gradient (3), and the sum that is the gradient of the scale (2).
    """

    axis: int = integer(least=-8, most=7, default=-1)

    def parameters(self, inputs: Shapes, out: Shape) -> int:
        """The scale."""
        return out[self.axis]


class Softmax(Kind, op="softmax", flop_per_element=5, backward_flop_per_element=4, backward_reads=("output",)):
    """Softmax along `axis`. FLOP per element: compare, subtract, exp, add, divide; backward 4.

    With `apart` the loss that it is a part of in training is written as single ops.
    """

    axis: int = integer(least=-8, most=7, default=-1)
    apart: bool = flag(default=False)


class CrossEntropy(
    Kind, op="cross_entropy", backward_reads=("inputs",), flop_per_element=2, flop_per_input=5, backward_flop_per_input=2
):
    """Softmax along the last axis and the cross-entropy with the labels, [..., classes] to [...].

    The labels, [...] indices, may be given as a second input. FLOP: 5 per logit (as softmax) and 2 per row for the
    logarithm; backward, one streaming op, 2 per logit: (softmax - label) * weight. With `apart` softmax, logarithm, product with
    labels that have a value for each class, and mean are ops of their own, as a script wrote them.
    """

    apart: bool = flag(default=False)

    def shape(self, inputs: Shapes, recorded: Shape) -> Shape:
        """One loss for each row."""
        if len(inputs) not in (1, 2):
            raise ValueError(f"takes the logits and, if traced, the labels, got {len(inputs)} inputs")
        rows = tuple(inputs[0][:-1])
        if not rows:
            raise ValueError(f"needs logits of the form [..., classes], got {show(inputs[0])}")
        if len(inputs) == 2 and tuple(inputs[1]) != rows:
            raise ValueError(f"needs one label for each row of {show(inputs[0])}, got {show(inputs[1])}")
        return rows


class ArgMax(Kind, op="argmax", input_gradient=(), flop_per_input=1):
    """The index of the largest value along the last axis, [..., classes] to [...]: a prediction, which has no gradient.

    FLOP: a comparison for each value.
    """

    def shape(self, inputs: Shapes, recorded: Shape) -> Shape:
        """One index for each row."""
        data = only(inputs)
        if len(data) < 2:
            raise ValueError(f"needs an input of the form [..., classes], got {show(data)}")
        return data[:-1]
