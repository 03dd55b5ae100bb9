"""All cases of ``cases/*.case`` under each variant of variants.py, with the deviations declared beside them."""

from __future__ import annotations

import functools

import pytest

from differential import arms, text, variants


@functools.cache
def entries() -> list[text.Entry]:
    """Return all cases, which the model checks: not while tests are collected, by every worker."""
    found = [entry for path in sorted(text.FOLDER.glob("*.case")) for entry in text.read_file(path)]
    assert len({entry.name for entry in found}) == len(found), "two files have a case of the same name"
    return found


@functools.cache
def results(names: tuple[str, ...]) -> variants.Results:
    """Run all cases under variants, which share launches."""
    return variants.run_under(entries(), names)


@pytest.fixture
def found(request: pytest.FixtureRequest) -> variants.Results:
    """What all tests of this run need, from the same launches."""
    calls = [
        item.callspec
        for item in request.session.items
        if isinstance(item, pytest.Function) and item.path == request.path and "found" in item.fixturenames
    ]
    return results(tuple(dict.fromkeys(call.params["name"] for call in calls)))


def complaints(name: str, family: str, found: variants.Results) -> list[str]:
    """Return which cases do not end as declared under a variant."""
    wrong = []
    for entry in entries():
        problems = found.problems.get((entry.name, name))
        if problems is None:
            continue
        ended, expected = variants.outcome(entry, name, family, problems)
        if not expected:
            text.keep_failed(entry, name)
            wrong.append(f"{entry.where} {entry.name!r}: {ended}")
    return wrong


@pytest.mark.mpi
@pytest.mark.both_with("lost", "staged_spawn")
@pytest.mark.slow_with(*(name for name, variant in variants.VARIANTS.items() if variant.slow))
@pytest.mark.parametrize("name", variants.VARIANTS)
def test_cases(extension: str, family: str, name: str, found: variants.Results) -> None:
    wrong = complaints(name, family, found)
    again = "again: python tests/differential/run.py --last"
    assert not wrong, "\n".join([*wrong, again])
    for counter in variants.VARIANTS[name].shows:
        assert found.counts[name][counter] > 0, f"{counter} is 0: the variant is not in force"
    for counter in variants.VARIANTS[name].hides:
        assert found.counts[name][counter] == 0, f"{counter} is not 0: the variant is not in force"


def test_declarations_name_variants() -> None:
    for entry in entries():
        assert not variants.unknown(entry), entry.where


@pytest.mark.mpi
def test_full_disks(extension: str) -> None:
    """Cases on file systems of a small size run where this user may mount them."""
    full = [entry for entry in entries() if "disk" in entry.case]
    if not arms.has_small_disks():
        pytest.skip("cases of full disks: this user may not mount a file system")
    assert all(any(variants.runs_under(entry, name) for name in variants.VARIANTS) for entry in full)
