"""The configuration of a bench as it is recorded, so that each row can be measured again."""

from __future__ import annotations

import dataclasses
from dataclasses import asdict
from typing import Any

from mpiio_ext.bench.kernel_options import command_words
from mpiio_ext.bench.options import Options
from mpiio_ext.bench.work import KernelItem, Work

__all__ = ["configuration"]


def _kernel(item: KernelItem) -> dict[str, Any]:
    """Return a kernel with all its parameters; ``options`` are those of the command line that ask for it."""
    kernel, request = item.case.kernel, item.request
    return {
        "name": kernel.name,
        "class": type(kernel).__name__,
        "preset": request.preset,
        "scale": request.scale,
        "given": dict(request.parameters),
        "options": command_words(request),
        **{field.name: getattr(kernel, field.name) for field in dataclasses.fields(kernel)},
    }


def configuration(options: Options, work: Work) -> dict[str, Any]:
    """Return sizes, patterns, kernels, methods and limits, compatible with JSON.

    Each entry of ``kernels`` has the kernel's own parameters beside name, class, preset, scale, the parameters given on
    top of the preset, and the options of the command line.
    """
    ways = [case.interface.name for case in work.cases] + [item.case.store.name for item in work.items]
    return {
        "suite": options.suite.name if options.suite else None,
        "sizes": asdict(options.sizes),
        "workloads": {
            case.workload.key: {"class": type(case.workload).__name__, **asdict(case.workload)}  # type: ignore[call-overload]
            for case in work.cases
        },
        "kernels": {item.case.variant: _kernel(item) for item in work.items},
        "interfaces": list(dict.fromkeys(ways)),
        "strategies": {strategy.name: dict(strategy.hints) for strategy in work.strategies},
        "hints": options.hints,
        "repetitions": options.repetitions,
        "budget_s": options.budget_s,
        "read_shift": options.read_shift,
        "native_limit_s": options.native_limit_s,
        "native_bytes": options.native_bytes,
    }
