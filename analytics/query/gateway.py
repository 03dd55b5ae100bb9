"""The Java process of Spark, without its remarks on the terminal.

Problem. A Java process that starts Spark writes half a dozen lines to the standard error stream (incubator modules, the
host's name, no native Hadoop) before any log level that a program sets counts. A command with one-line errors must not
print these lines first; but the output of a user's function in a worker arrives in the same way, and must be printed.

Algorithm. The process is started here, with a pipe as its standard error stream, and a thread passes on the lines that
are not known to be remarks of a start.
"""

from __future__ import annotations

import re
import subprocess
import threading
from typing import IO, Any

from mpiio_ext.common.printing import echo

#: Remarks of Java's and Spark's start; log lines of Log4j have a date, a time and a level.
_REMARK = re.compile(
    rb"WARNING: Using incubator modules|Using Spark's default log4j profile|Setting default log level to"
    rb"|To adjust logging level use|\d\d/\d\d/\d\d \d\d:\d\d:\d\d (?:WARN|INFO|DEBUG) "
)


def quiet_context(conf: Any) -> None:
    """Start Spark's Java process and its context, quietly; running ones stay as they are.

    Parameters
    ----------
    conf : pyspark.SparkConf
        With the master and the application's name.
    """
    from pyspark import SparkContext
    from pyspark.java_gateway import launch_gateway

    if SparkContext._gateway is not None or SparkContext._active_spark_context is not None:
        return
    gateway = launch_gateway(conf, {"stderr": subprocess.PIPE})  # type: ignore[no-untyped-call]
    process = getattr(gateway, "proc", None)
    if process is not None and process.stderr is not None:  # none where a gateway of others is used
        threading.Thread(target=_pass_on, args=(process.stderr,), name="stderr of Spark", daemon=True).start()
    SparkContext(conf=conf, gateway=gateway)


def _pass_on(stream: IO[bytes]) -> None:
    for line in stream:
        if not _REMARK.match(line):
            echo(line.decode("utf-8", "replace"), nl=False, err=True)
