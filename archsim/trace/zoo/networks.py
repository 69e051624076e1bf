"""The table of shipped networks: name -> the function that builds the trace.

A name with `@` is the graph that a framework or a published script really runs, where it differs.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from archsim.trace.trace import Trace
from archsim.trace.zoo import dense, densenet, detectors, eager, early, inception, inception_v3, mobile, resnet, transformer

PLAIN: tuple[Callable[[], Trace], ...] = (  # networks that are called as their functions
    early.alexnet, early.alexnet_owt, early.alexnet_s, early.alexnet_r, early.overfeat, dense.deepspeech_2, early.lenet_5,
    early.nin, resnet.resnet_200, resnet.resnet_56, resnet.senet_154, inception.googlenet, inception.inception_bn,
    inception_v3.inception_v3, inception_v3.inception_v4, inception_v3.inception_resnet_v2, inception_v3.xception,
    mobile.squeezenet_1_0, mobile.squeezenet_1_1, densenet.dpn_92, mobile.mobilenet_v1, mobile.mobilenet_v2,
    transformer.mobilevit_s, mobile.shufflenet_v1_g3, mobile.shufflenet_v2_x1_0, mobile.mnasnet_1_0,
    detectors.yolo_v2, detectors.tiny_yolo_v2, detectors.yolo_v3, detectors.ssd_300,
    detectors.unet, detectors.deeplab_v3_resnet_50,
)  # fmt: skip

NETWORKS: dict[str, Callable[[], Trace]] = {
    **{build.__name__: build for build in PLAIN},
    "alexnet@tensorflow": early.alexnet_tensorflow,
    "alexnet@mxnet": early.alexnet_mxnet,
    "alexnet_s@caffe": early.alexnet_s_caffe,
    "alexnet_s@mxnet": early.alexnet_s_mxnet,
    "alexnet_s@tensorflow": early.alexnet_s_tensorflow,
    "alexnet_r@caffe": early.alexnet_r_caffe,
    "alexnet_r@torch7-cpu": early.alexnet_r_normalised,
    **{name: partial(dense.fcn, name) for name in dense.LAYERS},
    "fcn_s@tensorflow": dense.fcn_s_tensorflow,
    "fcn_r@cntk": dense.fcn_r_cntk,
    **{name: partial(dense.lstm, name) for name in dense.LSTM},
    **{name: partial(early.vgg, name) for name in early.VGG},
    **{f"resnet_{depth}": partial(resnet.resnet, depth) for depth in (*resnet.BASIC, *resnet.DEEP)},
    **{f"resnet_{depth}@caffe": partial(resnet.deep_original, depth) for depth in resnet.DEEP},
    **{f"resnet_{depth}@slim": partial(resnet.deep_slim, depth) for depth in resnet.DEEP},
    **{f"resnet_{depth}@mxnet": partial(resnet.deep_mxnet, depth) for depth in resnet.DEEP},
    "resnet_50@dlbench": resnet.resnet_50_stored,
    "resnet_56@cntk": resnet.resnet_56_cntk,
    "resnet_56@tensorflow": resnet.resnet_56_tensorflow,
    **{f"resnet_{depth}": partial(resnet.resnet_cifar, depth) for depth in resnet.DEPTHS},
    **{name: partial(resnet.resnext, name) for name in resnet.NETWORKS},
    **{name: partial(resnet.regnet_y, name) for name in resnet.REGNETS},
    "googlenet@convnet": inception.googlenet_plain,
    "googlenet@torchvision": inception.googlenet_torchvision,
    "inception_bn@caffe": inception.inception_bn_caffe,
    **{f"densenet_{depth}": partial(densenet.densenet, depth) for depth in densenet.DENSENETS},
    **{name: partial(mobile.mobilenet_v3, name) for name in mobile.NETWORKS_V3},
    **{name: partial(mobile.efficientnet, name) for name in mobile.SCALES},
    **{name: partial(mobile.efficientnet_lite, name) for name in mobile.LITE},
    **{name: partial(mobile.pplcnet, name) for name in mobile.WIDTHS},
    **{f"jouppi_{name}": build for name, build in dense.WORKLOADS.items()},
    **{name: partial(transformer.build, name) for name in transformer.MODELS},
    **{name: partial(transformer.convnext, name) for name in transformer.CONVNEXTS},
    **{name: partial(eager.build, name, config) for name, config in eager.MODELS.items()},
}
