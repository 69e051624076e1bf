"""Loops of the probe, what is made of their times, and the processes that run them. No test asserts a time."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from archsim.detect import loops
from archsim.detect.benchmarks import IN_FLIGHT, Bench, whole
from archsim.detect.detect import detect
from archsim.detect.loops import CHAIN, CHAINS, CLOCK_LOOP, LINE_B, ByteLoops, Loop, fma_loop
from archsim.detect.probe import Probe, Subject, _Session, jobs_of
from archsim.detect.sampling import PAGE_B, Disturbed, Finding, Ruler, Stretch, Turn, best_rate, overlap, settled
from tests.each import each

SUBJECT = Subject(threads=2, simd=256, fused=True, caches_B=(32 << 10, 1 << 20, 32 << 20), memory_B=1 << 34)


class Core:
    """A core whose time goes on by what runs: `clock_GHz` may be a function of the time [ns]."""

    def __init__(self, clock_GHz: Callable[[float], float]) -> None:
        self.now, self._clock_GHz = 0.0, clock_GHz

    def run(self, clocks: float) -> None:
        self.now += 300 + clocks / self._clock_GHz(self.now)  # a call takes 300 ns

    def ruler(self) -> Ruler:
        return Ruler(Loop(run=lambda turns: self.run(100 * turns), per_turn=100), lambda: int(self.now))


# ---------------------------------------------------------------------------------------------- samples


def test_clocks_are_those_of_the_chain_whatever_the_clock() -> None:
    for clock in (0.8, 4.2):
        core = Core(lambda now, clock=clock: clock)
        ruler = core.ruler()
        assert ruler.clock_Hz() == pytest.approx(clock * 1e9, rel=0.01)
        assert ruler.clocks(lambda core=core: core.run(4e6), 1e6).best == pytest.approx(4, rel=0.01)
        assert ruler.clocks(lambda core=core: core.run(4e4), 1e4).best == pytest.approx(4, rel=0.005)  # the call is not counted


def test_a_neighbour_that_slows_most_samples_does_not_move_the_best() -> None:
    core, calls = Core(lambda now: 4.0), iter(range(10**6))
    found = core.ruler().clocks(lambda: core.run(4e6 if next(calls) % 2 else 6e6), 1e6)
    assert found.best == pytest.approx(4, rel=0.01)
    with pytest.raises(Disturbed, match="samples disagree"):
        core.ruler().clocks(lambda: core.run(4e6 * (1 + next(calls) % 7 / 10)), 1e6)


def test_a_clock_that_never_rests_gives_no_value() -> None:
    core = Core(lambda now: 3.0 + now % 1e6 / 1e6)
    with pytest.raises(Disturbed, match="changed the clock in all but"):
        core.ruler().clocks(lambda: core.run(4e6), 1e6)


def test_samples_are_as_long_as_asked() -> None:
    core = Core(lambda now: 2.0)
    turns = core.ruler().turns(lambda n: core.run(50 * n), 1, 1e-3)
    assert turns == pytest.approx(1e-3 * 2e9 / 50, rel=0.05)


def test_threads_that_shared_a_core_do_not_count() -> None:
    def run(_: Sequence[object], __: Sequence[int]) -> list[Turn]:
        sample = next(samples)
        if sample % 4:  # one after the other, each as fast as alone
            return [Turn(spent=0.01, begin=0.0, end=0.01), Turn(spent=0.01, begin=0.01, end=0.02)]
        return [Turn(spent=0.018, begin=0.0, end=0.0181), Turn(spent=0.02, begin=0.0001, end=0.0202)]

    samples = iter(range(10**6))
    assert best_rate([lambda: None] * 2, 100.0, run=run).best == pytest.approx(100 / 0.02)
    assert best_rate([lambda: None] * 2, 100.0, run=run, alone=False).best == pytest.approx(100 / 0.01)
    serial = [Turn(spent=0.01, begin=0.0, end=0.01), Turn(spent=0.01, begin=0.01, end=0.02)]
    assert not overlap(serial)
    with pytest.raises(Disturbed, match="other work had a core"):
        best_rate([lambda: None] * 2, 100.0, run=lambda work, cpus: serial)


def test_few_samples_are_no_value() -> None:
    with pytest.raises(Disturbed):
        settled([1.0, 1.0, 1.0], 0.1)


# ---------------------------------------------------------------------------------------------- loops


def assembly(text: str, triple: str, cpu: str, features: str = "") -> list[str]:
    """The instructions that LLVM writes for a processor."""
    llvm = pytest.importorskip("llvmlite.binding")
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    machine = llvm.Target.from_triple(triple).create_target_machine(cpu=cpu, features=features, opt=2)
    lines = machine.emit_assembly(llvm.parse_assembly(text)).splitlines()
    return [line.split()[0] for line in lines if line.startswith("\t") and not line.startswith("\t.")]


X86, ARM = ("x86_64-unknown-linux-gnu", "skylake-avx512", "+avx512f"), ("aarch64-unknown-linux-gnu", "neoverse-n1")


def test_each_operation_of_a_loop_is_one_instruction() -> None:
    pytest.importorskip("llvmlite.binding")
    chain = loops.chain_text()
    for target, exclusive in ((X86, "xorq"), (ARM, "eor")):
        found = assembly(chain, *target)
        assert found.count(exclusive) == loops.LINKS / 2
        assert loops.LINKS / 2 <= sum(word in ("add", "addq", "leaq") for word in found) <= loops.LINKS / 2 + 1
    for bits, target, word in ((512, X86, "vfmadd"), (256, X86, "vfmadd"), (128, ARM, "fmla")):
        for chains in (1, CHAINS):
            found = assembly(loops.fma_text(bits, chains, fused=True), *target)
            assert sum(name.startswith(word) for name in found) == loops.UNROLLED * chains, (bits, target)
    old = assembly(loops.fma_text(256, 1, fused=False), X86[0], "sandybridge", "+avx")
    assert (old.count("vmulps"), old.count("vaddps")) == (loops.UNROLLED, loops.UNROLLED)
    assert sum(name in ("vmovups", "vmovaps") for name in assembly(loops.read_text(512), *X86)) == 16


def test_vectors_of_unknown_width_are_one_register_of_the_width_that_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loops, "_scalable", lambda: True)
    found = assembly(loops.fma_text(256, CHAINS, fused=True), ARM[0], "neoverse-v1")
    assert sum(word in ("fmla", "fmad") for word in found) == loops.UNROLLED * CHAINS


def test_older_versions_of_llvm_have_another_word_for_pointers(monkeypatch: pytest.MonkeyPatch) -> None:
    llvm = pytest.importorskip("llvmlite.binding")
    monkeypatch.setattr(llvm, "llvm_version_info", (15, 0, 7))
    assert "i64*" in loops.chase_text(2)
    assert " ptr" not in loops.barrier_text() + loops.read_text(256) + loops.fma_text(256, 1, fused=True)


@pytest.mark.skipif(sys.platform != "linux", reason="the probe runs on Linux")
@pytest.mark.parametrize("name", ["llvm", "bytes"])
def test_a_chase_visits_every_line_once(name: str) -> None:
    import numpy as np

    if name == "llvm":
        pytest.importorskip("llvmlite.binding")
    try:
        loop = Bench(name).loops.chase(1)
    except OSError as error:
        pytest.skip(str(error))
    assert loop is not None
    memory = Stretch(1 << 21)
    order = memory.chain(1 << 14)
    assert sorted(order) == [memory.address + i * LINE_B for i in range(len(order))]
    place = np.array(order[:1], np.uint64)
    for steps in (1, 5, len(order) - 6):
        loop.run(place.ctypes.data, steps)
        assert place[0] in order
    assert place[0] == order[0]


def test_a_chain_of_pages_visits_each_once() -> None:
    stretch = Stretch(1 << 21, large=False)
    order = stretch.pages_chain(300)
    assert sorted((int(address) - stretch.address) // PAGE_B for address in order) == list(range(300))
    offsets = {int(address) % PAGE_B for address in order}
    assert len(offsets) > 40  # of 64: they lie in all sets of a cache
    assert {offset % LINE_B for offset in offsets} == {0}
    words = stretch.words[(order - stretch.address).astype(int) // 8]
    assert list(words) == [*order[1:], order[0]]


def test_loops_of_llvm_run_here(monkeypatch: pytest.MonkeyPatch) -> None:
    import ctypes

    pytest.importorskip("llvmlite.binding")
    monkeypatch.setattr(loops, "SPINS", 1000)
    made = loops.LlvmLoops()
    made.chain().run(3)
    made.fma(128, CHAINS, True).run(3)
    counter = ctypes.c_uint64()
    barrier = made.barrier()
    assert barrier.run(ctypes.addressof(counter), 1, 5) == 5
    counter.value = 0
    assert barrier.run(ctypes.addressof(counter), 2, 5) == 0  # the other thread never arrives
    memory = Stretch(1 << 21)
    made.read(128).run(memory.address, 4, 2)


def test_the_bytes_are_what_their_comments_say() -> None:
    for bits, length in ((256, 5), (512, 6)):
        for chains in (1, CHAINS):
            code = fma_loop(bits, chains)
            assert code[-5] - 256 == -(CHAINS * length + 6)  # the jump of the loop ends before vzeroupper and ret
            assert len({code[i : i + length] for i in range(3, 3 + CHAINS * length, length)}) == chains
    assert CLOCK_LOOP[-2] - 256 == -(4 * CHAIN + 6)


@each(("bits", "chains", "fused"), [(128, 1, True), (512, 7, True), (256, 12, False)])
def test_bytes_that_are_not_there_are_none(bits: int, chains: int, fused: bool) -> None:
    try:
        loops = ByteLoops()
    except OSError as error:
        pytest.skip(str(error))
    assert loops.fma(bits, chains, fused) is None
    assert loops.chase(chains + 1) is None
    assert loops.read(bits) is None


def test_a_latency_between_two_clocks_is_measured_again() -> None:
    seen = iter([3.8, 4.05, 4.3, 3.7, 4.4, 3.6])
    assert whole(lambda: Finding(next(seen))).value == 4.05
    with pytest.raises(Disturbed, match=r"3\.60 clk is no whole number"):
        whole(lambda: Finding(next(seen)))


def test_lines_in_flight_are_those_at_which_more_chains_gain_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    core, tried = Core(lambda now: 4.0), []

    def chase(self: Bench, chains: int) -> tuple[Callable[[], object], int]:
        tried.append(chains)
        return lambda: core.run(400 * 1000 / min(chains, 12)), 1000

    monkeypatch.setattr(Bench, "_chase", chase)
    bench = Bench("none")
    bench.ruler = core.ruler()
    found = bench.in_flight(1 << 28)
    assert found.value == pytest.approx(12, rel=0.02)
    assert tried == [chains for chains in IN_FLIGHT if chains <= 48]


# ---------------------------------------------------------------------------------------------- what is asked


def names(jobs: list[tuple[str, str, int]]) -> list[str]:
    return [name for name, _, _ in jobs]


def test_one_core_is_measured_once_and_meets_nobody_at_a_barrier() -> None:
    alone = Subject(threads=1, simd=128, fused=True, caches_B=(32 << 10, 1 << 20), memory_B=1 << 30)
    asked = jobs_of(alone)
    assert names(asked).count("clock") == names(asked).count("copy") == 1
    assert not {"barrier", "reach", "l3.latency", "fma256", "l2.tlb_miss"} & set(names(asked))
    assert ("l2.tlb_miss", "tlb_miss", 3072) in jobs_of(replace(SUBJECT, tlb_entries=1536))


def test_memory_is_more_than_the_caches_and_less_than_the_container_has() -> None:
    assert (SUBJECT.visited_B, SUBJECT.streamed_B) == (1 << 28, 1 << 28)
    server = Subject(threads=96, simd=512, fused=True, caches_B=(48 << 10, 1 << 20, 32 << 20), memory_B=1 << 38, last=12)
    assert server.streamed_B == 2 * 12 * (32 << 20)
    small = Subject(threads=2, simd=256, fused=True, caches_B=(32 << 10, 1 << 20, 32 << 20), memory_B=1 << 27)
    assert small.visited_B == 1 << 24
    assert "memory.latency" not in names(jobs_of(small))  # the last cache holds all that may be visited
    assert all(hasattr(Bench, method) for _, method, _ in jobs_of(SUBJECT))


def test_a_cache_is_visited_within_what_the_one_before_does_not_hold() -> None:
    sizes = {name: at for name, _, at in jobs_of(SUBJECT)}
    assert sizes["l1.latency"] < 32 << 10 < sizes["l2.latency"] < 1 << 20 < sizes["l3.latency"] < 32 << 20


# ---------------------------------------------------------------------------------------------- processes


def session(monkeypatch: pytest.MonkeyPatch, scripts: list[str], tell: Callable[[str], None] = print) -> _Session:
    """A session whose processes are these scripts, one after the other; `started` has the jobs that each was given."""
    made = _Session(SUBJECT, 3, tell)
    made.started = []

    def start(loops: str, jobs: list[tuple[str, str, int]], threads: int) -> subprocess.Popen[str]:
        made.started.append((loops, names(jobs)))
        words = [sys.executable, "-c", "import os, sys, time\n" + scripts[len(made.started) - 1]]
        return subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    monkeypatch.setattr(made, "_start", start)
    return made


JOBS = [("a", "clock", 1), ("b", "clock", 1), ("c", "clock", 1)]
HOW = 'print(\'{"how": "x"}\', flush=True)\n'
BEGIN = 'print(\'{"begins": ["%s", "clock", 1]}\', flush=True)\n'
VALUE = 'print(\'{"key": "%s", "at": 1, "value": 2.5, "spread": 0.1, "note": ""}\', flush=True)\n'


def test_an_instruction_that_ends_its_process_leaves_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    first = HOW + BEGIN % "a" + VALUE % "a" + BEGIN % "b" + "os.kill(os.getpid(), 4)"
    made = session(monkeypatch, [first, HOW + BEGIN % "c" + VALUE % "c" + "print('not a line of mine')"])
    assert made.run("llvm", JOBS)
    assert made.started == [("llvm", ["a", "b", "c"]), ("llvm", ["c"])]
    found = made.probe()
    assert (found.values("a"), found.values("c"), found.values("b")) == ({1: 2.5}, {1: 2.5}, {})
    assert found.failed[0].startswith("b: ended with -4")


def test_loops_that_cannot_be_had_are_told_from_those_that_fail(monkeypatch: pytest.MonkeyPatch) -> None:
    refused = session(monkeypatch, ['print(\'{"without": "no memory may be executed"}\')'])
    assert not refused.run("llvm", JOBS)
    assert refused.probe().failed == ("loops: no memory may be executed",)
    assert not session(monkeypatch, ["os.kill(os.getpid(), 6)"]).run("llvm", JOBS)
    failing = HOW + BEGIN % "a" + 'print(\'{"failed": "a", "at": 1, "why": "samples disagree"}\')\nprint(\'{"absent": "b"}\')'
    made = session(monkeypatch, [failing])
    assert made.run("bytes", JOBS)
    assert (made.probe().failed, made.probe().absent, made.probe().how) == (("a: samples disagree",), ("b",), "x")


def test_an_interrupt_ends_the_process_too(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(text: str) -> None:
        raise KeyboardInterrupt

    processes = []
    made = session(monkeypatch, [HOW + BEGIN % "a" + "time.sleep(60)"], interrupt)
    start = made._start
    monkeypatch.setattr(made, "_start", lambda *words: processes.append(start(*words)) or processes[-1])
    with pytest.raises(KeyboardInterrupt):
        made.run("llvm", JOBS)
    assert processes[0].poll() is not None


def test_what_takes_too_long_is_ended_and_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("archsim.detect.probe.LIMIT_S", 0.2)
    made = session(monkeypatch, [HOW + BEGIN % "a" + "time.sleep(60)"])
    assert made.run("llvm", JOBS)
    assert made.probe().failed == ("a: took more than 0.2 s",)
    assert len(made.started) == 1


def test_progress_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []
    session(monkeypatch, [HOW + BEGIN % "a" + VALUE % "a"], said.append).run("llvm", JOBS)
    assert said == ["probing 1 of 3: a"]


def test_a_benchmark_that_does_not_exist_says_so() -> None:
    made = _Session(SUBJECT, 1, lambda text: None)
    assert made.run("none", [("odd", "no_such_method", 1)])
    assert "odd: ended with 1" in made.probe().failed[0]


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="the probe runs on Linux")
def test_this_computer_is_measured_or_says_why_not() -> None:
    began, said = time.monotonic(), []
    found = detect(True, tell=said.append)
    assert isinstance(found.probe, Probe)
    kinds = {key: entry.kind for key, entry in found.spec.entries.items()}
    reasons = " ".join(found.probe.failed + found.probe.absent)
    for key in ("core.fma_latency", "l1.latency", "l2.latency", "l1.bandwidth", "memory.latency", "clock.boost"):
        assert kinds[key] == "measured" or reasons, key
    assert said[0].startswith("probing 1 of ")
    assert time.monotonic() > began
    assert Path(sys.executable).exists()
