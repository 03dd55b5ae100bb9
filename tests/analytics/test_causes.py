"""Causes are records: what one has shows up wherever a cause is named, and no other place has to know of it."""

from __future__ import annotations

import re

import numpy as np
import pytest

from mpiio_ext.analytics.diagnosis import advice, causes, diagnose, triggers
from mpiio_ext.analytics.diagnosis.case import Case
from mpiio_ext.analytics.diagnosis.cause import ALWAYS, Cause, Cells, Offer
from mpiio_ext.analytics.diagnosis.model import Claim, Finding
from mpiio_ext.analytics.report import howto
from mpiio_ext.analytics.run import gains, opening
from mpiio_ext.common import guide
from mpiio_ext.common import page as pages
from support.quiet_rows import JOB, file, small


def _by_moonlight(case: Case) -> Finding | None:
    claim = Claim(
        title="The files are written by moonlight.",
        time=case.time,
        confidence="high",
        reason="the moon is in no log",
        evidence=case.evidence("moons", 1.0, "count"),
        advice=[advice.BUNDLE],
    )
    return case.finding(MOONLIGHT, claim, chosen=np.ones(len(case.files), bool))


MOONLIGHT = Cause(
    name="moonlight",
    rule=_by_moonlight,
    cells=Cells(("write",), ("POSIX",)),
    effects=("small_requests",),
    phrase="{way}s{at} by moonlight",
    section="The storage was slow",
    time_is="the time of the moon",
    mechanism="Moonlight is slow.",
    condition="Requests of at most {small_bytes} move at night.",
    sentences=("by moonlight",),
    advice=(Offer(ALWAYS, lambda _: advice.BUNDLE),),
    on_lustre=True,
)


def test_a_new_cause_is_one_record(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [file(0, 10, **small())]
    assert [one.cause for one in diagnose(JOB, rows).findings] == ["small_requests"]
    monkeypatch.setattr(causes, "CAUSES", (*causes.CAUSES, MOONLIGHT))
    found = diagnose(JOB, rows)
    assert [one.cause for one in found.findings] == ["moonlight"]  # small requests are its effect
    spent = opening.Spent(io_s=10.0, run_s=100.0)
    document = found.to_dict()
    assert opening.first_sentence([document], spent) == (
        "Your program spent 10 % of its time in I/O (10 s of 100 s); all of these 10 s were writes to `out.0` by"
        " moonlight."
    )
    assert gains.bound(document["findings"][0], spent) == "at most 10 % of the run (10 s, the time of the moon)"
    links = howto.links("moonlight")
    assert links[0][1] == "The storage was slow" and len(links) == 2  # and the page on Lustre
    (section,) = howto.section([pages.Finding(title="", links=links)])
    assert {fold.title for fold in section.folds} == {title for _, title in links}
    assert triggers.markdown().endswith(
        "## `moonlight`\n\nMoonlight is slow.\n\n"
        "- **Reported if:** Requests of at most 1 MiB (`small_bytes`) move at night.\n"
        "- **High confidence:** never.\n"
        "- **Sentence:** *… by moonlight …*\n\n"
        f"| advice | when |\n|---|---|\n| {advice.BUNDLE.text} | always |\n"
    )


def test_records_name_causes_and_sections_that_there_are() -> None:
    names = [one.name for one in causes.CAUSES]
    sections = re.findall("^## (.*)$", guide.text_of("howto/what-to-do"), re.MULTILINE)
    assert len(names) == len(set(names)) > 30
    assert {effect for one in causes.CAUSES for effect in one.effects} <= set(names)
    assert {one.section for one in causes.CAUSES} == set(sections)
    assert re.findall("`(\\w+)`", "".join(re.findall("^## .*", triggers.markdown(), re.MULTILINE))) == names
