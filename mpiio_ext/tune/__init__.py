"""Find hints that make one program faster, by running it, and prove the gain before keeping any of them.

`mpiio_ext.cli.tune` is the command; here is what it consists of, one idea a module:

========== ===========================================================================================
setting    one candidate: the hints in which a run differs from the program as it is
program    what the first run tells: files, kinds of access, hints in force
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
========== ===========================================================================================

Nothing is imported here: Optuna and SciPy belong to the optional extra `tune`.
"""

from __future__ import annotations

__all__: list[str] = []
