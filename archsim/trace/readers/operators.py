"""ONNX's operators that act on each value, or on each row, alike: what they cost [FLOP a value], in one table for each form."""

from __future__ import annotations

# one input (and parameters), a result of its shape
UNARY = {
    "Abs": 1, "Neg": 1, "Ceil": 1, "Floor": 1, "Round": 1, "Sign": 1, "Sqrt": 1, "Reciprocal": 1, "Exp": 1, "Log": 1, "Not": 1,
    "Sin": 1, "Cos": 1, "Tan": 1, "Asin": 1, "Acos": 1, "Atan": 1, "Sinh": 1, "Cosh": 1, "Asinh": 1, "Acosh": 1, "Atanh": 1,
    "Erf": 1, "Softplus": 3, "Softsign": 3, "Elu": 3, "Celu": 4, "Selu": 4, "ThresholdedRelu": 2, "PRelu": 2, "Mish": 5,
    "Shrink": 2, "Hardmax": 2, "IsNaN": 1, "IsInf": 1, "BitwiseNot": 1, "CumSum": 1, "Trilu": 0, "LpNormalization": 4,
    "MeanVarianceNormalization": 5, "Clip": 2, "BitShift": 1, "QuickGelu": 6, "ReverseSequence": 0, "LogSoftmax": 6,
    "RotaryEmbedding": 3, "RandomNormalLike": 4, "RandomUniformLike": 4, "Bernoulli": 2, "EyeLike": 0, "Det": 1, "Swish": 5,
    "TensorScatter": 0, "QLinearSigmoid": 4, "QLinearLeakyRelu": 2, "QLinearSoftmax": 5,
    "Power": 3, "Threshold": 1,  # of Caffe
}  # fmt: skip
# one input, a result of its shape, with a form of its own in a trace
SAME = (
    *UNARY, "Relu", "LeakyRelu", "Sigmoid", "Tanh", "HardSigmoid", "HardSwish", "Gelu", "FastGelu", "BiasGelu", "Softmax", "LRN",
    "Identity", "Cast", "CastLike", "Dropout", "QuantizeLinear", "DequantizeLinear", "Scatter", "SkipLayerNormalization",
    "SkipSimplifiedLayerNormalization",
)  # fmt: skip
# any number of inputs that stretch to one shape
BROADCAST = {
    "Add": 1, "Sub": 1, "Mul": 1, "Div": 1, "Pow": 1, "Mod": 1, "Max": 1, "Min": 1, "Sum": 1, "Mean": 1, "Equal": 1, "Greater": 1,
    "Less": 1, "GreaterOrEqual": 1, "LessOrEqual": 1, "And": 1, "Or": 1, "Xor": 1, "Where": 1, "BitwiseAnd": 1, "BitwiseOr": 1,
    "BitwiseXor": 1,
}  # fmt: skip
REDUCTIONS = (
    "ReduceMean", "ReduceSum", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp",
    "ReduceSumSquare",
)  # fmt: skip
# operators of com.microsoft that have a rule of their own name, or mean what ONNX's of that name do
MICROSOFT = frozenset({
    "Gelu", "FastGelu", "BiasGelu", "QuickGelu", "SkipLayerNormalization", "SkipSimplifiedLayerNormalization", "FusedConv",
    "FusedMatMul", "QuantizeLinear", "DequantizeLinear", "QLinearAdd", "QLinearMul", "RotaryEmbedding", "MultiHeadAttention",
    "GroupQueryAttention", "MatMulNBits", "MoE", "EmbedLayerNormalization", "QGemm", "QLinearGlobalAveragePool",
    "QLinearAveragePool", "QLinearSigmoid", "QLinearLeakyRelu", "QLinearSoftmax",
})  # fmt: skip
# on lists of tensors, on texts, and what makes as many results as values say
REFUSED = {
    "Scan": "runs a graph for each part of a tensor, which is not written out here",
    **dict.fromkeys(("SequenceAt", "SequenceConstruct", "SequenceEmpty", "SequenceErase", "SequenceInsert", "SequenceLength",
                     "SplitToSequence", "ConcatFromSequence", "SequenceMap", "Optional", "OptionalGetElement",
                     "OptionalHasElement"),
                    "works on lists of tensors"),
    **dict.fromkeys(("StringNormalizer", "StringConcat", "StringSplit", "RegexFullMatch", "TfIdfVectorizer", "ImageDecoder"),
                    "works on texts or coded images"),
}  # fmt: skip
