"""mpiio-ext doctor, the path: file system, room, coherence, locks; each bad case provoked."""

from __future__ import annotations

import os
import pathlib
import shutil
import subprocess
import sys
from typing import Any

import pytest

from mpiio_ext.doctor import State, storage
from mpiio_ext.doctor.children import Answer
from support.expected import Expected
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


def test_file_system_that_does_not_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing but the child touches it, not even by stat."""
    monkeypatch.setattr(storage, "ask", lambda *_, **__: Answer(trouble="no answer within 1 s"))
    for call in ("stat", "lstat", "open"):
        monkeypatch.setattr(os, call, lambda *_, **__: pytest.fail("the file system was asked"))
    (found,) = storage.examine(pathlib.Path("/"), {}, 1)
    monkeypatch.undo()
    assert found.state.value == "error" and "no answer within 1 s" in found.text


#: Facts of a file system, as the child tells them.
FACTS: dict[str, dict[str, Any]] = {
    "not coherent": {"file_system": "nfs", "coherent": False, "lock_protocol": "none"},
    "full": {"file_system": "ext4", "coherent": True, "lock_protocol": "local", "free_bytes": 5},
    # as the library has it of Lustre and GPFS: no page cache for all nodes, and files are carried out there
    **{
        f"stripes and locks: {protocol}, {'' if coherent else 'not '}coherent": {
            "file_system": "lustre",
            "stripe_size": 2**22,
            "stripe_count": 8,
            "coherent": coherent,
            "lock_protocol": protocol,
        }
        for protocol, coherent in (("server", True), ("server", False), ("token", False))
    },
}


@pytest.mark.parametrize("name", FACTS)
def test_facts_of_a_file_system(name: str, monkeypatch: pytest.MonkeyPatch, expected: Expected) -> None:
    facts = {key: {"value": value} for key, value in FACTS[name].items()}
    free_bytes = facts.pop("free_bytes", {"value": 1 << 40})["value"]
    answer = Answer(values={"layout": {"facts": facts}, "free_bytes": free_bytes, "refused": ""})
    monkeypatch.setattr(storage, "ask", lambda *_, **__: answer)
    found = storage.examine(pathlib.Path("/"), {}, 1)
    expected([f"{item.key}: {item.state.value}: {item.text} → {item.advice}" for item in found])


@pytest.mark.parametrize(
    ("path", "answer"),
    [("/dev/null", None), ("/proc/self", None), ("/", Answer(values={"errno": 13, "reason": "Permission denied"}))],
    ids=["a device", "no right to write", "no right to look"],
)
def test_paths_that_are_refused(
    path: str, answer: Answer | None, monkeypatch: pytest.MonkeyPatch, expected: Expected
) -> None:
    if answer is not None:
        monkeypatch.setattr(storage, "ask", lambda *_, **__: answer)
    found = storage.examine(pathlib.Path(path), base_environment(), 120)
    errors = [item for item in found if item.state is State.ERROR]
    expected([{"key": item.key, "text": item.text, "advice": item.advice} for item in errors])
