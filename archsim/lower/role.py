"""What a kernel does in its op."""

from __future__ import annotations

from enum import StrEnum


class Role(StrEnum):
    """What a kernel does in its op: the only thing by which code tells kernels apart. Their names are for people.

    The value of a role is the key of such a loop in `[loops]` of a stack; that of a `PASS` is its op kind.
    """

    PRODUCT = "product"  # of two matrices in memory, by a BLAS
    MATRIX_VECTOR = "matrix_vector"  # a product of so few rows or columns that each value of the matrix is used once or twice
    CONVOLUTION = "convolution"  # a product whose operand is gathered from images as it is loaded
    SCATTER = "scatter"  # a product whose results are added to images in the L2
    WINOGRAD = "winograd"  # the products of Winograd's algorithm, with its transforms in the same kernel
    DEPTHWISE = "depthwise"  # sums of taps, one channel each
    ATTENTION = "attention"  # two products around a softmax
    SOFTMAX = "softmax"  # the exponentials between two products, where they are a loop of their own
    GATES = "gates"  # the element-wise part of a step of a recurrent layer
    TRANSFORM = "transform"  # to or from the domain in which an algorithm multiplies
    IM2COL = "im2col"  # images unfolded into a matrix
    COL2IM = "col2im"  # the sum of a matrix back into images
    LAYOUT = "layout"  # a copy from one layout of a tensor to another
    FILL = "fill"  # zeros or indices, for which nothing is read
    BIAS = "bias"
    BIAS_GRADIENT = "bias_gradient"
    QUANTISE = "quantise"  # values rounded to a narrower format, and the search for their scale
    STORE = "store"  # keys and values put into a cache
    GATHER = "gather"  # rows looked up in a table, or their gradients added to it
    UPDATE = "update"  # the optimiser's passes over the parameters
    PASS = "pass"  # over the tensors of an op as `[passes]` of the stack counts them: activations, pooling, normalisation, copies
