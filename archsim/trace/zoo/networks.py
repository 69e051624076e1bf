"""The table of shipped networks: name -> the function that builds the trace.

A name with `@` is the graph that a framework or a published script really runs, where it differs.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from archsim.trace.trace import Trace
from archsim.trace.zoo import alexnet, dense, densenet, inception, language, mobilenet, resnet, squeezenet, transformer, vgg
from archsim.trace.zoo.inception_v3 import inception_v3

NETWORKS: dict[str, Callable[[], Trace]] = {
    "alexnet": alexnet.alexnet,
    "alexnet_owt": alexnet.alexnet_owt,
    "alexnet_s": alexnet.alexnet_s,
    "alexnet_s@caffe": alexnet.alexnet_s_caffe,
    "alexnet_s@mxnet": alexnet.alexnet_s_mxnet,
    "alexnet_s@tensorflow": alexnet.alexnet_s_tensorflow,
    "alexnet_r": alexnet.alexnet_r,
    "alexnet_r@caffe": alexnet.alexnet_r_caffe,
    "alexnet_r@torch7-cpu": alexnet.alexnet_r_normalised,
    "overfeat": alexnet.overfeat,
    "fcn_s": dense.fcn_s,
    "fcn_r": dense.fcn_r,
    "fcn_5": dense.fcn_5,
    "fcn_8": dense.fcn_8,
    "lstm_ptb": language.lstm_ptb,
    "lstm_32": language.lstm_32,
    "lstm_64": language.lstm_64,
    "vgg_a": vgg.vgg_a,
    "vgg_16": vgg.vgg_16,
    "vgg_19": vgg.vgg_19,
    "resnet_18": resnet.resnet_18,
    "resnet_34": resnet.resnet_34,
    **{f"resnet_{depth}": partial(resnet.deep, depth) for depth in resnet.DEEP},
    **{f"resnet_{depth}@caffe": partial(resnet.deep_original, depth) for depth in resnet.DEEP},
    **{f"resnet_{depth}@slim": partial(resnet.deep_slim, depth) for depth in resnet.DEEP},
    **{f"resnet_{depth}@mxnet": partial(resnet.deep_mxnet, depth) for depth in resnet.DEEP},
    "resnet_200": resnet.resnet_200,
    "resnet_56": resnet.resnet_56,
    "resnet_56@cntk": resnet.resnet_56_cntk,
    "googlenet": inception.googlenet,
    "googlenet@convnet": inception.googlenet_plain,
    "inception_bn": inception.inception_bn,
    "inception_bn@caffe": inception.inception_bn_caffe,
    "inception_v3": inception_v3,
    "squeezenet_1_0": squeezenet.squeezenet_1_0,
    "squeezenet_1_1": squeezenet.squeezenet_1_1,
    "densenet_121": densenet.densenet_121,
    "densenet_161": densenet.densenet_161,
    "densenet_169": densenet.densenet_169,
    "densenet_201": densenet.densenet_201,
    "mobilenet_v2": mobilenet.mobilenet_v2,
    **{name: partial(transformer.build, name) for name in transformer.MODELS},
}
