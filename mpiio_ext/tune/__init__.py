"""Find hints that make one program faster, by running it, and prove the gain before writing any.

`mpiio_ext.cli.tune` is the command; here is what it consists of, one idea a module:

========== ===========================================================================================
setting    one candidate: the hints in which a run differs from the program as it is
program    what the first run shows: files, kinds of access, hints in force
space      which hints are searched, from the registry and from what the first run did
search     the optimiser (Optuna) behind ask and tell
trial      one run of the program: environment, time limit, output, statistics
objective  the number a run is judged by
evidence   what interleaved pairs of runs prove
outcome    what is asked for, each run, and the result
tuner      the phases: baseline, search, race, prune, confirm
job        a program that is tuned: all phases, and the results of all of them
hintsfile  the user's own hints, and the file that is written
targets    whether the results can be written, asked before the first run
report     what is printed, and the JSON of all runs
found      that JSON for callers from Python
========== ===========================================================================================

`run` tunes a program from Python. Nothing else is imported here: Optuna and SciPy belong to the extra `tune`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypedDict

from mpiio_ext.common.called import Number, Quantity, Several, call, keywords, words_of
from mpiio_ext.tune.found import Tuned

if TYPE_CHECKING:
    from typing_extensions import Unpack

__all__ = ["run"]


class TuneOptions(TypedDict, total=False):
    """Options of ``mpiio-ext tune``, by name."""

    budget: Quantity
    trials: Number
    metric: str | None
    metric_regex: str | None
    lower_is_better: bool | None
    files: str | None
    hint: Several
    hints_file: str | None
    striping: bool | None
    allow_direct: bool | None
    before: str | None
    log: str | None
    confidence: Number
    seed: Number


@keywords(TuneOptions)
def run(command: Sequence[str], *, output: str | Path = "tuned.hints", **options: Unpack[TuneOptions]) -> Tuned:
    """Find hints under which a program is faster, and write them to a file when they are proven.

    Parameters
    ----------
    command : the program, with its launcher and arguments.
    output : the hints file.
    **options : those of the command, by name: ``budget="5m"``, ``metric_regex="..."``.

    Returns
    -------
    Tuned
        All runs and the verdict: a dict with the content of ``--json``, which notebooks display.

    Raises
    ------
    CommandError
        The program, or the search, has failed.
    """
    return carry_out("tune", command, output, options)


def carry_out(kind: str, command: Sequence[str], output: str | Path, options: Mapping[str, object]) -> Tuned:
    """Return the result of ``mpiio-ext tune`` or ``advise``, which is `kind`; the rest as of `run`."""
    words = [kind, *words_of(options), "--output", str(output), "--json"]
    return Tuned(json.loads(call(words, program=command)))
