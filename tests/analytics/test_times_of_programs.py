"""Times in sentences, of programs that print or compute their own truth: no sentence has a time that cannot be.

`tests/samples/times` has logs of Darshan 3.5, without names; what is true stands beside each. ``-slow``: storage of
50 MB/s a rank.
"""

from __future__ import annotations

import pathlib
import re

import pytest
from click.testing import CliRunner

import mpiio_ext
from mpiio_ext.analytics.ledger import of_log
from mpiio_ext.cli import main

SAMPLES = pathlib.Path(__file__).parent.parent / "samples" / "times"

#: Log -> seconds in calls of the slowest rank and of an average one, and parts of the first sentence.
TRUTH = {
    # every file is opened by all ranks and written by one, another for each: 0.70 s by each rank
    "rotate-slow": (0.70, 0.70, r"spent at least 26 % of its time in I/O \(704 ms of 2\.72 s\)"),
    # each file belongs to two of four ranks: 0.87 s by each rank
    "pairs-slow": (0.87, 0.87, r"spent at least 30 % of its time in I/O \(874 ms of 2\.88 s\)"),
    # rank 0 opens 3,000 times, the others 10 times each
    "many": (0.738, 0.189, r"^Rank 0 .* spent at least 98 % of its time in I/O.*an average rank: 25 %"),
    # 1.26 GB are read, and 18 kB of log are written in 3 ms
    "trickle": (5.10, 5.10, r"1\.26 GB were read at 247 MB/s"),
    # 150 files are read in turn for 6 s, and are in calls for 43 ms
    "loader": (0.043, 0.043, r"0\.8 % of its time in I/O \(42\.9 ms of 5\.65 s\)"),
    # 64 MiB of one file are read, then another one is read 180,000 times, 0 B each
    "eof-slow": (8.92, 8.92, r"spent at least 74 % of its time in I/O"),
    # each of four ranks waits for flock, which is in no log, and writes 21 MB
    "lock-slow": (0.459, 0.448, r"spent at least 25 % of its time in I/O"),
}


@pytest.mark.parametrize("name", TRUTH)
def test_the_time_in_io_is_true(name: str) -> None:
    slowest_s, mean_s, words = TRUTH[name]
    ledger = of_log(SAMPLES / f"{name}.darshan")
    for found, true_s in ((ledger.slowest(), slowest_s), (ledger.mean(), mean_s)):
        assert 0.99 * found.least <= true_s <= 1.01 * found.most and found.narrow
    sentence = mpiio_ext.run_report(SAMPLES / f"{name}.darshan").sentence
    assert re.search(words, sentence), sentence


def test_no_rate_is_faster_than_its_calls() -> None:
    """Bytes of a file without time in calls once made 8.91 TB/s of 15.2 MB/s."""
    for path in sorted(SAMPLES.glob("*.darshan")):
        text = CliRunner().invoke(main, ["analyze", "logs", str(path)]).stdout
        ledger = of_log(path)
        least_s = min(ledger.clock(way).least for way in ("read", "write") if ledger.moved(way))
        most = max(ledger.moved(way) for way in ("read", "write")) / least_s
        first = " ".join(text.split("\n\n")[1].split())
        for number, unit in re.findall(r"at (?:between )?([\d.,]+) ([kMGT]?)B/s", first):
            rate = float(number.replace(",", "")) * 1000 ** " kMGT".index(unit or " ")
            assert rate <= 1.01 * most, (path.name, first)


def test_logs_at_the_same_time_have_bounds() -> None:
    """Four programs write for the first 0.2 s of each second, at the same time: 20 %, of which logs show no more."""
    logs = [str(SAMPLES / f"beat.{k}.darshan") for k in range(1, 5)]
    text = " ".join(CliRunner().invoke(main, ["analyze", "logs", "--one-job", *logs]).stdout.split())
    (least, most), *_ = re.findall(r"I/O takes between (\d+) % and (\d+) % of the time", text)
    assert int(least) <= 20 <= int(most) < 32
