"""Inception networks of the first and second generation: GoogLeNet and Inception-BN."""

from __future__ import annotations

from collections.abc import Callable

from archsim.trace.trace import Trace
from archsim.trace.zoo.builder import Builder

Module = Callable[[Builder, str, tuple[int, ...], str], str]  # from an input and widths to a tensor with this name

SZEGEDY = "C. Szegedy et al., Going Deeper with Convolutions, arXiv:1409.4842, table 1; as in Caffe's bvlc_googlenet"
CONVNET = "S. Chintala, convnet-benchmarks: torch7/imagenet_winners/googlenet.lua and its twins in caffe, tensorflow and neon"
TORCHVISION = "PyTorch, torchvision/models/googlenet.py"
IOFFE = "S. Ioffe, C. Szegedy, Batch Normalization, arXiv:1502.03167, figure 5; as in MXNet's inception-bn"
PERTUSA = "github.com/pertusa/InceptionBN-21K-for-Caffe, deploy.prototxt, as in DLInfBench's models/caffe/inception-bn.prototxt"

# module -> (1x1, 3x3 reduce, 3x3, 5x5 reduce, 5x5, pool projection)
GOOGLENET = {
    "3a": (64, 96, 128, 16, 32, 32),
    "3b": (128, 128, 192, 32, 96, 64),
    "4a": (192, 96, 208, 16, 48, 64),
    "4b": (160, 112, 224, 24, 64, 64),
    "4c": (128, 128, 256, 24, 64, 64),
    "4d": (112, 144, 288, 32, 64, 64),
    "4e": (256, 160, 320, 32, 128, 128),
    "5a": (256, 160, 320, 32, 128, 128),
    "5b": (384, 192, 384, 48, 128, 128),
}  # fmt: skip

# module -> (1x1, 3x3 reduce, 3x3, double 3x3 reduce, double 3x3, pool projection); no 1x1 means stride 2
INCEPTION_BN = {
    "3a": (64, 64, 64, 64, 96, 32),
    "3b": (64, 64, 96, 64, 96, 64),
    "3c": (0, 128, 160, 64, 96, 0),
    "4a": (224, 64, 96, 96, 128, 128),
    "4b": (192, 96, 128, 96, 128, 128),
    "4c": (160, 128, 160, 128, 160, 128),
    "4d": (96, 128, 192, 160, 192, 128),
    "4e": (0, 128, 192, 192, 256, 0),
    "5a": (352, 192, 320, 160, 224, 128),
    "5b": (352, 192, 320, 192, 224, 128),
}  # fmt: skip

# The wider first half of the network for 21 thousand classes.
INCEPTION_BN_21K = INCEPTION_BN | {
    "3a": (96, 96, 96, 96, 144, 48),
    "3b": (96, 96, 144, 96, 144, 96),
    "3c": (0, 192, 240, 96, 144, 0),
    "4d": (96, 128, 192, 160, 96, 128),
}


def googlenet() -> Trace:
    """Nine modules, without the auxiliary classifiers, which run only in training."""
    net = Builder("googlenet", SZEGEDY, {"data": ("N", 3, 224, 224)}, notes="without auxiliary classifiers")
    x = net.relu(net.conv("data", 64, 7, 2, 3, name="conv1"))
    x = net.lrn(net.max_pool(x, 3, 2, ceil=True, name="pool1"), name="norm1")
    x = net.relu(net.conv(x, 64, 1, name="conv2.reduce"))
    x = net.lrn(net.relu(net.conv(x, 192, 3, pad=1, name="conv2")), name="norm2")
    x = net.dropout(net.avg_pool(_modules(net, x), 7, 1, name="pool5"), 0.4, name="drop5")
    net.softmax(net.linear(x, 1000, name="fc"))
    return net.trace(aliases=("inception_v1", "bvlc_googlenet"))


def googlenet_plain() -> Trace:
    """The same without normalisation, dropout and loss, as convnet-benchmarks runs it in every framework."""
    net = Builder("googlenet@convnet", CONVNET, {"data": ("N", 3, 224, 224)}, notes="without normalisation, dropout and loss")
    x = net.max_pool(net.relu(net.conv("data", 64, 7, 2, 3, name="conv1")), 3, 2, ceil=True, name="pool1")
    x = net.relu(net.conv(x, 64, 1, name="conv2.reduce"))
    x = net.relu(net.conv(x, 192, 3, pad=1, name="conv2"))
    net.relu(net.linear(net.avg_pool(_modules(net, x), 7, 1, name="pool5"), 1000, name="fc"))
    return net.trace()


def googlenet_torchvision() -> Trace:
    """The PyTorch port: batch normalisation instead of LRN, 3 x 3 in place of 5 x 5, and a pooling of 2 x 2 at the end."""
    notes = "without auxiliary classifiers; 3 x 3 where the paper has 5 x 5"
    net = Builder("googlenet@torchvision", TORCHVISION, {"data": ("N", 3, 224, 224)}, notes=notes)
    x = net.max_pool(net.conv_bn_relu("data", 64, 7, 2, 3, name="conv1"), 3, 2, ceil=True, name="pool1")
    x = net.conv_bn_relu(net.conv_bn_relu(x, 64, 1, name="conv2"), 192, 3, pad=1, name="conv3")
    x = _modules(net, x, _ported, last=2)
    x = net.dropout(net.flatten(net.global_avg_pool(x, name="pool5")), 0.2, name="drop5")
    net.softmax(net.linear(x, 1000, name="fc"))
    return net.trace()


def _module(net: Builder, x: str, widths: tuple[int, ...], name: str) -> str:
    """1 x 1, 3 x 3, 5 x 5 and pooling side by side."""
    one, reduce3, three, reduce5, five, projection = widths
    a = net.relu(net.conv(x, one, 1, name=f"{name}.1x1"))
    b = net.relu(net.conv(x, reduce3, 1, name=f"{name}.3x3_reduce"))
    b = net.relu(net.conv(b, three, 3, pad=1, name=f"{name}.3x3"))
    c = net.relu(net.conv(x, reduce5, 1, name=f"{name}.5x5_reduce"))
    c = net.relu(net.conv(c, five, 5, pad=2, name=f"{name}.5x5"))
    d = net.max_pool(x, 3, 1, 1, name=f"{name}.pool")
    d = net.relu(net.conv(d, projection, 1, name=f"{name}.projection"))
    return net.concat(a, b, c, d, name=f"{name}.concat")


def _ported(net: Builder, x: str, widths: tuple[int, ...], name: str) -> str:
    """The module of the PyTorch port."""
    one, reduce3, three, reduce5, five, projection = widths
    a = net.conv_bn_relu(x, one, 1, name=f"{name}.1")
    b = net.conv_bn_relu(net.conv_bn_relu(x, reduce3, 1, name=f"{name}.2a"), three, 3, pad=1, name=f"{name}.2b")
    c = net.conv_bn_relu(net.conv_bn_relu(x, reduce5, 1, name=f"{name}.3a"), five, 3, pad=1, name=f"{name}.3b")
    d = net.conv_bn_relu(net.max_pool(x, 3, 1, 1, name=f"{name}.pool"), projection, 1, name=f"{name}.4")
    return net.concat(a, b, c, d, name=f"{name}.concat")


def _modules(net: Builder, x: str, module: Module = _module, last: int = 3) -> str:
    """The nine modules with the poolings before and between them, the `last` of which has this window."""
    x = net.max_pool(x, 3, 2, ceil=True, name="pool2")
    for name, widths in GOOGLENET.items():
        x = module(net, x, widths, f"inception_{name}")
        if name in ("3b", "4e"):
            x = net.max_pool(x, 3 if name == "3b" else last, 2, ceil=True, name=f"pool{name[0]}")
    return x


def inception_bn() -> Trace:
    """Ten modules with batch normalisation, two 3 x 3 in place of each 5 x 5."""
    net = Builder("inception_bn", IOFFE, {"data": ("N", 3, 224, 224)}, notes="convolutions have a bias, as in MXNet")
    _inception_bn(net, (64, 64, 192), INCEPTION_BN, ceil=False)
    return net.trace(aliases=("inception_v2", "bn_inception"))


def inception_bn_caffe() -> Trace:
    """The prototxt that DLInfBench runs as inception-bn: the wider network for 21 thousand classes, here with 1000."""
    net = Builder("inception_bn@caffe", PERTUSA, {"data": ("N", 3, 224, 224)}, notes="the network for 21k classes, 1000 outputs")
    _inception_bn(net, (96, 128, 288), INCEPTION_BN_21K, ceil=True)
    return net.trace()


def _inception_bn(
    net: Builder, stem: tuple[int, int, int], modules: dict[str, tuple[int, int, int, int, int, int]], *, ceil: bool
) -> None:
    """A stem of these widths, the modules and the classifier; `ceil` says whether the stem's poolings round up."""
    conv1, reduce2, conv2 = stem
    x = net.max_pool(net.conv_bn_relu("data", conv1, 7, 2, 3, bias=True, name="conv1"), 3, 2, ceil=ceil, name="pool1")
    x = net.conv_bn_relu(x, reduce2, 1, bias=True, name="conv2.reduce")
    x = net.max_pool(net.conv_bn_relu(x, conv2, 3, pad=1, bias=True, name="conv2"), 3, 2, ceil=ceil, name="pool2")
    for name, widths in modules.items():
        x = _module_bn(net, x, widths, f"inception_{name}", pad=0 if ceil else 1, last=name == "5b")
    net.softmax(net.linear(net.avg_pool(x, 7, 1, name="pool5"), 1000, name="fc"))


def _module_bn(net: Builder, x: str, widths: tuple[int, ...], name: str, *, pad: int, last: bool) -> str:
    """1 x 1, 3 x 3, two 3 x 3 and pooling side by side; a module without 1 x 1 halves the image.

    A halving pooling is padded by `pad`; without, it rounds up, to the same size.
    """
    one, reduce3, three, reduce_double, double, projection = widths
    stride = 1 if one else 2
    a = [net.conv_bn_relu(x, one, 1, bias=True, name=f"{name}.1x1")] if one else []
    b = net.conv_bn_relu(x, reduce3, 1, bias=True, name=f"{name}.3x3_reduce")
    b = net.conv_bn_relu(b, three, 3, stride, 1, bias=True, name=f"{name}.3x3")
    c = net.conv_bn_relu(x, reduce_double, 1, bias=True, name=f"{name}.double_reduce")
    c = net.conv_bn_relu(c, double, 3, pad=1, bias=True, name=f"{name}.double_1")
    c = net.conv_bn_relu(c, double, 3, stride, 1, bias=True, name=f"{name}.double_2")
    pool = net.max_pool if last or not one else net.avg_pool
    d = pool(x, 3, stride, 1, name=f"{name}.pool") if one or pad else net.max_pool(x, 3, 2, ceil=True, name=f"{name}.pool")
    if projection:
        d = net.conv_bn_relu(d, projection, 1, bias=True, name=f"{name}.projection")
    return net.concat(*a, b, c, d, name=f"{name}.concat")
