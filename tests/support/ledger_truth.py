"""Answers of a ledger beside the truth of the calls that it was made of."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import TypeAlias

import numpy as np

from mpiio_ext.analytics.ledger import Ledger
from support.traced_truth import KINDS, LAYERS, Traced

#: Kind of call, file and layer; None: all.
Question: TypeAlias = "tuple[str | None, int | None, str | None]"
ALL: Question = (None, None, None)
#: Rounding of a log's times and of the sums over them.
_EXACT_S, _RELATIVE = 2e-8, 1e-9


@dataclasses.dataclass(frozen=True)
class Outside:
    """An answer that the truth refutes."""

    question: Question
    answer: str
    least: object
    most: object
    true: object


def questions(traced: Traced, rng: np.random.Generator, count: int) -> list[Question]:
    """Return so many questions about a program, drawn at random."""
    files = [None, *range(len(traced.names))]
    kinds, layers = [None, *KINDS], [None, *LAYERS]
    drawn = rng.integers(0, [[len(kinds), len(files), len(layers)]] * count) if count else []
    return [(kinds[kind], files[file], layers[layer]) for kind, file, layer in drawn]


def outside(traced: Traced, ledger: Ledger, question: Question, *, files: bool = False) -> Iterator[Outside]:
    """Yield the answers to a question that are wrong; `files`: also those about each file."""
    kind, file, layer = question
    some = ledger if file is None else ledger.of([traced.number(file)])
    kinds = () if kind is None else (kind,)
    true = traced.seconds(*question)
    answers = {
        "ranks": (some.ranks(*kinds, layer=layer), true),
        "slowest": (some.slowest(*kinds, layer=layer), true.max()),
        "mean": (some.mean(*kinds, layer=layer), true.mean()),
        "clock": (some.clock(*kinds, layer=layer), traced.clock(*question)),
    }
    if files and file is None:
        of_files = np.array([traced.seconds(kind, each, layer) for each in range(len(traced.names))])
        of_files = of_files[np.argsort([traced.number(each) for each in range(len(traced.names))])]
        there = np.isin(sorted(traced.number(each) for each in range(len(traced.names))), some.files)
        answers["means"] = (some.means(*kinds, layer=layer), of_files[there].mean(axis=1))
        answers["slowest_of_files"] = (some.slowest_of_files(*kinds, layer=layer), of_files[there].max(axis=1))
    for name, (found, truth) in answers.items():
        slack = _EXACT_S + _RELATIVE * np.abs(truth)
        if np.any(truth < found.least - slack) or np.any(truth > found.most + slack):
            yield Outside(question, name, found.least, found.most, truth)
