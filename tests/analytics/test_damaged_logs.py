"""Damaged logs: what is intact is reported as a lower bound, and what could not be read is named."""

from __future__ import annotations

import json
import pathlib
import shutil
import struct
import zlib
from collections.abc import Iterator

import pytest
from click.testing import CliRunner

from mpiio_ext.analytics.diagnosis.activity import Activity
from mpiio_ext.analytics.diagnosis.model import LOST, UNLESS
from mpiio_ext.analytics.report.findings import Known
from mpiio_ext.analytics.report.logs import by_job, converted
from mpiio_ext.analytics.report.steps import of_job
from mpiio_ext.cli import main
from mpiio_ext.common.darshanfile import MODULES, DarshanFile
from support.darshan_logs import Log, place_of
from support.job_logs import run, told, written_log

SAMPLES = pathlib.Path(__file__).parent.parent / "samples" / "diagnosis"


def test_a_log_that_is_cut_off_tells_what_is_intact_and_ends_with_1(tmp_path: pathlib.Path) -> None:
    whole = written_log(tmp_path / "whole.darshan", (0, 100), (10, 60))
    data = whole.read_bytes()
    cut, posix = tmp_path / "cut.darshan", Log.parse(data)
    posix.modules[place_of("STDIO", posix.version)] = 2, posix.modules[place_of("POSIX", posix.version)][1]
    cut.write_bytes(posix.pack()[:-5])
    done = CliRunner().invoke(main, ["analyze", "logs", str(cut)])
    assert done.exit_code == 1
    assert "cut.darshan: partial: STDIO " in done.stderr
    facts = [
        line for line in run("logs", whole).stdout.splitlines() if line.startswith("  read, written at the file system")
    ]
    assert facts[0] in done.stdout and "not known" not in facts[0]
    assert "log is incomplete" in done.stdout


def test_a_log_that_cannot_be_read_is_told_where_the_job_is(tmp_path: pathlib.Path) -> None:
    logs = [
        written_log(tmp_path / f"{k}.darshan", (100 * k, 100 * k + 50), (1, 21), bytes_written=32 << 20)
        for k in range(3)
    ]
    logs[1].write_bytes(logs[1].read_bytes()[:300])
    assert told(logs, status=1)[0]["facts"]["read, written at the file system"] == "0 B, 67.1 MB"  # not 67,108,864 B
    words = told(logs, status=1)[0]["facts"]["not read"]
    assert words.endswith(": 1.darshan") and words in run("logs", *logs, status=1).stdout
    assert told(logs, "--anonymous", status=1)[0]["facts"]["not read"] == words.removesuffix(": 1.darshan")
    run("logs", *logs, "-o", tmp_path / "job.html", status=1)
    assert words in (tmp_path / "job.html").read_text()
    logs.append(written_log(tmp_path / "other.darshan", (0, 9), (1, 2), job_id=9))
    named = tmp_path / "me_app_id9-1_1-1-1-1_1.darshan"
    named.write_bytes(logs[1].read_bytes())
    nobody = "1.darshan (owner unknown)"
    assert [job["facts"]["not read"].partition(": ")[2] for job in told([*logs, named], status=1)] == [
        nobody,
        f"{nobody}, {named.name}",
    ]


def test_a_store_names_the_logs_of_a_job_that_it_could_not_read(tmp_path: pathlib.Path) -> None:
    written_log(tmp_path / "logs" / "me_app_id42-1_1-1-1-1_1.darshan", (0, 50), (1, 21))
    for job in (42, 43):
        (tmp_path / "logs" / f"me_app_id{job}-2_1-1-1-1_2.darshan").write_bytes(b"no log")
    setup = tmp_path / "setup.json"
    setup.write_text(json.dumps({"store": "store", "inputs": {"darshan": ["logs"]}}))
    run("init", setup)
    found = json.loads(run("job", "--json", "--setup", setup, 42).stdout)
    assert found["facts"]["not read"].endswith(": me_app_id42-2_1-1-1-1_2.darshan")


def test_of_files_that_logs_have_lost_nobody_says_that_they_take_little(tmp_path: pathlib.Path) -> None:
    paths = [written_log(tmp_path / f"{k}.darshan", (0, 100), (10, 10.9)) for k in range(2)]
    (logs,) = by_job([(path, tables) for path, _, tables in converted(paths)])
    seen = {1: Activity("", 4, 12.0, full=True)}
    assert of_job(logs.tables, Known(), {}, {}).conclusion.endswith(f" worth tuning{UNLESS}.")
    lost = of_job(logs.tables, Known(), seen, {}).conclusion
    assert "at least 0.9 %" in lost and LOST in lost and "worth tuning" not in lost


def flat(text: str) -> str:
    return " ".join(text.split())


def damage(log: pathlib.Path) -> Iterator[tuple[str, str, bytes]]:
    """Yield a module of a log, what happens to it, and the log's bytes then, for all modules."""
    whole = log.read_bytes()
    for module, region in DarshanFile(log).modules.items():
        middle, number = region.offset + region.length // 3, MODULES.index(module)
        flipped, gone, full = bytearray(whole), bytearray(whole), Log.parse(whole)
        flipped[middle : middle + 6] = bytes(byte ^ 90 for byte in whole[middle : middle + 6])
        struct.pack_into("<QQ", gone, 32 + 16 * (number + 1), 0, 0)
        full.partial |= 1 << number
        yield from ((module, "flipped", flipped), (module, "gone", gone), (module, "full", full.pack()))


def without_other_counters(log: pathlib.Path) -> None:
    """Make a log whose counters are POSIX's only, with empty regions of two other modules."""
    made = Log.parse(written_log(log, (0, 100), (10, 11)).read_bytes())
    made.modules[place_of("STDIO", made.version)] = (2, zlib.compress(b""))
    made.modules[place_of("HEATMAP", made.version)] = (1, zlib.compress(b""))
    log.write_bytes(made.pack())


@pytest.mark.parametrize("posix_only", [False, True])
def test_of_a_damaged_log_times_are_lower_bounds(posix_only: bool, tmp_path: pathlib.Path) -> None:
    """Whichever module is damaged, or gone: status 1, and no sentence says that there is nothing to change.

    Without POSIX's counters nothing is known of the time, and nothing at all where no other module has counters.
    """
    log = tmp_path / "run.darshan"
    if posix_only:
        without_other_counters(log)
    else:
        shutil.copy(SAMPLES / "late_to_collectives-4-2-dxt.darshan", log)
    assert ("worth tuning" in flat(run("logs", log).stdout)) == posix_only
    for module, how, data in damage(log):
        log.write_bytes(data)
        unread = module == "POSIX" and how != "full" and posix_only
        done = run("logs", log, status=2 if unread else {"flipped": 1, "gone": 1, "full": 0}[how])
        text, what = flat(done.stdout), f"{module} {how}: {done.output}"
        assert "run.darshan: " in done.stderr and "log is incomplete" in text, what
        if how == "full" and module not in ("POSIX", "MPI-IO", "STDIO"):  # the counters have all calls
            continue
        assert ("Nothing could be" in text) == (unread or (module, how) == ("POSIX", "flipped")), what
        assert ("spent at least" in text) == ("Nothing could be" not in text), what
        assert "worth tuning" not in text and "nothing to change" not in text, what
