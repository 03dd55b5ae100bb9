"""Many small Python programs in few launches, each of them a case with a result of its own.

Starting the ranks takes longer than what most of these programs do. A test module therefore lists its programs as
:class:`Case`; all cases with the same number of ranks run one after the other in one launch
(``tests/programs/run_cases.py``) as soon as a test asks for the result of one of them. What a program depends on from
outside, its arguments and the environment variables that the library reads when a file is opened, is set case by case.
A case that fails or hangs ends its launch and fails alone: what stands behind it runs in another launch.

Programs that test the start, the end or the messages of a process, and those that run without the library, are no
cases.
"""

from __future__ import annotations

import json
import pathlib
import textwrap
from collections.abc import Mapping
from dataclasses import dataclass, field

from support.launch import PATIENCE, PROGRAMS, LaunchError, python_run

START_S = 120.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One program.

    Attributes
    ----------
    text : the program in Python; mpiio_ext and MPI are loaded when it starts.
    ranks : number of processes.
    arguments : its arguments from sys.argv[1] on; ``{folder}`` stands for an empty folder of its own.
    environment : variables that are set while it runs; ``{folder}`` as above.
    files : files in its folder before it starts, name -> content.
    thread_level : what the launch asks MPI for ("serialized", "multiple"; "": mpi4py's default).
    limit_s : the case has failed after PATIENCE times this many seconds.
    """

    text: str
    ranks: int
    arguments: tuple[str, ...] = ("{folder}",)
    environment: Mapping[str, str] = field(default_factory=dict)
    files: Mapping[str, str] = field(default_factory=dict)
    thread_level: str = ""
    limit_s: float = 90.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """What a case left: its folder, what each rank printed, and why it failed (empty: it did not)."""

    folder: pathlib.Path
    stdout: tuple[str, ...] = ()
    error: str = ""


def program_case(name: str, ranks: int, *arguments: str, **environment: str) -> Case:
    """Return the program tests/programs/NAME.py, which has a main(), as a case."""
    text = f"import sys\nsys.path.insert(0, {str(PROGRAMS)!r})\nimport {name}\n{name}.main()\n"
    return Case(text=text, ranks=ranks, arguments=arguments, environment=environment)


class Cases:
    """The cases of a test module and, as far as they were asked for, their results."""

    def __init__(self, cases: Mapping[str, Case], folder: pathlib.Path) -> None:
        self.cases = dict(cases)
        self.folder = folder
        self.launches = 0
        self.results: dict[str, Result] = {}

    def result(self, name: str) -> Result:
        """Return what a case left; raise LaunchError if it failed. Runs its whole group when it has not run yet."""
        if name not in self.results:
            self._run_group(name)
        found = self.results[name]
        if found.error:
            raise LaunchError(f"case {name}: {found.error}")
        return found

    def _run_group(self, name: str) -> None:
        def group(case: Case) -> tuple[int, str]:
            return case.ranks, case.thread_level

        wanted = group(self.cases[name])
        left = [each for each, case in self.cases.items() if group(case) == wanted and each not in self.results]
        while left:
            done = self._launch(left, *wanted)
            self.results |= done
            left = left[len(done) :]

    def _launch(self, names: list[str], ranks: int, thread_level: str) -> dict[str, Result]:
        """Run cases in one launch, up to the first that fails; return the results, at least one."""
        self.launches += 1
        place = self.folder / f"launch{self.launches}"
        place.mkdir()
        folders = [place / f"case{index}" for index in range(len(names))]
        listed = []
        for name, folder in zip(names, folders, strict=True):
            folder.mkdir()
            case = self.cases[name]
            for file, content in case.files.items():
                (folder / file).write_text(content, encoding="utf-8")
            listed.append(
                {
                    "name": name,
                    "text": textwrap.dedent(case.text),
                    "arguments": [word.replace("{folder}", str(folder)) for word in case.arguments],
                    "environment": {
                        key: value.replace("{folder}", str(folder)) for key, value in case.environment.items()
                    },
                    "limit_s": PATIENCE * case.limit_s,
                }
            )
        (place / "cases.json").write_text(json.dumps(listed), encoding="utf-8")
        limit_s = START_S + sum(self.cases[name].limit_s for name in names)
        words = [PROGRAMS / "run_cases.py", place / "cases.json", place, *([thread_level] if thread_level else [])]
        launch = python_run(words, ranks, timeout_s=limit_s, check=False)
        results: dict[str, Result] = {}
        for index, (name, folder) in enumerate(zip(names, folders, strict=True)):
            written = [place / f"{index}.{rank}.json" for rank in range(ranks)]
            seen = [json.loads(path.read_text("utf-8")) for path in written if path.exists()]
            errors = [each["error"] for each in seen if each["error"]]
            if len(seen) == ranks and not errors:
                results[name] = Result(folder=folder, stdout=tuple(each["stdout"] for each in seen))
                continue
            reason = errors[0] if errors else f"ended on {len(seen)} of {ranks} ranks"
            results[name] = Result(folder=folder, error=f"{reason}\n{launch.describe()}")
            return results
        if launch.timed_out or launch.returncode != 0:  # all cases were well and the end was not
            last = names[-1]
            results[last] = Result(folder=folders[-1], error=f"after the last case\n{launch.describe()}")
        return results
