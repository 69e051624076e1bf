"""Inception networks of the first and second generation: GoogLeNet and Inception-BN."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from archsim.trace.trace import Trace
from archsim.trace.zoo.builder import Builder, images

Conv = Callable[..., str]  # a convolution with what follows it, from a network, a tensor, channels, a window and a stride
Form = tuple[Conv, int, tuple[str, ...]]  # how a GoogLeNet writes its modules: convolutions, window of "5 x 5", names of parts

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
INCEPTION_BN: dict[str, tuple[int, ...]] = {
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
    net = images("googlenet", SZEGEDY, notes="without auxiliary classifiers")
    x = net.relu(net.conv("data", 64, 7, 2, 3, name="conv1"))
    x = net.lrn(net.max_pool(x, 3, 2, ceil=True, name="pool1"), name="norm1")
    x = net.relu(net.conv(x, 64, 1, name="conv2.reduce"))
    x = net.lrn(net.relu(net.conv(x, 192, 3, pad=1, name="conv2")), name="norm2")
    x = net.dropout(net.avg_pool(_modules(net, x), 7, 1, name="pool5"), 0.4, name="drop5")
    return net.classified(x, aliases=("inception_v1", "bvlc_googlenet"))


def googlenet_plain() -> Trace:
    """The same without normalisation, dropout and loss, as convnet-benchmarks runs it in every framework."""
    net = images("googlenet@convnet", CONVNET, notes="without normalisation, dropout and loss")
    x = net.max_pool(net.relu(net.conv("data", 64, 7, 2, 3, name="conv1")), 3, 2, ceil=True, name="pool1")
    x = net.relu(net.conv(x, 64, 1, name="conv2.reduce"))
    x = net.relu(net.conv(x, 192, 3, pad=1, name="conv2"))
    net.relu(net.linear(net.avg_pool(_modules(net, x), 7, 1, name="pool5"), 1000, name="fc"))
    return net.trace()


def googlenet_torchvision() -> Trace:
    """The PyTorch port: batch normalisation instead of LRN, 3 x 3 in place of 5 x 5, and a pooling of 2 x 2 at the end."""
    notes = "without auxiliary classifiers; 3 x 3 where the paper has 5 x 5"
    net = images("googlenet@torchvision", TORCHVISION, notes=notes)
    x = net.max_pool(net.conv_bn_relu("data", 64, 7, 2, 3, name="conv1"), 3, 2, ceil=True, name="pool1")
    x = net.conv_bn_relu(net.conv_bn_relu(x, 64, 1, name="conv2"), 192, 3, pad=1, name="conv3")
    x = _modules(net, x, PORTED, last=2)
    x = net.dropout(net.flatten(net.global_avg_pool(x, name="pool5")), 0.2, name="drop5")
    return net.classified(x)


def _plain(net: Builder, x: str, channels: int, kernel: int, stride: int = 1, *, name: str) -> str:
    return net.relu(net.conv(x, channels, kernel, stride, kernel // 2, name=name))


def _normalised(net: Builder, x: str, channels: int, kernel: int, stride: int = 1, *, name: str) -> str:
    return net.conv_bn_relu(x, channels, kernel, stride, kernel // 2, name=name)


def _biased(net: Builder, x: str, channels: int, kernel: int, stride: int = 1, *, name: str) -> str:
    return net.conv_bn_relu(x, channels, kernel, stride, kernel // 2, bias=True, name=name)


PUBLISHED = (_plain, 5, ("1x1", "3x3_reduce", "3x3", "5x5_reduce", "5x5", "projection"))
PORTED = (_normalised, 3, ("1", "2a", "2b", "3a", "3b", "4"))  # of PyTorch


def _module(net: Builder, x: str, widths: tuple[int, ...], name: str, form: Form) -> str:
    """1 x 1, 3 x 3, 5 x 5 and pooling side by side."""
    conv, five, names = form

    def part(y: str, at: int, kernel: int) -> str:
        return conv(net, y, widths[at], kernel, name=f"{name}.{names[at]}")

    parts = [part(x, 0, 1), part(part(x, 1, 1), 2, 3), part(part(x, 3, 1), 4, five)]
    pooled = net.max_pool(x, 3, 1, 1, name=f"{name}.pool")
    return net.concat(*parts, part(pooled, 5, 1), name=f"{name}.concat")


def _modules(net: Builder, x: str, form: Form = PUBLISHED, last: int = 3) -> str:
    """The nine modules with the poolings before and between them, the `last` of which has this window."""
    x = net.max_pool(x, 3, 2, ceil=True, name="pool2")
    for name, widths in GOOGLENET.items():
        x = _module(net, x, widths, f"inception_{name}", form)
        if name in ("3b", "4e"):
            x = net.max_pool(x, 3 if name == "3b" else last, 2, ceil=True, name=f"pool{name[0]}")
    return x


def inception_bn() -> Trace:
    """Ten modules with batch normalisation, two 3 x 3 in place of each 5 x 5."""
    net = images("inception_bn", IOFFE, notes="convolutions have a bias, as in MXNet")
    return _inception_bn(net, (64, 64, 192), INCEPTION_BN, ceil=False, aliases=("inception_v2", "bn_inception"))


def inception_bn_caffe() -> Trace:
    """The prototxt that DLInfBench runs as inception-bn: the wider network for 21 thousand classes, here with 1000."""
    net = images("inception_bn@caffe", PERTUSA, notes="the network for 21k classes, 1000 outputs")
    return _inception_bn(net, (96, 128, 288), INCEPTION_BN_21K, ceil=True)


def _inception_bn(
    net: Builder, stem: tuple[int, int, int], modules: dict[str, tuple[int, ...]], *, ceil: bool, aliases: Sequence[str] = ()
) -> Trace:
    """A stem of these widths, the modules and the classifier; `ceil` says whether the stem's poolings round up."""
    conv1, reduce2, conv2 = stem
    x = net.max_pool(net.conv_bn_relu("data", conv1, 7, 2, 3, bias=True, name="conv1"), 3, 2, ceil=ceil, name="pool1")
    x = net.conv_bn_relu(x, reduce2, 1, bias=True, name="conv2.reduce")
    x = net.max_pool(net.conv_bn_relu(x, conv2, 3, pad=1, bias=True, name="conv2"), 3, 2, ceil=ceil, name="pool2")
    for name, widths in modules.items():
        pool = "max" if name == "5b" else "mean"
        x = halving_module(net, x, widths, f"inception_{name}", _biased, pool=pool, pad=0 if ceil else 1)
    return net.classified(net.avg_pool(x, 7, 1, name="pool5"), aliases=aliases)


def halving_module(
    net: Builder, x: str, widths: tuple[int, ...], name: str, conv: Conv, *, pool: str = "max", pad: int = 1
) -> str:
    """1 x 1, 3 x 3, two 3 x 3 and pooling side by side; a module without 1 x 1 halves the image.

    A halving pooling is a maximum, padded by `pad`; without, it rounds up, to the same size.
    """
    one, reduce3, three, reduce_double, double, projection = widths
    stride = 1 if one else 2
    parts = [conv(net, x, one, 1, name=f"{name}.1x1")] if one else []
    b = conv(net, x, reduce3, 1, name=f"{name}.3x3_reduce")
    parts.append(conv(net, b, three, 3, stride, name=f"{name}.3x3"))
    c = conv(net, x, reduce_double, 1, name=f"{name}.double_reduce")
    c = conv(net, c, double, 3, name=f"{name}.double_1")
    parts.append(conv(net, c, double, 3, stride, name=f"{name}.double_2"))
    if one and pool == "mean":
        d = net.avg_pool(x, 3, stride, 1, name=f"{name}.pool")
    else:
        d = net.max_pool(x, 3, stride, 1 if one else pad, ceil=not (one or pad), name=f"{name}.pool")
    if projection:
        d = conv(net, d, projection, 1, name=f"{name}.projection")
    return net.concat(*parts, d, name=f"{name}.concat")
