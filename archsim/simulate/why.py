"""Why a simulation ends as it does, in a sentence: the rate of a server, the step of a training, the latencies of a model."""

from __future__ import annotations

from archsim.base.units import grouped, show
from archsim.generation.estimate import limit_word
from archsim.schedule.training import CORES, DISK, MEMORY
from archsim.simulate.serve import Serving
from archsim.simulate.serve_llm import TextServing
from archsim.simulate.train import Training

NEARLY = 0.9  # of the capacity: what is as fast is limited by it
MUCH = 0.5  # of the capacity: a server that is asked for more fills its batches
MORE = 1.05  # times what full batches serve: a smaller batch that serves as much is worth a word
HIDDEN, LATE = 5e-4, 0.02  # of a step: an exchange that is less is hidden, inputs that are more are worth a word
INPUTS = {DISK: "the disk is", CORES: "the decode workers are", MEMORY: "the host's memory is"}


def why_rate(s: Serving) -> str:
    """Why a server keeps its rate and no higher one, or what its requests wait for; empty where they do not queue."""
    if s.scenario != "Server":
        return ""
    if s.highest_rate_per_s is None or s.bound_s is None:
        return _load(s)
    alone, bound = s.batch_latency_s[min(s.batch_latency_s)], show(s.bound_s, "s", 3)
    if not s.highest_rate_per_s:
        waits = f" after waiting {show(s.batching.wait_s, 's', 3)} for others" if s.batching.wait_s else ""
        return f"a request alone takes {show(alone, 's', 3)}{waits}"
    if s.highest_rate_per_s > NEARLY * s.capacity_per_s:
        return f"full batches are served at {grouped(s.capacity_per_s, 3)} requests/s, and the queue grows beyond"
    if s.devices == 1 and alone + s.batching.wait_s <= s.bound_s < 2 * alone:
        each = show(alone, "s", 2)
        return (f"a request that meets a batch under way waits up to {each} and then takes {each}, more than {bound}: only one "
                f"in a hundred may; from {show(2 * alone, 's', 3)} on the rate rises")  # fmt: skip
    size = min(s.batch_latency_s, key=lambda size: abs(size - (s.mean_batch or 1.0)))
    usual = f"batches of {size} are usual and take {show(s.batch_latency_s[size], 's', 3)}"
    return f"{usual}: a request that just misses one waits for it, takes as long again, and now and then meets a larger one"


def _load(s: Serving) -> str:
    if not s.stable:
        served = f"full batches are served ({grouped(s.capacity_per_s, 3)}/s)"
        return f"requests arrive faster than {served}, so the queue grows without end"
    if s.rate_per_s is None or s.latency_s is None or s.wait_s is None:
        return ""
    share = f"at {100 * s.rate_per_s / s.capacity_per_s:.0f} % of what full batches serve ({grouped(s.capacity_per_s, 3)}/s)"
    waited, whole = show(s.wait_s.value, "s", 3), show(s.latency_s["mean"].value, "s", 3)
    return f"{share} a request waits {waited} of its {whole} on average"


def better_batch(s: Serving) -> list[str]:
    """A size of batch of those that occurred in which a device serves more than in full ones, if there is one."""
    rates = {size: size / time for size, time in s.batch_latency_s.items()}
    best = max(rates, key=lambda size: rates[size])
    full = s.scenario == "Offline" or (s.rate_per_s or 0.0) > MUCH * s.capacity_per_s
    if not full or rates[best] < MORE * s.capacity_per_s / s.devices:
        return []
    return [f"Batches of {best} serve more, {grouped(rates[best], 3)}/s on a device: try --batching max={best}."]


def why_training(t: Training) -> list[str]:
    """What the exchange of gradients and the input cost a step on the largest number of devices."""
    p = max(t.points, key=lambda point: point.devices)
    way = "The all-reduce" if t.sync == "allreduce" else "The exchange with the parameter server"
    size = f"{way} of {show(t.gradient_bytes, 'B', 3)} on {p.devices} devices"
    cost = f"{show(p.exchange_s, 's', 3)} ({100 * p.exchange_s / p.step_s:.1f} % of a step)"
    if p.devices == 1:
        found = ["One device exchanges no gradients."]
    elif not t.overlap:
        found = [f"{size} comes after the backward pass and takes {cost}."]
    elif p.exchange_s < HIDDEN * p.step_s:
        found = [f"{size} hides behind the backward pass."]
    else:
        found = [f"{size} hides behind the backward pass but for {cost}."]
    if p.input_s > LATE * p.step_s:
        busiest = max((name for name in INPUTS if name in p.busy), key=lambda name: p.busy[name], default="")
        used = f": {INPUTS[busiest]} busy {100 * p.busy[busiest]:.0f} % of the time" if busiest else ""
        found.append(f"A step waits {show(p.input_s, 's', 3)} ({100 * p.input_s / p.step_s:.0f} %) for its inputs{used}.")
    return found


def why_served(s: TextServing) -> str:
    """What a language model under requests is limited by, and how near it is to what it can do."""
    busiest = max(s.utilisation)
    waits = f"; {s.preemptions:,} were put back for want of cache" if s.preemptions else "; none was put back for want of cache"
    return (f"Steps take {100 * busiest:.0f} % of the time and are limited by {limit_word(s.limited_by)}, with at most "
            f"{s.running:,} requests at once{waits}.")  # fmt: skip
