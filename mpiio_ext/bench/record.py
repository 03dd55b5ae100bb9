"""The configuration of a bench as it is recorded, so that each row can be measured again."""

from __future__ import annotations

import dataclasses
from dataclasses import asdict
from typing import Any

from mpiio_ext.bench.asked import Options
from mpiio_ext.bench.execution.case import Case
from mpiio_ext.bench.kernels import Pattern
from mpiio_ext.bench.kernels.request import command_words
from mpiio_ext.bench.work import Work


def _kernel(case: Case) -> dict[str, Any]:
    """Return a kernel with all its parameters; ``options`` are those of the command line that select it."""
    kernel, request = case.program, case.request
    assert request is not None
    return {
        "name": kernel.name,
        "class": type(kernel).__name__,
        "preset": request.preset,
        "scale": request.scale,
        "given": dict(request.parameters),
        "options": command_words(request),
        **{field.name: getattr(kernel, field.name) for field in dataclasses.fields(kernel)},
    }


def _pattern(case: Case) -> dict[str, Any]:
    """Return a pattern with its geometry."""
    pattern = case.program
    assert isinstance(pattern, Pattern)
    return {"class": type(pattern).__name__, **pattern.geometry()}


def configuration(options: Options, work: Work) -> dict[str, Any]:
    """Return sizes, patterns, kernels, methods and limits, compatible with JSON.

    Each entry of ``kernels`` has the kernel's own parameters beside name, class, preset, scale, the parameters given on
    top of the preset, and the options of the command line.
    """
    return {
        "suite": options.suite.name if options.suite else None,
        "sizes": asdict(next((case.sizes for case in work.patterns if case.sizes), options.sizes)),
        "workloads": {case.program.key: _pattern(case) for case in work.patterns},
        "kernels": {case.variant: _kernel(case) for case in work.kernels},
        "interfaces": list(dict.fromkeys(case.interface.name for case in work.cases)),
        "strategies": {method.name: dict(method.hints) for method in work.methods},
        "delegates": options.delegates if any(method.delegated for method in work.methods) else None,
        "delegate_mode": options.delegate_mode if any(method.delegated for method in work.methods) else None,
        "hints": options.hints,
        "repetitions": options.repetitions,
        "budget_s": options.budget_s,
        "read_shift": options.read_shift,
        "native_limit_s": options.native_limit_s,
        "native_bytes": options.native_bytes,
    }
