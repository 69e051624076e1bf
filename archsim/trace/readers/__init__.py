"""Readers of other people's formats of networks: ONNX, programs of `torch.export`, Caffe's prototxt.

Each makes a `ModelFile` of nodes in ONNX's vocabulary; shapes, folding, patterns and the ops of a trace follow in one way.
"""
