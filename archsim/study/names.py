"""The catalogs of words that arguments take, as `names` of their rows says: for completion, help and the fields of the page.

A shell waits for each answer, so that devices, networks, nodes and models are the names of their files, and all else is imported
on use.
"""

from __future__ import annotations

from importlib import import_module

from archsim.base.files import data_folder

FOLDERS = {"device": ("hwspecs", ".toml"), "node": ("hwspecs/hosts", ".toml"), "network": ("traces/nets", ".jsonl"),
           "model": ("traces/models", ".json")}  # fmt: skip
TABLES = {  # a function without arguments, or what has the words in order
    "stack": ("archsim.stack.catalog", "names"), "engine": ("archsim.generation.plan", "engines"),
    "precision": ("archsim.device.device", "PRECISION_BYTES"), "task": ("archsim.trace.training", "TASKS"),
    "fidelity": ("archsim.estimation.fidelity", "FIDELITIES"), "traffic": ("archsim.estimation.fidelity", "TRAFFIC"),
    "weights": ("archsim.generation.plan", "WEIGHTS"), "kv": ("archsim.generation.plan", "CACHE_BYTES"),
}  # fmt: skip
WORDS = {"optimiser": ("sgd", "momentum", "adamw"), "activations": ("bf16", "fp16"), "devices": ("all", "gpu", "cpu", "tpu")}


def names_of(catalog: str) -> list[str]:
    """The words of a catalog; `devices` has words for several of them too."""
    if catalog in FOLDERS:
        folder, suffix = FOLDERS[catalog]
        found = (entry.name for entry in data_folder(folder).iterdir())
        files = sorted(name.removesuffix(suffix) for name in found if name.endswith(suffix))
        return [*files, "host"] if catalog == "device" else files
    if catalog in TABLES:
        module, name = TABLES[catalog]
        table = getattr(import_module(module), name)
        return [*(table() if callable(table) else table)]
    return [*WORDS[catalog], *(names_of("device") if catalog == "devices" else ())]


def are_files(catalog: str) -> bool:
    """Whether a word may also be the path of a file."""
    return catalog in (*FOLDERS, "devices", "stack")


def in_words(catalog: str) -> str:
    """The words of a catalog as a sentence has them.

    >>> in_words("optimiser")
    'sgd, momentum or adamw'
    """
    *most, last = names_of(catalog)
    return f"{', '.join(most)} or {last}"
