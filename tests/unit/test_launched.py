"""Jobs that commands start end with the command, also where it is killed and ranks are in sessions of their own."""

from __future__ import annotations

import os
import pathlib
import signal
import subprocess
import sys
import time
from typing import Any

import pytest

from mpiio_ext import launchers
from mpiio_ext.common import keeper
from mpiio_ext.common.children import launched
from support.launch import marked_processes
from support.marks import slow
from support.processes import job

#: A launcher that heeds nothing, with a rank in a session of its own.
STUBBORN = """
import os, signal, subprocess, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
if len(sys.argv) > 1:
    subprocess.Popen([sys.executable, sys.argv[0]], start_new_session=True)
time.sleep(600)
"""
COMMAND = """
import sys
from mpiio_ext.common.children import launched
with launched([sys.executable, sys.argv[1], "rank"]) as process:
    process.wait()
"""


def test_status_and_output() -> None:
    with launched(
        [sys.executable, "-c", "print('said'); raise SystemExit(7)"], stdout=subprocess.PIPE, text=True
    ) as process:
        out, _ = process.communicate(timeout=60)
    assert process.returncode == 7 and out == "said\n"
    with pytest.raises(FileNotFoundError), launched(["/nowhere/launcher"]):
        pass


def test_it_is_ended_with_the_block(tmp_path: pathlib.Path) -> None:
    program = tmp_path / "stubborn.py"
    program.write_text(STUBBORN)
    marker = ""
    with pytest.raises(subprocess.TimeoutExpired), launched([sys.executable, str(program), "rank"]) as process:
        until = time.monotonic() + 60
        while not marker and time.monotonic() < until:  # one in execve shows no environment
            for variable in pathlib.Path(f"/proc/{process.pid}/environ").read_bytes().split(b"\0"):
                if variable.startswith(b"MPIIO_EXT_JOB="):
                    marker = variable.decode().partition("=")[2]
        while len(keeper.marked(marker)) < 2 and time.monotonic() < until:
            time.sleep(0.02)
        process.wait(timeout=0.1)
    assert marker and keeper.marked(marker) == []


def test_it_is_ended_where_its_start_is_interrupted(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C within Popen: the launcher is there, but nobody has been given it."""
    program = tmp_path / "stubborn.py"
    program.write_text(STUBBORN)
    popen, markers = subprocess.Popen, []

    def interrupted(command: list[str], **options: Any) -> Any:
        process = popen(command, **options)
        if str(program) in command:
            markers.append(options["env"]["MPIIO_EXT_JOB"])
            raise KeyboardInterrupt
        return process

    monkeypatch.setattr(subprocess, "Popen", interrupted)
    with pytest.raises(KeyboardInterrupt), launched([sys.executable, str(program), "rank"]):
        pass
    assert len(markers) == 1 and keeper.marked(markers[0]) == []


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, *slow(signal.SIGHUP)])
def test_it_is_ended_with_the_command(tmp_path: pathlib.Path, number: int) -> None:
    """The command is killed: nothing that it has started is left, its keeper neither."""
    (tmp_path / "stubborn.py").write_text(STUBBORN)
    (tmp_path / "command.py").write_text(COMMAND)
    with job([sys.executable, tmp_path / "command.py", tmp_path / "stubborn.py"], tmp_path / "log") as command:
        until = time.monotonic() + 60
        found = 0  # command, keeper, launcher, rank; one in execve is not seen
        while (found := max(found, len(marked_processes(command.marker)))) < 4 and time.monotonic() < until:
            time.sleep(0.02)
        assert found == 4, command.text()
        command.process.send_signal(number)
        assert not command.left(60)


def test_a_job_of_hydra_is_named_by_where_its_launcher_listens(tmp_path: pathlib.Path) -> None:
    """A rank is below a shell below the proxy; two jobs have two names, and who has no proxy has none."""

    def process(number: int, parent: int, *words: str) -> None:
        (tmp_path / str(number)).mkdir()
        (tmp_path / str(number) / "cmdline").write_bytes(b"".join(word.encode() + b"\0" for word in words))
        (tmp_path / str(number) / "stat").write_text(f"{number} (a) b) S {parent} 1 1 0")

    process(os.getpid(), 7, "python", "mpiio-ext", "run")
    process(7, 5, "sh", "-c", "mpiio-ext run")
    rank = {"PMI_RANK": "1"}
    assert launchers.job_name(rank, tmp_path) == ""
    process(5, 4, "/opt/bin/hydra_pmi_proxy", "--control-port", "login1:40895", "--proxy-id", "0")
    assert launchers.job_name(rank, tmp_path) == "login1:40895"
    assert launchers.job_name({}, tmp_path) == ""
    assert launchers.job_name({"PMIX_NAMESPACE": "x", **rank}, tmp_path) == "x"
    (tmp_path / "5" / "cmdline").write_bytes(b"hydra_pmi_proxy\0--control-port\0")
    assert launchers.job_name(rank, tmp_path) == ""
