"""The start of Spark says nothing, and what a user's function prints in a worker stays."""

from __future__ import annotations

import io
import subprocess
import sys

import pytest

from mpiio_ext.analytics.query import gateway

PROGRAM = """
import sys
from mpiio_ext.analytics.query import open_engine
import pyarrow as pa
from mpiio_ext.analytics.query.tuples import Tuples

def loud(value):
    print(f"looked at {value}", file=sys.stderr)
    return value + 1

with_engine = open_engine("spark", master="local[1]")
tuples = Tuples(with_engine, with_engine.table(pa.table({"x": [41]})))
print(tuples.bin("y", loud, "x", type="int64").rows())
with_engine.close()
"""


def test_remarks_are_left_out_and_others_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    said = io.StringIO()
    monkeypatch.setattr(sys, "stderr", said)
    lines = [
        "WARNING: Using incubator modules: jdk.incubator.vector",
        "Using Spark's default log4j profile: org/apache/spark/log4j2-defaults.properties",
        "26/11/22 07:22:30 WARN Utils: Your hostname, vm, resolves to a loopback address",
        "26/11/22 07:22:31 ERROR SparkContext: Error initializing SparkContext.",
        "WARNING: of a user's own",
        "Error: A JNI error has occurred \xff",
    ]
    gateway._pass_on(io.BytesIO("\n".join(lines).encode("latin-1") + b"\n"))
    assert said.getvalue().splitlines() == [*lines[3:5], "Error: A JNI error has occurred \N{REPLACEMENT CHARACTER}"]


@pytest.mark.slow
def test_a_real_start_is_quiet() -> None:
    pytest.importorskip("ibis")
    pytest.importorskip("pyspark")
    from mpiio_ext.analytics.query.spark import java_missing

    if reason := java_missing():
        pytest.skip(reason)
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "[{'x': 41, 'y': 42}]"
    assert done.stderr.splitlines() == ["looked at 41"]
