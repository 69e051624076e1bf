"""The device of a request, the CPU that dispatches for it, how a stack multiplies there, and what cannot run."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress

from archsim.base.errors import ArchsimError, ArgumentError, InputError, Unsupported
from archsim.calibration.nearness import Platform
from archsim.detect import catalog as devices
from archsim.device.catalog import architectures, is_shipped
from archsim.device.cpu_core import FORMS
from archsim.device.device import WIDENED, Cpu, Device, Gpu, Tpu
from archsim.device.silicon import silicon
from archsim.device.spec import Spec, unit_of
from archsim.device.variant import called, changes, first_of, of_one_core
from archsim.stack import catalog as stacks
from archsim.stack.stack import Stack
from archsim.trace.trace import BoundTrace

SET = "what-if"  # the file of a value that --set gives
MAKERS = ("NVIDIA", "AMD", "Apple")  # whose libraries have kernels for their own cards alone
BETWEEN_ACTIVATIONS = ("matmul", "attention", "latent_attention")  # no operand is weights
NARROW = ("int8", "fp16", "bf16")


def find_device(hw: str, settings: Mapping[str, str] | None, scales: Mapping[str, float] | None = None, threads: int = 0) -> Spec:
    """The spec of a device, or of the cores of it that `threads` occupy, with the user's settings and factors applied."""
    spec = devices.find(hw, threads)
    return spec.with_settings(settings or {}, scales or {}) if settings or scales else spec


def unneeded_keys(
    settings: Mapping[str, str], scales: Mapping[str, float], same: Callable[[Mapping[str, str], Mapping[str, float]], bool]
) -> list[str]:
    """The keys that were set or scaled although outputs are the `same` with the other settings and factors alone."""
    found = []
    for key in dict.fromkeys((*settings, *scales)):
        others = {name: value for name, value in settings.items() if name != key}
        with suppress(ArchsimError):  # without this key the others make no device, so it has an effect
            found += [key] if same(others, {name: value for name, value in scales.items() if name != key}) else []
    return found


def platform_of(spec: Spec, stack: str) -> Platform:
    """Where software runs, as far as the nearness of measured rows goes.

    Nobody has measured a device that is changed: with other numbers of its SM or core it is one of an architecture of its own.

    >>> from archsim.device.catalog import find
    >>> card = find("gtx_1080")
    >>> [platform_of(card.with_settings({key: "8"}), "ideal").architecture for key in ("sm.count", "sm.schedulers")]
    ['pascal', 'a changed pascal']
    """
    own = [key for key in changes(spec) if key in spec.entries and spec.entries[key].kind in ("set", "varied")
           and unit_of(spec.kind, key).product]  # fmt: skip
    architecture = spec.identity.kernels_of
    return Platform(architecture=f"a changed {architecture}" if any(map(of_one_core, own)) else architecture,
                    device=called(spec) if own else spec.identity.id, stack=stack)  # fmt: skip


def host_of(spec: Spec, name: str | None = None) -> Spec:
    """The CPU that dispatches ops: the one called `name`, else the spec's `launch.host_cpu`; a CPU dispatches for itself.

    Raises UnknownName for another name, ArgumentError for a device that is no CPU, and for another CPU than a CPU itself.
    """
    device = spec.device
    if isinstance(device, Cpu):
        if name is not None:
            raise ArgumentError(f"host_cpu {name}: {spec.identity.id} is a CPU, which dispatches for itself")
        return spec
    host = devices.find(device.launch.host_cpu if name is None else name)
    if not isinstance(host.device, Cpu):
        raise ArgumentError(f"host_cpu {host.identity.id}: is no CPU")
    return host


def check_names(spec: Spec, stack: str | None, host_cpu: str | None) -> None:
    """Raises InputError, by file and key, for a name in the words of a user's spec that leads nowhere.

    `default_stack` and `launch.host_cpu` count where no `stack` and no `host_cpu` was asked for. Shipped specs are tested.
    """
    if is_shipped(spec):
        return
    said, written = {}, spec.device.memory.type
    if spec.kind != "tpu" and not silicon().family(written):  # no model reads that of a TPU
        said["memory.type"] = f"{written!r} is no family of memory that is known: {', '.join(silicon().memory)}"
    host = "" if host_cpu is not None or spec.kind == "cpu" else str(spec.entries["launch.host_cpu"].value)
    names: tuple[tuple[str, Callable[[str], Spec | Stack], str, tuple[str, ...]], ...] = (
        ("launch.host_cpu", devices.find, host, ("cpu",)), ("faster", devices.find, spec.identity.faster, ("cpu",)),
        ("default_stack", stacks.find, spec.identity.default_stack if stack is None else "", ("any", spec.kind)),
    )  # fmt: skip
    for key, find, name, kinds in names:
        try:
            found = find(name) if name else None
        except ArchsimError as error:
            said[key] = str(error)
            continue
        if found is not None and found.kind not in kinds:
            said[key] = (f"{found.identity.id} is no CPU" if isinstance(found, Spec) else
                         f"stack {found.id} is for a {found.kind}, not a {spec.kind}")  # fmt: skip
    if said:
        given = all(key in spec.entries and spec.entries[key].file == SET for key in said)
        raise InputError("--set" if given else spec.path, [f"{key}: {problem}" for key, problem in said.items()])


def architecture_notes(spec: Spec) -> list[str]:
    """What is said of an architecture that the model does not know."""
    identity = spec.identity
    if not identity.like:
        return []
    if spec.kind == "cpu":
        return [f"architecture {identity.architecture}: no known one; the model of a CPU reads only the values of its spec"]
    return [f"architecture {identity.architecture}: not one of {', '.join(architectures(spec.kind))}; libraries are taken to run "
            f"their kernels for the nearest, {identity.like}"]


def check_vendor(spec: Spec, stack: Stack) -> None:
    """Refuse the libraries of one maker of GPUs on a card of another, for which they have no kernel; a new maker may take any."""
    if spec.kind == "gpu" and stack.vendor and spec.identity.vendor in MAKERS and spec.identity.vendor != stack.vendor:
        own = spec.identity.default_stack
        raise Unsupported(f"stack {stack.id} is for cards of {stack.vendor}, not of {spec.identity.vendor}; "
                          f"--stack {own} is that of {spec.identity.id}")  # fmt: skip


def check_tpu(device: Tpu, task: str, trace: BoundTrace, power_limit: float | None) -> None:
    """Refuse what is not modelled of a request on a TPU.

    Raises Unsupported for a power limit, for training, and for a product of two activations on a TPU that has weights from its
    memory alone (`fifo`).
    """
    if power_limit is not None:
        raise Unsupported("power limits are not modelled of a TPU: nobody has published how its clock or its voltage follow one")
    name = device.identity.id
    if task != "inference":
        able = "runs inference alone" if device.fifo is not None else "trains, but training is not modelled: no row is measured"
        raise Unsupported(f"task {task}: {name} {able}; --task inference is modelled")
    held = next((op for op in trace.ops if op.kind.op in BETWEEN_ACTIVATIONS), None)
    if device.fifo is not None and held is not None:
        raise Unsupported(f"network {trace.name}: op {held.name} ({held.kind.op}) multiplies two activations, and {name} takes "
                          "one factor of each product from its weight memory, which programs do not write; "
                          "tpu_v2 and later multiply them")  # fmt: skip


def arithmetic(stack: Stack, device: Device, precision: str) -> str:
    """The pipe that multiplies operands of `precision`, by which `device.pipe` knows its rate.

    GPU: `half` where the stack computes fp16 in fp16 and the GPU can; otherwise that of the precision itself. CPU: the fastest
    form of instructions for narrow operands that the core has and the stack has kernels for; without one `widened` for 16 bit.
    TPU: factors of fp32 rounded to bf16, where software may do so.

    Raises Unsupported for int8 on a CPU without such a form.

    >>> from archsim.device.catalog import find
    >>> arithmetic(stacks.find("jax-xla-tpu"), find("tpu_v3").device, "fp32")
    'bf16'
    """
    if isinstance(device, Cpu):
        return _on_cpu(stack, device, precision) if precision in NARROW else precision
    if isinstance(device, Tpu):
        return "bf16" if precision == "fp32" and device.rate.fp32 is None and not stack.lossless else precision
    if precision == "fp16" and stack.fp16_arithmetic == "fp16" and device.rate.fp16 is not None:
        return "half"
    return precision


def _on_cpu(stack: Stack, device: Cpu, precision: str) -> str:
    able, kernels = device.forms(precision), [form for form in stack.narrow_kernels if FORMS[form].precision == precision]
    both = [form for form in kernels if form in able]
    if both:
        best = max(both, key=lambda form: first_of(device.pipe(form)))
        widened = first_of(device.pipe(WIDENED))
        return best if precision == "int8" or first_of(device.pipe(best)) >= widened else WIDENED
    if precision != "int8":
        return WIDENED
    if not kernels:
        raise Unsupported(f"precision int8: stack {stack.id} has no kernels of int8 for CPUs; "
                          "onnxruntime-cpu and pytorch-cpu have")  # fmt: skip
    raise Unsupported(f"precision int8: stack {stack.id} has kernels for {', '.join(kernels)}, and {device.identity.id} has "
                      f"{'instructions for ' + ', '.join(able) if able else 'none of these instructions'}")  # fmt: skip


def on_tensor_cores(device: Device, precision: str) -> bool:
    """Whether products of this precision run on tensor cores."""
    return isinstance(device, Gpu) and device.has_tensor(precision)


def in_halves(stack: Stack, device: Device) -> bool:
    """Whether a stack computes fp16 on a CPU in lanes of 16 bit, so that values between products of int8 are fp16.

    >>> from archsim.device.catalog import find
    >>> from archsim.stack import catalog
    >>> [in_halves(catalog.find("ncnn-cpu"), find(name).device) for name in ("raspberry_pi_4", "raspberry_pi_5")]
    [False, True]
    """
    return isinstance(device, Cpu) and "fp16_lanes" in stack.narrow_kernels and "fp16_lanes" in device.forms("fp16")


def precision_notes(device: Gpu | Cpu | Tpu, precision: str, stack: Stack) -> list[str]:
    """What is said of the arithmetic of a precision."""
    if isinstance(device, Cpu) and precision not in NARROW:
        return []
    form = arithmetic(stack, device, precision)
    if isinstance(device, Tpu) and form != precision:
        return [f"{precision} is storage and sums: {stack.id} rounds the factors of products to bf16 unless told otherwise"]
    if isinstance(device, Gpu) and precision in ("fp16", "bf16") and float(device.pipe(precision)) <= float(device.rate.fp32):
        return [f"fp16 is multiplied as such by {stack.id}: {device.pipe('half'):g} per clock, fp32 {device.rate.fp32:g}"
                if form == "half" else f"{precision} is storage only: {device.identity.id} multiplies it at the fp32 rate"]
    if isinstance(device, Cpu):
        return [f"{precision} is storage only: values are widened to fp32 before they are multiplied" if form == WIDENED else
                f"{precision}: products by {form}, {FORMS[form].doc}; tensors are taken to be {precision} throughout"]
    return []
