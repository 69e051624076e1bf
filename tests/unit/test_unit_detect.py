"""Machines that are not this one: trees of /proc and /sys, read and described as specs."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest

from archsim.answers.computer import sections
from archsim.base.errors import Unsupported
from archsim.detect.architecture import core_of, rows
from archsim.detect.describe import describe
from archsim.detect.detect import Detected, GpuFacts, gpu_text, gpus_said, read_gpus, relative, subject_of
from archsim.detect.probe import Probe
from archsim.detect.sampling import Finding
from archsim.detect.system import Computer, Told, cpu_list, read_computer
from archsim.device import catalog
from archsim.device.file import loads
from archsim.device.spec import Spec
from archsim.render.text import text_of

HASWELL = {
    "vendor_id": "GenuineIntel", "cpu family": "6", "model": "63", "model name": "Intel(R) Xeon(R) CPU E5-2650 v3 @ 2.30GHz",
    "flags": "fpu sse2 avx avx2 fma", "siblings": "4", "cpu cores": "2",
}  # fmt: skip
GRAVITON = {"CPU implementer": "0x41", "CPU part": "0xd4f", "Features": "fp asimd sve"}
MASKED = HASWELL | {"model": "167", "model name": "Intel(R) Xeon(R) Processor", "cpu MHz": "2600.001",
                    "flags": "sse2 avx avx2 fma avx512f avx512_fp16 amx_tile hypervisor"}  # fmt: skip
ZEN4 = {"vendor_id": "AuthenticAMD", "cpu family": "25", "model": "17", "model name": "AMD EPYC 9654 96-Core Processor",
        "flags": "sse2 avx avx2 fma avx512f"}  # fmt: skip


def probe_of(threads: int = 4, failed: tuple[str, ...] = (), **found: dict[int, float]) -> Probe:
    """A probe that found these figures; `_` in a name is the dot of `l1.latency`."""
    named = {name if "." in name or name[0] not in "lm" else name.replace("_", "."): values for name, values in found.items()}
    readings = {name: {at: Finding(value=value) for at, value in values.items()} for name, values in named.items()}
    return Probe(readings=readings, failed=failed, threads=threads, how="a test")


PROBE = probe_of(
    clock={1: 3.0e9, 4: 2.8e9}, fma_per_clock={256: 2.0, 512: 1.8}, fma256={1: 6.0e9, 4: 5.6e9}, fma512={1: 5.4e9, 4: 5.2e9},
    fma_latency={512: 3.97}, l1_latency={16384: 5.05}, l1_read={16384: 126.0}, l2_latency={90000: 14.1},
    in_flight={1 << 28: 15.6}, l2_read={90000: 41.0, 128000: 47.0}, memory_latency={1 << 29: 1.1e-7},
    memory_read={1: 1e10, 4: 5e10}, copy={1: 2e10, 4: 6e10}, product={1: 1.5e11}, failed=("l3.latency: samples disagree",),
)  # fmt: skip


def put(root: Path, path: str, text: str) -> None:
    place = root / path
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(text + "\n")


def computer(root: Path, words: dict[str, str], packages: int = 1, cores: int = 2, ways: int = 2, sysfs: bool = True) -> Path:
    """A tree with `packages` sockets of `cores` cores of `ways` hardware threads, numbered as Linux does: threads last."""
    count = packages * cores * ways
    blocks = ["\n".join(f"{key}\t: {value}" for key, value in ({"processor": str(i)} | words).items()) for i in range(count)]
    put(root, "proc/cpuinfo", "\n\n".join(blocks))
    put(root, "proc/meminfo", "MemTotal:       16777216 kB\nMemFree: 1 kB")
    if not sysfs:
        return root
    put(root, "sys/devices/system/cpu/online", f"0-{count - 1}")
    for cpu in range(count):
        core = cpu % (packages * cores)
        folder = f"sys/devices/system/cpu/cpu{cpu}"
        put(root, f"{folder}/topology/physical_package_id", str(core // cores))
        put(root, f"{folder}/topology/thread_siblings_list", ",".join(str(core + i * packages * cores) for i in range(ways)))
        own = ",".join(str(core + i * packages * cores) for i in range(ways))
        whole = ",".join(str(c) for c in range(count) if (c % (packages * cores)) // cores == core // cores)
        caches = [("1", "Data", "32K", own), ("1", "Instruction", "32K", own), ("2", "Unified", "256K", own),
                  ("3", "Unified", "25600K", whole)]  # fmt: skip
        for index, (level, kind, size, sharers) in enumerate(caches):
            cache = {"level": level, "type": kind, "size": size, "ways_of_associativity": "8",
                     "coherency_line_size": "64", "shared_cpu_list": sharers}  # fmt: skip
            for name, text in cache.items():
                put(root, f"{folder}/cache/index{index}/{name}", text)
    return root


def spec_of(found: Computer, probe: Probe | None = None) -> Spec:
    row = core_of(found)
    return loads(describe(found, row, catalog.find(row.like), probe), "a computer", catalog.find)


def summary(spec: Spec, found: Computer, probe: Probe) -> str:
    """What `archsim detect` says of it."""
    return text_of(sections(Detected(computer=found, probe=probe, text="", spec=spec)))


def test_two_sockets_with_hardware_threads(tmp_path: Path) -> None:
    found = read_computer(computer(tmp_path, HASWELL, packages=2, cores=10, ways=2))
    assert (found.cores, found.threads, found.sockets) == (20, 40, 2)
    spec = spec_of(found)
    values = {key: entry.value for key, entry in spec.entries.items()}
    assert spec.identity.architecture == "haswell"
    assert (values["core.count"], values["core.threads"], values["core.sockets"]) == (20, 40, 2)
    assert (values["core.simd"], values["core.fma_ports"], values["clock.base"]) == (256, 2, 2.3e9)
    assert (values["l1.shared_by"], values["l2.shared_by"], values["l3.shared_by"]) == (1, 1, 10)
    assert (values["l3.size"], values["memory.capacity"]) == (25600 * 1024, 16 * 2**30)
    assert "clock.simd512" not in values
    assert spec.entries["core.fma_latency"].kind != "assumed"  # the same core: as sure as it is there
    assert spec.entries["clock.boost"].kind == "assumed"


def test_a_container_sees_its_limits(tmp_path: Path) -> None:
    root = computer(tmp_path, HASWELL, cores=8, ways=1)
    put(root, "proc/self/cgroup", "0::/pod/inner")
    put(root, "sys/fs/cgroup/pod/cpu.max", "250000 100000")
    put(root, "sys/fs/cgroup/pod/inner/cpu.max", "max 100000")
    put(root, "sys/fs/cgroup/pod/inner/memory.max", str(2**30))
    found = read_computer(root, allowed={1, 2, 3, 6})
    assert (found.cores, found.quota) == (4, 2.5)
    spec = spec_of(found)
    assert spec.entries["core.count"].value == 2
    assert "control group grants the time of 2.5 of 4 cores" in spec.entries["core.count"].note
    assert spec.entries["l3.shared_by"].value == 2
    assert spec.entries["memory.capacity"].value == 2**30
    assert "control group" in spec.entries["memory.capacity"].source


def test_control_groups_of_the_first_version(tmp_path: Path) -> None:
    root = computer(tmp_path, HASWELL, cores=4)
    put(root, "proc/self/cgroup", "4:memory:/job\n1:cpu,cpuacct:/job\n0::/")
    put(root, "sys/fs/cgroup/cpu/job/cpu.cfs_quota_us", "50000")
    put(root, "sys/fs/cgroup/cpu/job/cpu.cfs_period_us", "100000")
    put(root, "sys/fs/cgroup/memory/job/memory.limit_in_bytes", "9223372036854771712")
    found = read_computer(root)
    assert found.quota == 0.5
    assert spec_of(found).entries["core.count"].value == 1
    assert found.memory is not None
    assert found.memory.value == 16 * 2**30


def test_without_sys_everything_that_is_missing_is_said_and_assumed(tmp_path: Path) -> None:
    found = read_computer(computer(tmp_path, HASWELL, cores=2, ways=2, sysfs=False))
    assert found.cores == 2  # by siblings and cores of /proc/cpuinfo
    assert any("caches" in text for text in found.unseen)
    assert any("topology" in text for text in found.unseen)
    spec = spec_of(found)
    assert float(spec.entries["l3.size"].value) > 0
    assert spec.entries["l3.size"].source.startswith("hwspecs/xeon_e5_2650_v3_2s.toml")


def test_a_virtual_computer_that_hides_its_model(tmp_path: Path) -> None:
    found = read_computer(computer(tmp_path, MASKED, ways=1))
    assert found.virtual
    assert core_of(found).architecture == "unknown_avx512_fp16"  # what model 167 is cannot do what this one can
    spec = spec_of(found)
    assert spec.entries["core.simd"].value == 512
    assert spec.entries["clock.base"].value == 2.6e9
    assert spec.entries["core.fma_latency"].kind == "assumed"
    assert "other virtual machines" in spec.entries["l3.size"].note


def test_efficiency_cores_are_said(tmp_path: Path) -> None:
    root = computer(tmp_path, HASWELL)
    put(root, "sys/devices/cpu_atom/cpus", "2-3")
    assert any("2 processors are efficiency cores" in text for text in read_computer(root).unseen)


def test_an_arm_server(tmp_path: Path) -> None:
    root = computer(tmp_path, GRAVITON, ways=1)
    put(root, "proc/sys/abi/sve_default_vector_length", "16")
    spec = spec_of(read_computer(root))
    assert (spec.identity.vendor, spec.identity.architecture) == ("Arm", "neoverse_v2")
    assert (spec.entries["core.simd"].value, spec.entries["core.fma_ports"].value) == (128, 4)


def test_a_small_core_has_the_energies_of_its_kind(tmp_path: Path) -> None:
    entry = spec_of(read_computer(computer(tmp_path, GRAVITON | {"CPU part": "0xd08"}, ways=1))).entries["power.operation"]
    assert entry.number == catalog.find("raspberry_pi_4").entries["power.operation"].number
    kin = spec_of(read_computer(computer(tmp_path / "zen", ZEN4))).entries["power.operation"]
    assert kin.number == catalog.find("epyc_9654").entries["power.operation"].number


def test_half_of_the_registers_do_not_double_the_units(tmp_path: Path) -> None:
    zen = spec_of(read_computer(computer(tmp_path, ZEN4 | {"flags": "sse2 avx avx2 fma"})))
    assert (zen.entries["core.simd"].value, zen.entries["core.fma_ports"].value) == (256, 2)


def test_the_system_s_clocks_and_power_go_before_assumed_ones(tmp_path: Path) -> None:
    root = computer(tmp_path, ZEN4)
    put(root, "sys/devices/system/cpu/cpu0/cpufreq/cpuinfo_max_freq", "3700000")
    put(root, "sys/devices/system/cpu/cpu0/cpufreq/base_frequency", "2400000")
    put(root, "sys/class/powercap/intel-rapl:0/constraint_0_power_limit_uw", "360000000")
    spec = spec_of(read_computer(root))
    shipped = catalog.find("epyc_9654")
    for key in ("clock.base", "clock.boost", "power.tdp"):
        assert spec.entries[key].kind == "measured"
    # between base and boost where the relative's clocks lie, so equal where base and boost are
    assert spec.entries["clock.all_core"].value == pytest.approx(shipped.entries["clock.all_core"].value, rel=1e-3)


def test_a_probe_replaces_what_would_be_assumed(tmp_path: Path) -> None:
    found = read_computer(computer(tmp_path, MASKED, cores=4, ways=1))
    spec = spec_of(found, PROBE)
    values = {key: entry.value for key, entry in spec.entries.items()}
    assert values["core.fma_ports"] == 2  # 1.8: wide code clocks lower
    assert (values["clock.boost"], values["clock.all_core"]) == (3.0e9, 2.8e9)
    assert (values["clock.simd"], values["clock.simd512"]) == (2.8e9, 2.6e9)
    assert (values["memory.bandwidth"], values["memory.achievable"], values["memory.latency"]) == (6e10, 1, pytest.approx(1.1e-7))
    assert (values["core.fma_latency"], values["core.miss_buffers"]) == (4, 16)
    assert (values["l1.latency"], values["l2.latency"], values["l1.bandwidth"], values["l2.bandwidth"]) == (5, 14, 126, 41)
    assert values["l2.miss_buffers"] == round(1e10 * 1.1e-7 / 64)
    assert "47 B/clk" in spec.entries["l2.bandwidth"].note
    assert {spec.entries[key].kind for key in ("core.fma_latency", "l1.latency", "l2.bandwidth")} == {"measured"}
    assert spec.entries["l3.latency"].kind == "assumed"
    assert not {"core.fma_latency", "l1.latency", "l2.bandwidth", "memory.latency"} & set(spec.assumed)
    said = summary(spec, found, PROBE)
    assert "l3.latency: samples disagree" in said
    assert "150 GFLOP/s" in said
    assert "assumed   core.scalar_ipc, " in said


def test_one_512_bit_unit_is_told_from_two(tmp_path: Path) -> None:
    found = read_computer(computer(tmp_path, MASKED, ways=1))
    for rate, ports in ((0.97, 1), (1.93, 2), (0.5, 0.5)):
        one = probe_of(2, clock={1: 3.0e9, 2: 3.0e9}, fma_per_clock={512: rate})
        assert spec_of(found, one).entries["core.fma_ports"].value == ports


def test_what_cannot_be_is_refused_and_stays_assumed(tmp_path: Path) -> None:
    found = read_computer(computer(tmp_path, MASKED, cores=4, ways=1))
    absurd = probe_of(clock={1: 5e10, 4: 3e9}, l1_latency={16384: 4.0}, l2_latency={90000: 4.1}, l3_latency={1 << 21: 50.0},
                      l1_read={16384: 60.0}, l2_read={90000: 90.0}, memory_latency={1 << 29: 1e-9}, in_flight={1 << 28: 1e6},
                      fma_latency={512: 0.1})  # fmt: skip
    spec, said = spec_of(found, absurd), ""
    said = summary(spec, found, absurd)
    for key in ("l2.latency", "l2.bandwidth", "memory.latency", "core.miss_buffers", "core.fma_latency"):
        assert spec.entries[key].source != "archsim detect --probe", key
        assert f"{key}: the probe found" in said, key
    assert spec.entries["clock.boost"].value == 3e9
    assert (spec.entries["l1.latency"].value, spec.entries["l3.latency"].value) == (4, 50)
    assert "not within 0.2 to 10 GHz" in said


def test_all_cores_are_not_said_where_they_were_not_measured(tmp_path: Path) -> None:
    found = read_computer(computer(tmp_path, MASKED, cores=4, ways=1))
    alone = probe_of(4, clock={1: 3.0e9}, fma_per_clock={512: 2.0}, fma512={1: 5.4e9}, memory_read={1: 1e10}, copy={1: 2e10})
    spec = spec_of(found, alone)
    assert spec.entries["clock.boost"].value == 3.0e9
    for key in ("clock.all_core", "clock.simd512", "memory.bandwidth", "memory.achievable"):
        assert spec.entries[key].kind == "assumed", key


def test_a_virtual_machine_s_cache_counts_as_what_one_core_reaches(tmp_path: Path) -> None:
    found = read_computer(computer(tmp_path, MASKED, cores=4, ways=1))
    for reached, size in ((20 << 20, 25600 << 10), (6 << 20, 6 << 20)):
        spec = spec_of(found, probe_of(reach={25600 << 10: float(reached)}))
        assert spec.entries["l3.size"].value == size
    bare = read_computer(computer(tmp_path / "bare", HASWELL, cores=4, ways=1))
    assert spec_of(bare, probe_of(reach={25600 << 10: 3e6})).entries["l3.size"].value == 25600 << 10


def test_what_the_probe_must_know(tmp_path: Path) -> None:
    root = computer(tmp_path, ZEN4, packages=2, cores=6, ways=1)
    asked = subject_of(read_computer(root), catalog.find("epyc_9654"), Told(value=2**30, source="a test"))
    assert (asked.threads, asked.last, asked.simd, asked.fused) == (12, 2, 512, True)
    assert asked.caches_B == (32 << 10, 256 << 10, 25600 << 10)
    assert asked.memory_B == 2**30
    old = subject_of(read_computer(computer(tmp_path / "old", HASWELL | {"flags": "sse2 avx"})), catalog.find("i7_3820"), None)
    assert (old.fused, old.simd, old.memory_B) == (False, 256, 16 << 30)


def test_a_page_walk_is_measured_where_the_tlb_is_known(tmp_path: Path) -> None:
    found = read_computer(computer(tmp_path, MASKED, cores=4, ways=1))
    spec = spec_of(found, probe_of(**{"l2.tlb_miss": {3072: 31.4}}))
    assert (spec.entries["l2.tlb_miss"].value, spec.entries["l2.tlb_miss"].kind) == (31.4, "measured")
    refused = spec_of(found, probe_of(**{"l2.tlb_miss": {3072: -4.0}}))
    assert refused.entries.get("l2.tlb_miss") == spec_of(found).entries.get("l2.tlb_miss")


def test_what_llvm_would_measure_is_said(tmp_path: Path) -> None:
    found = read_computer(computer(tmp_path, MASKED, cores=4, ways=1))
    plain = Probe(absent=("l1.read", "in_flight", "barrier"), how="machine code of x86-64")
    said = summary(spec_of(found, plain), found, plain)
    assert 'l1.bandwidth, core.miss_buffers: loops for them come with pip install "archsim[fast]"' in said


def test_nothing_of_a_stranger_s_name_escapes_its_quotes(tmp_path: Path) -> None:
    nasty = HASWELL | {"model name": 'x" kind = "gpu\x1b[31m\\ \N{SNOWMAN}'}
    spec = spec_of(read_computer(computer(tmp_path, nasty)))
    assert spec.kind == "cpu"
    assert "\x1b" not in spec.identity.name


def test_no_proc_and_no_known_processor_are_unsupported(tmp_path: Path) -> None:
    with pytest.raises(Unsupported, match=r"hwspecs/README\.md"):
        read_computer(tmp_path)
    found = read_computer(computer(tmp_path, {"vendor_id": "Nobody", "flags": "fpu"}))
    with pytest.raises(Unsupported, match="neither AVX nor NEON"):
        core_of(found)


def test_every_architecture_has_a_shipped_relative() -> None:
    for row in rows():
        assert catalog.find(row.like).kind == "cpu", row.architecture


def test_the_same_core_is_claimed_only_of_a_device_that_has_it() -> None:
    same = {row.architecture: catalog.find(row.like).identity.architecture for row in rows() if row.same}
    assert same
    assert {name: other for name, other in same.items() if name != other} == {}


def test_lists_of_processors() -> None:
    assert cpu_list("0,2-4,7") == {0, 2, 3, 4, 7}
    assert cpu_list("") == set()
    assert cpu_list("a-b,3-") == {3}


# ---------------------------------------------------------------------------------------------- GPUs


def nvml(monkeypatch: pytest.MonkeyPatch, name: str = "NVIDIA H200", memory: float = 150e9) -> None:
    class NVMLError(Exception):
        pass

    def refuses(*_: object) -> float:
        raise NVMLError("Not Supported")

    module = ModuleType("pynvml")
    module.__dict__.update(
        NVMLError=NVMLError, NVML_CLOCK_SM=1, nvmlInit=lambda: None, nvmlDeviceGetCount=lambda: 1,
        nvmlDeviceGetHandleByIndex=lambda i: i, nvmlDeviceGetName=lambda h: name.encode(),
        nvmlDeviceGetMemoryInfo=lambda h: SimpleNamespace(total=memory), nvmlDeviceGetMaxClockInfo=lambda h, c: 1980,
        nvmlDeviceGetPowerManagementDefaultLimit=refuses, nvmlDeviceGetTotalEnergyConsumption=lambda h: 5000,
    )  # fmt: skip
    monkeypatch.setitem(sys.modules, "pynvml", module)


def test_a_gpu_is_described_whole_with_what_the_driver_tells(monkeypatch: pytest.MonkeyPatch) -> None:
    nvml(monkeypatch)
    facts = read_gpus()[0]
    kin = relative(facts)
    assert kin is not None
    assert kin.identity.id == "h200_sxm_141gb"
    assert facts.power_W is None  # the driver does not say
    spec = loads(gpu_text(facts, kin, "mine"), "GPU", catalog.find)
    assert spec.entries["clock.boost"].value == 1.98e9
    assert spec.entries["clock.boost"].kind == "measured"
    told = {"clock.boost", "memory.capacity"}
    assert {key: value.value for key, value in spec.entries.items() if key not in told} == {
        key: value.value for key, value in kin.entries.items() if key not in told}  # fmt: skip
    assert "H200" in gpus_said()[0]


def test_memory_tells_gpus_of_one_name_apart() -> None:
    small, large = (GpuFacts(name="NVIDIA A100-PCIE", memory_B=size, clock_Hz=None, power_W=None) for size in (40e9, 80e9))
    assert [kin.identity.id for kin in map(relative, (small, large)) if kin] == ["a100_pcie_40gb", "a100_pcie_80gb"]
    assert relative(GpuFacts(name="NVIDIA Imaginary 9000", memory_B=1e9, clock_Hz=None, power_W=None)) is None


def test_without_a_driver_that_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", None)
    assert "nvidia-ml-py is not installed" in gpus_said()[0]


def test_the_memory_that_is_left_is_the_least_that_anyone_grants(tmp_path: Path) -> None:
    from archsim.detect.system import available_here

    def say(name: str, text: str) -> None:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)

    assert available_here(tmp_path) is None or "ulimit" in available_here(tmp_path).source
    say("proc/meminfo", "MemTotal: 16000000 kB\nMemAvailable: 8000000 kB\n")
    found = available_here(tmp_path)
    assert (found.value, found.source) == (8000000 * 1024, "/proc/meminfo, MemAvailable")
    say("proc/self/cgroup", "0::/box\n")
    say("sys/fs/cgroup/box/memory.max", "4000000000\n")
    say("sys/fs/cgroup/box/memory.current", "3000000000\n")
    say("sys/fs/cgroup/box/memory.stat", "anon 1\ninactive_file 400000000\nactive_file 600000000\n")
    found = available_here(tmp_path)
    assert (found.value, found.source) == (2000000000, "what the memory limit of the control group leaves")
    say("sys/fs/cgroup/box/memory.max", "max\n")
    assert available_here(tmp_path).value == 8000000 * 1024
    say("proc/self/cgroup", "9:memory:/old\n")
    say("sys/fs/cgroup/memory/old/memory.limit_in_bytes", "1000000000\n")
    say("sys/fs/cgroup/memory/old/memory.usage_in_bytes", "2000000000\n")
    assert available_here(tmp_path).value == 0


def test_dot_products_that_the_system_hides_from_programs_are_absent(tmp_path: Path) -> None:
    """A virtual machine may run on a core whose tiles it does not pass on."""
    flags = "sse2 avx avx2 fma avx512f avx512_fp16 amx_tile avx512_vnni hypervisor"
    device = spec_of(read_computer(computer(tmp_path, MASKED | {"model": "143", "flags": flags}))).device
    assert device.forms("int8") == ("int8_words", "int8_pairs", "int8_dot")
    assert device.forms("bf16") == ()
    assert device.forms("fp16") == ("fp16_lanes",)
