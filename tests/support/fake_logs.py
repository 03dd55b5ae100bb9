"""Logs of a made-up kind for the tests of the store: a line of text a row, read by a connector as Darshan's is.

``job NUMBER FILES [OSTS]`` gives one row of ``darshan_job`` and FILES rows of ``darshan_file``. Words that a log may
begin with: ``skip REASON`` (a bad log), ``raise`` (a connector that breaks its promise), ``kill`` (the process ends by
a signal), ``exit`` (the process ends), ``sleep`` (it never ends).
"""

from __future__ import annotations

import os
import pathlib
import signal
import time
from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from mpiio_ext.analytics.setup import Setup, load_setup
from mpiio_ext.analytics.sources.base import Converted, Outcome

__all__ = ["convert", "set_up", "write"]


def _harm(text: str) -> None:
    word = text.split()[0] if text.split() else ""
    if word == "raise":
        raise RuntimeError("a log that the connector cannot stand")
    if word == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    if word == "exit":
        os._exit(7)
    if word == "sleep":
        time.sleep(3600)


def convert(logs: Sequence[str], root: str) -> Converted:
    """Convert made-up logs."""
    jobs: list[dict[str, Any]] = []
    files: list[dict[str, Any]] = []
    outcomes = []
    for number, log in enumerate(logs, 1):
        text = (pathlib.Path(root) / log).read_text()
        _harm(text)
        words = text.split()
        if words[:1] != ["job"]:
            outcomes.append(Outcome(log, "skipped", " ".join(words[1:]) or "empty"))
            continue
        job, count = int(words[1]), int(words[2])
        osts = [int(word) for word in words[3:]] or None
        jobs.append({"job_id": job, "log_id": number, "source": "darshan", "log_file": log, "exe": text.strip()})
        files += [
            {"job_id": job, "log_id": number, "source": "darshan", "file_id": k, "file": f"/f{k}", "osts": osts}
            for k in range(count)
        ]
        outcomes.append(Outcome(log, "whole", "", number, {"darshan_job": 1, "darshan_file": count}))
    tables = {}
    for name, rows in (("darshan_job", jobs), ("darshan_file", files)):
        from mpiio_ext.analytics.tables.schema import TABLES

        tables[name] = pa.Table.from_pylist(rows, schema=TABLES[name].schema())
    return Converted(tables=tables, outcomes=outcomes)


def write(folder: pathlib.Path, name: str, text: str) -> pathlib.Path:
    """Write a log."""
    path = folder / f"{name}.darshan"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def set_up(folder: pathlib.Path, **fields: Any) -> Setup:
    """Return a set-up with the store ``folder/store`` and the logs of ``folder/logs``."""
    (folder / "logs").mkdir(exist_ok=True)
    document = {"store": "store", "inputs": {"darshan": [{"path": "logs", "date": "any"}]}, "workers": 0}
    return load_setup({**document, **fields}, folder)
