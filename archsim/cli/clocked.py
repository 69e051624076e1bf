"""Simulations clock by clock and address by address: an SM, a core, kernels, caches."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from archsim.base.arguments import rows_called
from archsim.base.errors import UnknownName
from archsim.base.writer import TOML, OutputFile
from archsim.cli.output import (
    FORCE,
    AnswerForm,
    answer_forms,
    files_in,
    output,
    write,
    write_json,
)
from archsim.cli.terminal import Progress, show_text
from archsim.cli.vocabulary import FILE, HW, PLAIN, choices, flag, options, own, refuse_others, some_options

if TYPE_CHECKING:
    from archsim.cycle.core.operation import CoreLoop
    from archsim.device.spec import Spec


def _device(name: str, words: dict[str, Any]) -> Spec:
    from archsim.estimation.hardware import find_device

    return find_device(name, words.get("settings"), words.get("scales"))


# ---------------------------------------------------------------------------------------------------------------------- sm


OF_CURVE = frozenset({"hw", "curve", "clock", "memory_clock", "settings", "scales", "as_json", "html", "force"})
INSTRUCTIONS = 40_000  # instructions that a page or a timeline shows at most


@click.command("sm")
@HW
@own("--kernel", "'gemm 128x128x8 threads=256', 'attention 128x64', 'norm row=4096' or 'stream read=1 write=1'.", metavar="WORDS")
@own("--curve", "Instead, 'warps', 'bytes-in-flight bytes=4', 'occupancy threads=256 shared=0' or 'strides bytes=4'.",
     metavar="WORDS")
@own("--k depth", "Depth of a product, keys of an attention.", click.IntRange(1, 1 << 20), 512)
@own("--waves", "Waves of CTAs that the SM runs.", click.IntRange(1, 64), 2)
@own("--scheduler", "Greedy, then the warp that waits longest; or loose round robin.", ("gto", "lrr"), "gto")
@own("--precision", "Of a product.", "precision", "fp32")
@PLAIN
@options(rows_called("clock", "memory_clock", "settings", "scales"))
@answer_forms(all="Also print pipes, bandwidth and energy by component; of a curve all points.", page=True,
              timeline="Also write the first instructions for ui.perfetto.dev.")
def sm_command(
    hw: str, kernel: str | None, curve: str | None, depth: int, waves: int, scheduler: str, precision: str, plain: bool,
    form: AnswerForm, **given: Any,
) -> None:  # fmt: skip
    """Run a kernel on one SM, clock by clock: what it issues, what stalls its warps, what it draws from each level of memory.

    A gemm is a tile of rows x columns x depth: threads, registers, stages, bytes of a value, m and n (of the whole product, whose
    tiles run through the caches) or l2 (share of loads that hit it, else all).

    An attention is a tile of queries x keys: d (features), threads, registers, bytes, l2, overlapped (1: groups of warps take
    turns).

    A norm sums up rows before it writes them: row (values), piece (of these side by side), passes, arrays, bytes of a value, load
    (of a thread at once), flop, special, registers, l1 and l2 (hits of the passes after the first, else as the caches keep the
    rows).

    A stream reads and writes tensors: read, write, bytes of a load, loads in flight, flop, special, threads, registers, stride
    (elements from thread to thread), set (bytes that all SMs read in order again and again, of which the caches keep what they
    can) or l1 and l2 (shares of loads that hit them).

    Curves: multiply-adds by warps; bandwidth of a copy by bytes in flight; CTAs that an SM holds, by registers of a thread and by
    threads (or of so many threads by shared memory), with what limits them; sectors, lines and turns of the L1 by stride.

    \b
    Examples:
      archsim simulate sm --hw gtx_1080 --kernel "gemm 128x128x8 threads=256" --k 512
      archsim simulate sm --hw gtx_1080 --kernel "stream stride=2 set=256KiB" --set l2.size=128KiB
      archsim simulate sm --hw gtx_1080 --curve warps
      archsim simulate sm --hw gtx_1080 --curve "occupancy threads=256"
      archsim simulate sm --hw a100_sxm4_40gb --kernel "gemm 128x128x32 threads=256 bytes=2 stages=4" --precision fp16
      archsim simulate sm --hw a100_sxm4_40gb --kernel "attention 128x64 d=128" --k 2048 --precision fp16
      archsim simulate sm --hw gtx_1080 --kernel "norm row=100352 piece=3136"
      archsim simulate sm --hw gtx_1080 --kernel "stream read=1 write=1 bytes=16" --set sm.alu_latency=12clk
    """
    from archsim.answers.sm import recording_of
    from archsim.estimation.request import precision_of
    from archsim.simulate.sm import simulate_sm

    if curve is not None and kernel is None:
        return _draw(hw, curve, form, given)
    if kernel is None or curve is not None:
        raise click.UsageError("--kernel names a kernel, --curve what to draw; give one of them")
    words = choices(given)
    spec = _device(hw, words)
    clock = words.get("clock") or float(spec.device.usual_clock)
    wanted = INSTRUCTIONS if form.html or form.timeline else 0
    found = simulate_sm(spec, kernel, clock=clock, depth=depth, waves=waves, precision=precision_of(precision),
                        scheduler=scheduler, record=wanted, fast=False if plain else None,
                        memory_clock=words.get("memory_clock"))  # fmt: skip
    if form.timeline:
        form.draw(recording_of(found), f"one SM of {found.hardware}: {kernel}")
    form.show(found)


def _draw(hw: str, curve: str, form: AnswerForm, given: dict[str, Any], of_core: bool = False) -> None:
    """A curve of one SM, or of one core."""
    from archsim.simulate.curves import core_curve, sm_curve

    refuse_others("--curve", OF_CURVE)
    words = choices(given)
    spec, clock = _device(hw, words), words.get("clock")
    form.show(core_curve(spec, curve, clock) if of_core else sm_curve(spec, curve, clock, words.get("memory_clock")))


# -------------------------------------------------------------------------------------------------------------------- core


OPERATIONS = 400  # micro-operations that are kept for a picture


@click.command("core")
@HW
@own("--kernel", "'gemm 6x16 avx2 unroll=4', 'triad level=3', 'dot accumulators=4', 'exp' ...", metavar="WORDS")
@own("--loop path", "Loops as JSON: all of them, or the one of --name.", FILE)
@own("--name", "One loop of the file.", metavar="LOOP")
@own("--curve", "Instead, 'chains level=4': loads of a clock by independent chains of pointers.", metavar="WORDS")
@own("--trips", "Iterations to simulate.", click.IntRange(2, 1 << 20), show_default="until it is steady")
@PLAIN
@options(rows_called("clock", "settings", "scales"))
@answer_forms("Print one CSV row per loop.", page=True)
def core_command(
    hw: str, kernel: str | None, path: str | None, name: str | None, curve: str | None, trips: int | None, plain: bool,
    form: AnswerForm, **given: Any,
) -> None:  # fmt: skip
    """Run a loop on one core of a CPU, clock by clock: cycles of an iteration, ports, what binds, why rename waits.

    A gemm is a block of rows x columns of a product: unroll, broadcast (register, embedded, element), a and b (levels of its
    panels), depth, registers that the program can name, form (how int8, bf16 or fp16 are multiplied).

    copy, set, read, scale, scale and shift, relu, add, triad, divide and root take streams: unroll, level (1 for the L1 to 4
    for memory). dot: accumulators, level. exp: degree, unroll, level. max pool, row sum, sigmoid, tanh, softmax, local
    normalisation, moments: level. chase: level, loads, chains (side by side).

    Loops over single values, as compilers leave them: scalar step, scalar im2col: level, trips of the innermost loop; scalar
    max pool, scalar average pool: window (values of it), trips, level; scalar exp, scalar pow (calls of the C library),
    scalar gather, scalar divide: level.

    An instruction set (sse, avx, avx2, avx512, amx, neon, sve) and a precision (fp32, fp64; of a gemm fp16, bf16 and int8, too)
    may follow; else it is the widest of the core, and fp32.

    \b
    Examples:
      archsim simulate core --hw i7_6700k --kernel "gemm 6x16 avx2"
      archsim simulate core --hw epyc_9655 --kernel "gemm 14x32 avx512 unroll=2 fp32" --html block.html
      archsim simulate core --hw i7_6700k --kernel "triad level=4" --clock 4.2GHz
      archsim simulate core --hw i7_6700k --curve "chains level=3"
      archsim simulate core --hw i7_6700k --kernel "gemm 6x16 avx2" --set port.fma="P0 P1 P5"
      archsim simulate core --hw epyc_9655 --loop cpu_loops.json --name exp_poly6_avx2_u2
      archsim simulate core --hw epyc_9655 --loop cpu_loops.json --csv
    """
    from archsim.simulate.core import kernel_loop, simulate_all

    if [kernel, path, curve].count(None) != 2:
        raise click.UsageError("--kernel names one loop, --loop a file of loops, --curve what to draw; give one of them")
    if name is not None and path is None:
        raise click.UsageError("--name is of a loop in the file of --loop")
    if curve is not None:
        return _draw(hw, curve, form, given, of_core=True)
    words = choices(given)
    spec = _device(hw, words)
    loops = [kernel_loop(spec, kernel)] if kernel is not None else _loops(str(path), name)
    form.show(simulate_all(spec, loops, clock=words.get("clock"), trips=trips, trace=OPERATIONS, fast=False if plain else None))


def _loops(path: str, name: str | None) -> list[CoreLoop]:
    """The loops of a file, or those of a name."""
    from archsim.validation.loops import read_loops

    loops = list(read_loops(path))
    if name is None:
        return loops
    found = [loop for loop in loops if loop.name == name]
    if not found:
        raise UnknownName("loop", name, [loop.name for loop in loops], hint=f"of {path}")
    return found


# ----------------------------------------------------------------------------------------------------------------- kernels


MANY = 2000


@click.command("kernels")
@own("--kernels", "How many, 25 on each machine.", click.IntRange(25, 100_000), MANY)
@own("--seed", "Of the choice of kernels and machines.", click.IntRange(0), 11)
@own("--check folder", "Also write surrogate.json into this folder, with published times beside both.", metavar="FOLDER")
@output("--derive", TOML, "Instead, write the clocks of scalar loops on each core, simulated, to this file.")
@FORCE
def kernels_command(kernels: int, seed: int, folder: str | None, derive: OutputFile | None) -> None:
    """Random kernels on random machines, by the closed form and by the cycle model.

    One half of the machines are GPUs as shipped, the other half have two of their keys scaled by up to 2.

    \b
    Examples:
      archsim simulate kernels --kernels 100
      archsim simulate kernels --check reports/validation
      archsim simulate kernels --derive derived.toml
    """
    if derive is not None:
        refuse_others("--derive", ("derive", "force"))
        from archsim.calibration.derived import dump_derived
        from archsim.simulate.core import loops_of_cores

        write(derive, dump_derived(loops_of_cores()))
        return
    from archsim.answers.scoreboard import KERNELS, kernels_record, kernels_sections
    from archsim.validation.random_kernels import compare, judged

    files = [] if folder is None else files_in(folder, {"surrogate": KERNELS})
    with Progress() as tell:
        rows = compare(kernels, seed, tell)
        tell("published times")
        found = kernels_record(rows, judged() if files else (), seed)
    for file in files:
        write_json(file, found)
    show_text(kernels_sections(found))


# ------------------------------------------------------------------------------------------------------------------- cache


OF_CHECK = frozenset({"check", "plain"})
OF_TRACE = frozenset({"hw", "trace", "policy", "instructions", "curve", "plain", "settings", "scales", "as_json", "as_csv",
                      "html", "timed", "sets", "force"})  # fmt: skip
POLICIES = ("lru", "fifo", "random", "tree-plru", "bit-plru", "srrip")


@click.command("cache")
@own("--hw", "A shipped device, an alias, or the path of a spec file.", "device")
@own("--trace", "Addresses of a program: lackey or din, plain or .gz.", FILE)
@own("--net", "A shipped network, or a path: trace file, ONNX, prototxt, config.json, Chakra.", "network")
@own("--layer", "The op of --net whose longest kernel is simulated.", metavar="NAME")
@own("--policy", "Replacement policy of every level.", POLICIES, "lru")
@flag("--instructions", "Include instruction fetches, as a second core.")
@flag("--time timed", "With --trace: how long a core takes for the program, at least and at most.")
@flag("--sets", "With --trace: which line lies in which set and way of the L1, during the first 256 accesses.")
@own("--curve/--no-curve", "Misses by cache size and by cause, from stack distances.", usual=True)
@flag("--plain", "Do not use numba (extra fast), even if it is installed.")
@some_options("traffic", "inputs", "cold", "search")
@answer_forms("Print one CSV row per level.", all="Also print misses by cache size.", page=True)
@own("--check", "Instead, compare the traffic model with simulated layers, and write traffic.json.", metavar="FOLDER")
def cache_command(
    hw: str | None, trace: str | None, net: str | None, layer: str | None, policy: str, instructions: bool, timed: bool,
    sets: bool, curve: bool, plain: bool, form: AnswerForm, check: str | None, **given: Any,
) -> None:  # fmt: skip
    """Simulate a device's caches exactly, on the addresses of a program or of one layer of a network.

    Record a program with `valgrind --tool=lackey --trace-mem=yes --log-file=prog.lackey ./prog`. The addresses of a layer are
    those of the kernel that the model chooses: its tiles or CTAs on a GPU, its loops on one core of a CPU.

    \b
    Examples:
      archsim cache --hw i7_6700k --trace prog.lackey.gz
      archsim cache --hw i7_6700k --trace prog.lackey.gz --time
      archsim cache --hw i7_6700k --trace rows.din --sets --html sets.html
      archsim cache --hw gtx_1080 --net alexnet --layer conv2 --batch 16 --html caches.html
      archsim cache --check reports/validation
    """
    from archsim.estimation.request import make_request
    from archsim.explain.caches import of_layer, of_trace

    arguments, fast = choices(given), False if plain else None
    if check is not None:
        refuse_others("--check", OF_CHECK)
        _check(check, fast)
        return
    if hw is None or (trace is None) == (net is None):
        raise click.UsageError("name a device with --hw, and either --trace FILE or --net NETWORK --layer NAME")
    if (net is None) != (layer is None):
        raise click.UsageError("--net and --layer belong together")
    for given_, option in ((instructions, "--instructions"), (timed, "--time"), (sets, "--sets")):
        if given_ and trace is None:
            raise click.UsageError(f"{option} belongs to --trace")
    if trace is not None:
        refuse_others("--trace", OF_TRACE)
    with Progress() as tell:
        def told(share: float) -> None:
            tell(f"{100 * share:.0f} of 100 % simulated")

        if trace is not None:
            spec = _device(hw, arguments)
            answer = of_trace(spec, trace, policy=policy, instructions=instructions, curve=curve, timed=timed, sets=sets,
                              fast=fast, tell=told)  # fmt: skip
        else:
            assert net is not None
            assert layer is not None
            request = make_request(net, hw, **arguments)
            answer = of_layer(request, layer, policy=policy, curve=curve, fast=fast, tell=told)
    form.show(answer)


def _check(folder: str, fast: bool | None) -> None:
    """The closed forms of the traffic model beside the simulation, as a file."""
    from archsim.answers.scoreboard import TRAFFIC, traffic_record, traffic_sections
    from archsim.validation.traffic import by_role, compare, kernel_distances, runs

    (file,) = files_in(folder, {"traffic": TRAFFIC})
    with Progress() as tell:
        found = traffic_record(compare(fast, tell), by_role(kernel_distances(runs(), tell)))
    write_json(file, found)
    show_text(traffic_sections(found))
