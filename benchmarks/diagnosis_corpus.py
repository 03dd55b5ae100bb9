"""Logs of programs whose I/O problem is known, and what the diagnosis says of them.

Usage: ``python benchmarks/diagnosis_corpus.py --darshan LIBDARSHAN.so [--logs DIR] [--scales 2x1,4x2] [KIND|GROUP]``

Compiles ``diagnosis/*.c`` and runs each kind of :mod:`diagnosis_truth` under Darshan's runtime: at each scale (ranks x
size) as it is and with DXT; at the middle one also without HEATMAP, and with slow storage where its requests are large.
``--library`` runs those that call MPI-IO as they are, and with the library in front of Darshan and behind it. Keeps the
logs in ``--logs`` with ``truth.jsonl`` beside them: log, kind, causes with their shares, ranks, size, variant, and the
time of each part. Then judges them (:mod:`diagnosis_scores`). ``--check`` judges the logs of a folder, runs nothing.
"""

from __future__ import annotations

import argparse
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "tests")]

import diagnosis_scores  # noqa: E402
from diagnosis_truth import KINDS, VARIANTS  # noqa: E402

from support.launch import base_environment, launcher, run_bounded  # noqa: E402

SOURCES = sorted(str(path) for path in (HERE / "diagnosis").glob("*.c"))
INPUT_BYTES = 64 << 20  # INPUT_MIB of kernel.h
TIMEOUT_S = 300.0


def environment_of(variant: str, kind: str, data: str, tools: dict[str, str]) -> dict[str, str]:
    """Return the variables of a run: what is preloaded, and in which order."""
    preloaded, found = [tools["darshan"]], {}
    if variant in ("front", "behind"):
        from mpiio_ext._load import get_library

        preloaded.insert(0 if variant == "front" else 1, str(get_library()))
    slow = variant.startswith("slow")
    if slow or KINDS[kind].possible:
        preloaded.append(tools["slow_storage"])
        below = data if slow else f"{data}/slow"
        found |= {"SLOW_STORAGE_PATH": below, "SLOW_STORAGE_MBPS": "200" if slow else "20"}
    found |= {"DXT_ENABLE_IO_TRACE": "1"} if variant.endswith("dxt") else {}
    found |= {"DARSHAN_MOD_DISABLE": "HEATMAP"} if variant == "bare" else {}
    return found | {"LD_PRELOAD": ":".join(preloaded)}


def run(kind: str, ranks: int, size: int, variant: str, arguments: argparse.Namespace) -> dict[str, object]:
    """Run one kind; return the row of its log, whose program and preloaded libraries are in `arguments.tools`."""
    name = f"{kind.replace(':', '')}-{ranks}-{size}-{variant}.darshan"
    with tempfile.TemporaryDirectory(dir=arguments.path) as data, tempfile.TemporaryDirectory() as logs:
        pathlib.Path(data, "input").write_bytes(bytes(INPUT_BYTES))
        pathlib.Path(data, "slow").mkdir()
        own = environment_of(variant, kind, data, arguments.tools) | {"DARSHAN_LOGPATH": logs}
        command = [launcher() or "mpiexec", "-n", str(ranks), "env", *(f"{key}={value}" for key, value in own.items())]
        environment = base_environment() | {"OMPI_MCA_io": "romio321"}
        done = run_bounded([*command, arguments.tools["program"], kind, data, str(size)], env=environment,
                           timeout_s=TIMEOUT_S)  # fmt: skip
        (log,) = pathlib.Path(logs).rglob("*.darshan")
        shutil.move(log, arguments.logs / name)
    parts = [line.split() for line in done.stdout.splitlines() if line.split(" ")[0] in KINDS]
    causes = [{"cause": cause, "share": share} for cause, share in KINDS[kind].causes.items()]
    return {"log": name, "kind": kind, "group": KINDS[kind].group, "causes": causes, "ranks": ranks, "size": size,
            "variant": variant, "seconds": {part[0]: float(part[1]) for part in parts}}  # fmt: skip


def compiled(folder: str, darshan: str) -> dict[str, str]:
    """Compile the program and the storage that is slow; return the paths of all that a run needs."""
    found = {name: os.path.join(folder, name) for name in ("program", "slow_storage")}  # noqa: PTH118
    mpicc = shutil.which("mpicc", path=f"{pathlib.Path(sys.prefix) / 'bin'}:{os.environ['PATH']}") or "mpicc"
    subprocess.run([mpicc, "-O2", "-D_GNU_SOURCE", "-o", found["program"], *SOURCES], check=True)
    source = str(HERE / "slow_storage.c")
    subprocess.run(["cc", "-O2", "-shared", "-fPIC", "-o", found["slow_storage"], source, "-ldl"], check=True)
    return found | {"darshan": str(pathlib.Path(darshan).resolve())}


def runs(arguments: argparse.Namespace) -> Iterator[tuple[str, int, int, str]]:
    """Yield what is to be run: kind, ranks, size, variant."""
    for name in arguments.kinds:
        kind = KINDS[name]
        for ranks, size in arguments.scales:
            middle = (ranks, size) == arguments.scales[len(arguments.scales) // 2]
            variants = ["plain", "dxt", *(["bare", *(["slow"] if kind.large else [])] if middle else [])]
            if arguments.library:
                variants = ["plain", "front", "behind"] if kind.mpiio else []
            for variant in variants:
                if arguments.variants is None or variant in arguments.variants:
                    yield name, ranks, size, variant


def make(arguments: argparse.Namespace) -> None:
    """Run all that is asked for, and write the truth beside the logs."""
    arguments.logs.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder, (arguments.logs / "truth.jsonl").open("w") as truth:
        arguments.tools = compiled(folder, arguments.darshan)
        for one in runs(arguments):
            truth.write(json.dumps(run(*one, arguments)) + "\n")
            truth.flush()


def scales(text: str) -> list[tuple[int, int]]:
    """Return (ranks, size) of each ``RANKSxSIZE``."""
    return [(int(ranks), int(size)) for ranks, size in (one.split("x") for one in text.split(","))]


def chosen(parser: argparse.ArgumentParser, words: list[str]) -> list[str]:
    """Return the kinds that are named, by themselves or by their group; all where none is."""
    found: list[str] = []
    for word in words or ["known", "held", "later", "last", "fresh", "second", "mixture"]:
        named = [name for name, kind in KINDS.items() if word in (name, kind.group)]
        if not named:
            parser.error(f"{word}: there is no such kind; there are {', '.join(KINDS)}")
        found += named
    return found


def main() -> None:
    """Run and judge."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kinds", nargs="*", metavar="KIND|GROUP", help="default: all")
    parser.add_argument("--darshan", help="Darshan's runtime library for this MPI")
    parser.add_argument("--logs", type=pathlib.Path, default=pathlib.Path("diagnosis-corpus"), help="folder of logs")
    parser.add_argument("--path", help="folder of the data (default: that of temporary files)")
    parser.add_argument("--scales", type=scales, default=scales("2x1,4x2,7x3"), metavar="RANKSxSIZE,…")
    parser.add_argument("--variants", type=lambda text: text.split(","), help=f"of {', '.join(VARIANTS)}")
    parser.add_argument("--library", action="store_true", help="without and with the library, in front and behind")
    parser.add_argument("--check", action="store_true", help="judge the logs of the folder, run nothing")
    parser.add_argument("--drishti", metavar="COMMAND", help="drishti of drishti-io: what it flags of the plain logs")
    parser.add_argument("--json", type=pathlib.Path, help="write the results there")
    arguments = parser.parse_args()
    arguments.kinds = chosen(parser, arguments.kinds)
    if not arguments.check:
        if not arguments.darshan:
            parser.error("--darshan: where Darshan's libdarshan.so is; or --check for logs that are there")
        make(arguments)
    diagnosis_scores.report(arguments.logs, arguments.json, arguments.drishti)


if __name__ == "__main__":
    main()
