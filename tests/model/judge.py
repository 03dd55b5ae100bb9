"""What the ranks saw, judged against the model: reads once no later write can change them, sizes likewise."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from model.consistency import File, Reading, Sizing
from model.history import BLANK

Results = list[list[dict[str, Any] | None]]


@dataclass(slots=True)
class Check:
    """A read that is judged when it is no longer open to later writes."""

    name: str
    file: File
    reading: Reading
    result: dict[str, Any] | None


@dataclass(slots=True)
class Question:
    """A question for the size, judged likewise."""

    name: str
    sizing: Sizing
    result: dict[str, Any] | None


@dataclass(slots=True)
class Judge:
    """What the ranks saw, and what was wrong with it."""

    results: Results
    problems: list[str] = field(default_factory=list)
    checks: list[Check] = field(default_factory=list)
    questions: list[Question] = field(default_factory=list)

    def settle(self, *, everything: bool) -> None:
        """Judge the reads that are over."""
        left: list[Check] = []
        for check in self.checks:
            if not check.reading.done and not everything:
                left.append(check)
            elif check.result is not None and "error" not in check.result:
                self.read(check)
        self.checks = left
        for question in self.questions:
            size = (question.result or {}).get("size")
            if size is not None and not question.sizing.least <= size <= max(question.sizing.sizes):
                self.problems.append(
                    f"size: {question.name}: {size}, expected {question.sizing.least} to {max(question.sizing.sizes)}"
                )
        self.questions = []

    def read(self, check: Check) -> None:
        """Judge one read."""
        result = check.result or {}
        n, got = result["n"], np.frombuffer(result["data"], np.uint8)
        if result["spoilt"]:
            self.problems.append(f"memory: {check.name}: bytes between the pieces of the buffer were changed")
        if check.reading.several_calls and check.reading.shortest < check.reading.longest:
            n = check.reading.allow_blanks()  # the end may have moved between the calls
        problem = check.reading.check(got, n) if 0 <= n <= len(got) else f"{n} bytes of {len(got)} were read"
        if problem is None:
            problem = check.file.learn(check.reading, got[:n])
        if problem is None and (got[n:] != BLANK).any():
            problem = f"bytes behind the {n} that were read are changed"
        if problem is not None:
            self.problems.append(f"read: {check.name}: {problem}")
