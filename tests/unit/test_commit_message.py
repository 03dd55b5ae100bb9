"""The hook that checks commit messages: what it refuses, and what it lets pass."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from support.launch import ROOT

BODY = "\n\nThe reason.\n"


def refused(folder: Path, message: str) -> list[str]:
    """Return the lines that the hook prints about a message."""
    (folder / "message").write_text(message, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, ROOT / "scripts/commit_message.py", folder / "message"],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    lines = done.stdout.splitlines()
    assert done.returncode == int(bool(lines)), done.stderr
    return lines


@pytest.mark.parametrize(
    "message",
    [
        "A subject" + BODY,
        "x" * 72 + BODY,
        "Words of a glossary are links" + BODY,
        "Merging reads blocks in order" + BODY,
        "Merge refuses a copy" + BODY,
        "A subject\n\nCause: a count that began at one.\n",
        "A subject" + BODY + "# a comment of git\n",
        "A subject" + BODY + "# ------------------------ >8 ------------------------\n" + "+" * 99,
        "A subject" + BODY + "\nSigned-off-by: A Person <a@example.org>\n",
    ],
)
def test_good_messages_pass(tmp_path: Path, message: str) -> None:
    assert refused(tmp_path, message) == []


@pytest.mark.parametrize(
    ("message", "word"),
    [
        ("x" * 73 + BODY, "73 characters"),
        ("wip" + BODY, "names no change"),
        ("WIP: tracer" + BODY, "names no change"),
        ("Width of a line" + BODY, "names no change"),
        ("Words" + BODY, "names no change"),
        ("fixup! A subject" + BODY, "names no change"),
        ("Merge branch 'int'" + BODY, "names no change"),
        ("A subject\nThe reason.\n", "not empty"),
        ("A subject\n", "no body"),
        ("A subject\n\nSigned-off-by: A Person <a@example.org>\n", "no body"),
    ],
)
def test_bad_messages_are_refused(tmp_path: Path, message: str, word: str) -> None:
    (line,) = refused(tmp_path, message)
    assert word in line
