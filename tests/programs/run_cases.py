"""Run many small programs in one launch: ``run_cases.py CASES.json FOLDER [THREAD-LEVEL]``, under mpirun.

CASES.json is a list of cases: name, text of the program, arguments, environment, limit_s. Every rank runs each of them
in turn in a namespace of its own and writes what became of it into FOLDER/INDEX.RANK.json. The first rank that fails
ends the launch, since the others may wait for it; so does a case that takes longer than its limit. Whoever started the
launch (support/cases.py) then starts another one for what is left.
"""

from __future__ import annotations

import contextlib
import faulthandler
import io
import json
import os
import pathlib
import sys
import time
import traceback
from typing import Any

import mpi4py

if len(sys.argv) > 3:
    mpi4py.rc.thread_level = sys.argv[3]

import mpiio_ext  # noqa: F401  (before MPI: the library is active)

# isort: split
from mpi4py import MPI

#: Seconds that a failing rank leaves to others for saying that they fail, too.
LAST_WORDS_S = 1.0


@contextlib.contextmanager
def surroundings(case: dict[str, Any]):
    """Put the arguments and the environment of a case in place, and restore both afterwards."""
    arguments, before = sys.argv, dict(os.environ)
    sys.argv = [case["name"], *case["arguments"]]
    os.environ.update(case["environment"])
    try:
        yield
    finally:
        sys.argv = arguments
        for name in set(os.environ) - set(before):
            del os.environ[name]
        os.environ.update(before)


def run(case: dict[str, Any]) -> dict[str, Any]:
    """Run one case; return what it printed and why it failed, if it did."""
    output = io.StringIO()
    error = None
    faulthandler.dump_traceback_later(case["limit_s"], exit=True)
    try:
        with surroundings(case), contextlib.redirect_stdout(output):
            exec(compile(case["text"], case["name"], "exec"), {"__name__": "__main__"})
    except BaseException:  # SystemExit, too: a program that ends early has not done what it was to do
        error = traceback.format_exc()
    finally:
        faulthandler.cancel_dump_traceback_later()
    return {"stdout": output.getvalue(), "error": error}


def main() -> None:
    """Run the cases in turn."""
    cases, folder = json.loads(pathlib.Path(sys.argv[1]).read_text("utf-8")), pathlib.Path(sys.argv[2])
    control = MPI.COMM_WORLD.Dup()
    for index, case in enumerate(cases):
        result = run(case)
        path = folder / f"{index}.{control.rank}.json"
        path.with_suffix(".part").write_text(json.dumps(result), encoding="utf-8")
        path.with_suffix(".part").rename(path)
        if result["error"] is not None:
            print(result["error"], file=sys.stderr, flush=True)
            time.sleep(LAST_WORDS_S)
            control.Abort(1)
        control.Barrier()  # nobody is still in this case when the next one begins


main()
