"""The command that measures a row again.

The bench records sizes, hints and geometry rather than its command line alone, so that the command of one row can be
made without the other rows: `command` gives the options on which this row depends, and the variables that were set.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from typing import Any

from mpiio_ext.common.results import Measured
from mpiio_ext.report.environment import own_variables

#: Pattern -> (option, key of the recorded sizes) on which it depends, beside the size of the file.
_SIZE_OPTIONS = {
    "contiguous": (("--transfer", "transfer_bytes"),),
    "tiles2d": (("--ghost", "ghost"),),
    "btio": (("--steps", "steps"),),
    "random": (("--piece", "piece_bytes"), ("--seed", "seed")),
}
#: (option, key of the configuration, the bench's default, which need not be given).
_GENERAL = (
    ("--read-shift", "read_shift", 1),
    ("--native-limit", "native_limit_s", 6.0),
    ("--native-size", "native_bytes", 0),
    ("--repeats", "repetitions", 3),
)


def _entry(configuration: Mapping[str, Any], row: Measured) -> Mapping[str, Any]:
    """Return the recorded geometry of the row's workload or kernel."""
    for group in ("kernels", "workloads"):
        recorded = configuration.get(group)
        if isinstance(recorded, Mapping):
            for name in (row.key.variant, row.last.workload):
                if isinstance(recorded.get(name), Mapping):
                    return recorded[name]  # type: ignore[no-any-return]
    return {}


def _pattern_options(configuration: Mapping[str, Any], row: Measured) -> list[str]:
    sizes, entry = configuration.get("sizes"), _entry(configuration, row)
    words = ["-w", row.last.workload]
    if isinstance(sizes, Mapping):
        if sizes.get("file_bytes"):
            words += ["--size", str(sizes["file_bytes"])]
        for option, key in _SIZE_OPTIONS.get(row.last.workload, ()):
            if sizes.get(key) is not None:
                words += [option, str(sizes[key])]
    if row.last.workload == "interleaved" and entry.get("block_bytes"):
        words += ["--block", str(entry["block_bytes"])]
    return words


def _kernel_options(configuration: Mapping[str, Any], row: Measured) -> list[str]:
    entry = _entry(configuration, row)
    if isinstance(entry.get("options"), list):  # as the bench would have them
        return [str(word) for word in entry["options"]]
    words = ["--kernel", row.last.workload]
    if entry.get("scale") is not None:
        words += ["--scale", str(entry["scale"])]
    elif entry.get("class") is not None:
        words += ["--class", str(entry["class"])]
    return words


def command(environment: Mapping[str, Any], configuration: Mapping[str, Any], row: Measured) -> str:
    """Return the shell command that measures `row` and its native counterpart again.

    Parameters
    ----------
    environment, configuration : of the results that hold the row; keys that are missing give no option.
    row : of either operation: the bench measures both.
    """
    words = [f"{name}={value}" for name, value in sorted(own_variables(environment).items())]
    ranks = environment.get("ranks") or row.last.ranks
    words += ["mpirun", "-n", str(ranks), "python", "-m", "mpiio_ext.bench"]
    words += (_kernel_options if row.last.kind == "kernel" else _pattern_options)(configuration, row)
    words += ["-i", row.key.interface, "-m", ",".join(dict.fromkeys(["native", row.key.strategy]))]
    if environment.get("path"):
        words += ["--path", str(environment["path"])]
    if row.key.strategy.partition("+")[0] == "delegates":
        for name, usual in (("delegates", "1"), ("delegate_mode", "spawn")):
            if configuration.get(name) not in (None, usual):
                words += [f"--{name.replace('_', '-')}", str(configuration[name])]
    hints = configuration.get("hints")
    for name, value in sorted(hints.items()) if isinstance(hints, Mapping) else ():
        words += ["--hint", f"{name}={value}"]
    for option, key, default in _GENERAL:
        value = configuration.get(key)
        if value is not None and value != default:
            words += [option, str(value)]
    return shlex.join(words)
