"""mpiio-ext doctor, the path: file system, room, coherence, locks; each bad case provoked."""

from __future__ import annotations

import os
import pathlib
import shutil
import subprocess
import sys
from typing import Any

import pytest

from mpiio_ext.doctor import Finding, storage
from mpiio_ext.doctor.children import Answer
from support.launch import base_environment


def test_path_of_this_machine(tmp_path: pathlib.Path) -> None:
    found = {item.key: item for item in storage.examine(tmp_path, base_environment(), 120)}
    kind = subprocess.run(["stat", "-f", "-c", "%T", str(tmp_path)], capture_output=True, text=True, check=True).stdout
    name = found["path.file_system"].facts["layout"]["file_system"]
    assert name[:3] == kind.strip().replace("overlayfs", "overlay")[:3]
    assert found["path.room"].state.value == "ok"
    here = found["path.file_system"]
    assert "stripe size unknown, 1 MiB assumed" in here.text and "one page cache" in here.text
    assert here.facts["sources"]["stripe_size"] == "default"


def test_path_that_is_not_there_yet(tmp_path: pathlib.Path) -> None:
    found = storage.examine(tmp_path / "a/b", base_environment(), 120)
    assert found[0].state.value == "warning" and found[0].facts["path"] == str(tmp_path)


def test_path_that_is_a_device() -> None:
    (found,) = storage.examine(pathlib.Path("/dev/null"), base_environment(), 120)
    assert found.state.value == "error" and "neither a file nor a folder" in found.text


def test_path_without_the_right_to_write() -> None:
    found = {item.key: item for item in storage.examine(pathlib.Path("/proc/self"), base_environment(), 120)}
    assert found["path.room"].state.value == "error" and "no file can be made" in found["path.room"].text


def test_path_that_may_not_be_searched(tmp_path: pathlib.Path) -> None:
    """The folder above is named, with what the kernel says. Root has to give up the capability to ignore rights."""
    drop: list[str] = []
    if os.geteuid() == 0:
        drop = ["setpriv", "--bounding-set=-dac_override,-dac_read_search"]
        if shutil.which("setpriv") is None:
            pytest.skip("root needs setpriv to be without its capabilities")
    closed = tmp_path / "closed"
    closed.mkdir()
    (closed / "data").touch()
    closed.chmod(0)
    code = (
        "import os, pathlib, sys; from mpiio_ext.doctor import Finding, storage; "
        "print(storage.examine(pathlib.Path(sys.argv[1]), os.environ, 120)[0].text)"
    )
    try:
        command = [*drop, sys.executable, "-c", code, str(closed / "data")]
        done = subprocess.run(command, capture_output=True, text=True, env=base_environment(), timeout=240)
        assert done.stdout.strip() == f"{closed}: Permission denied", done.stderr
    finally:
        closed.chmod(0o700)


def test_path_without_the_right_to_look(monkeypatch: pytest.MonkeyPatch) -> None:
    refused = Answer(values={"errno": 13, "reason": "Permission denied"})
    monkeypatch.setattr(storage, "ask", lambda *_, **__: refused)
    (found,) = storage.examine(pathlib.Path("/"), {}, 1)
    assert found.state.value == "error" and found.text == "/: Permission denied" and found.facts["errno"] == 13


def test_file_system_that_does_not_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing but the child touches it, not even by stat."""
    monkeypatch.setattr(storage, "ask", lambda *_, **__: Answer(trouble="no answer within 1 s"))
    for call in ("stat", "lstat", "open"):
        monkeypatch.setattr(os, call, lambda *_, **__: pytest.fail("the file system was asked"))
    (found,) = storage.examine(pathlib.Path("/"), {}, 1)
    monkeypatch.undo()
    assert found.state.value == "error" and "no answer within 1 s" in found.text


def examined(monkeypatch: pytest.MonkeyPatch, free_bytes: int = 1 << 40, **values: Any) -> dict[str, Finding]:
    """Return what is found of / where the child tells these facts of its file system."""
    answer = {
        "layout": {"facts": {name: {"value": value} for name, value in values.items()}},
        "free_bytes": free_bytes,
        "refused": "",
    }
    monkeypatch.setattr(storage, "ask", lambda *_, **__: Answer(values=answer))
    return {item.key: item for item in storage.examine(pathlib.Path("/"), {}, 1)}


LUSTRE: dict[str, Any] = {"file_system": "lustre", "stripe_size": 2**22, "stripe_count": 8}


def test_file_system_without_coherence(monkeypatch: pytest.MonkeyPatch) -> None:
    found = examined(monkeypatch, file_system="nfs", coherent=False, lock_protocol="none")["path.coherence"]
    assert found.state.value == "warning" and "mpiox_coherence=refresh" in found.advice


def test_stripes_and_locks_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    found = examined(monkeypatch, coherent=True, lock_protocol="server", **LUSTRE)["path.file_system"]
    assert "lustre, stripes of 4 MiB over 8" in found.text and "extent locks of each server" in found.text


@pytest.mark.parametrize("protocol, words", [("server", "the servers' locks"), ("token", "lock tokens")])
def test_locks_keep_caches_coherent(monkeypatch: pytest.MonkeyPatch, protocol: str, words: str) -> None:
    """As the library has it of Lustre and GPFS: no page cache for all nodes, and files are carried out there."""
    found = examined(monkeypatch, coherent=False, lock_protocol=protocol, **LUSTRE)
    assert found["path.coherence"].state.value == "ok" and words in found["path.coherence"].text
    assert words in found["path.file_system"].text


def test_file_system_that_is_full(monkeypatch: pytest.MonkeyPatch) -> None:
    found = examined(monkeypatch, 5, file_system="ext4", coherent=True, lock_protocol="local")["path.room"]
    assert found.state.value == "warning" and "5 B free" in found.text
