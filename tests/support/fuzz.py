"""How many examples random tests take, and from which seed.

A quarter of the examples runs every time, all of them with ``--run-slow`` (`make test-all`). There alone the seed is
another one each time; pytest prints it at the head and with each test that fails, and ``MPIOX_TEST_SEED=N`` in the
environment repeats it. Hypothesis has it, and what draws in C. Tests whose seed is part of what they state
(comparisons of methods) keep their own, unless that variable is set.
"""

from __future__ import annotations

import os
import random

import hypothesis
import pytest

SEED_NAME, DRAWN_NAME, ALL_NAME = "MPIOX_TEST_SEED", "MPIOX_TEST_DRAWN_SEED", "MPIOX_TEST_ALL_EXAMPLES"
#: Where hypothesis keeps the settings of a test: it can be told them once only, by the decorator.
SETTINGS = "_hypothesis_internal_use_settings"


def start(all_examples: bool) -> None:
    """Draw the seed of all examples, unless there is one. Workers and launched programs get it by the environment."""
    if all_examples:
        os.environ.setdefault(DRAWN_NAME, str(random.SystemRandom().randrange(1, 1_000_000)))
        os.environ[ALL_NAME] = "1"


def seed() -> str:
    """Return the seed of this run of the suite."""
    return os.environ.get(SEED_NAME) or os.environ.get(DRAWN_NAME, "1")


def data(size: int) -> bytes:
    """Return bytes that do not compress, the same in each run with this seed."""
    return random.Random(int(seed())).randbytes(size)


def all_examples() -> bool:
    """Tell whether all examples run."""
    return ALL_NAME in os.environ


def examples(count: int, least: int = 10) -> int:
    """Return how many of `count` examples run: a quarter, but not fewer than `least`."""
    return count if all_examples() else max(-(-count // 4), min(count, least))


def words(count: int) -> tuple[str, str]:
    """Return two words of a program's command line: how many cases, a quarter of `count`, and the seed."""
    return str(examples(count, least=1)), seed()


def prepare(item: pytest.Item) -> None:
    """Give a test of hypothesis its seed and its number of examples; each function once, however often it is a test."""
    test = getattr(item, "obj", None)
    if not hypothesis.is_hypothesis_test(test) or hasattr(test, "_has_examples"):
        return
    own: hypothesis.settings = getattr(test, SETTINGS)
    setattr(test, SETTINGS, hypothesis.settings(own, max_examples=examples(own.max_examples)))
    if not own.derandomize:
        hypothesis.seed(int(seed()))(test)
    test._has_examples = True
