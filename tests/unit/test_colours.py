"""Colours: told apart by people with and without all cones, and seen on the ground, in light and in dark."""

from __future__ import annotations

import itertools
import re
from pathlib import Path

import numpy as np
import pytest

from mpiio_ext.analytics.report import timeline
from mpiio_ext.common import page
from mpiio_ext.common.plots import THEMES
from support.colours import VISION, contrast, distance, lab

#: Of the table of Sharma, Wu and Dalal: two colours of CIELAB, and their distance.
PAIRS = [
    ((50, 2.6772, -79.7751), (50, 0, -82.7485), 2.0425),
    ((50, 3.1571, -77.2803), (50, 0, -82.7485), 2.8615),
    ((50, 2.5, 0), (73, 25, -18), 27.1492),
    ((60.2574, -34.0099, 36.2677), (60.4626, -34.1751, 39.4387), 1.2644),
    ((2.0776, 0.0795, -1.1350), (0.9033, -0.0636, -0.5514), 0.9082),
    ((50, 2.49, -0.001), (50, -2.49, 0.0011), 7.2195),
    ((50, 2.5, 0), (50, 0, -2.5), 4.3065),
    ((50, 0, 0), (50, -1, 2), 2.3669),
]
#: Groups of colours that stand in one chart.
GROUPS = {"series": ("series",), "quarters": ("quarter",), "lines": ("data", "average", "changed", "neutral")}
LEAST_DISTANCE, LEAST_CONTRAST = 12, 3


@pytest.mark.parametrize(("one", "other", "known"), PAIRS)
def test_the_distance_is_the_published_one(one: tuple[float, ...], other: tuple[float, ...], known: float) -> None:
    for first, second in ((one, other), (other, one)):
        assert distance(np.array(first), np.array(second)) == pytest.approx(known, abs=1e-4)


def test_contrast_and_sight_at_their_ends() -> None:
    assert contrast("#ffffff", "#000000") == pytest.approx(21) and contrast("#777777", "#777777") == 1
    for vision in VISION:  # greys are grey for everyone
        assert np.hypot(*lab("#808080", vision)[1:]) < 1
    red, green = "#d0021b", "#417505"
    assert distance(lab(red), lab(green)) > 3 * distance(lab(red, "deuteranopia"), lab(green, "deuteranopia"))


@pytest.mark.parametrize("theme", THEMES)
@pytest.mark.parametrize("names", GROUPS.values(), ids=GROUPS)
def test_colours_of_a_chart_are_told_apart(names: tuple[str, ...], theme: str) -> None:
    found = [getattr(THEMES[theme], name) for name in names]
    colours = [colour for one in found for colour in ([one] if isinstance(one, str) else one)]
    for colour in colours:
        assert contrast(colour, THEMES[theme].page) >= LEAST_CONTRAST, colour
    for vision in VISION:
        for one, other in itertools.combinations(colours, 2):
            assert distance(lab(one, vision), lab(other, vision)) >= LEAST_DISTANCE, (vision, one, other)


def _variables() -> dict[str, dict[str, str]]:
    """Return the colours of the style sheet in light, in dark and on paper."""
    style = Path(page.__file__).with_name("style.css").read_text(encoding="utf-8")
    blocks = [
        dict(re.findall(r"--([a-z-]+): (#[0-9a-f]+)", block))
        for block in re.findall(r":root {(.*?)}", style, re.DOTALL)
    ]
    assert len(blocks) == 3
    whole = [
        {
            name: value if len(value) == 7 else "#" + "".join(2 * digit for digit in value[1:])
            for name, value in block.items()
        }
        for block in blocks
    ]
    return dict(zip(("light", "dark", "paper"), whole, strict=True))


@pytest.mark.parametrize("where", ["light", "dark", "paper"])
def test_words_of_a_page_are_read(where: str) -> None:
    """Words have a contrast of 4.5 on every ground they stand on."""
    found = _variables()[where]
    for ground in ("page", "card", "warn"):
        for word in ("ink", "soft", "link", "up", "dn"):
            assert contrast(found[word], found[ground]) >= 4.5, (word, ground)


@pytest.mark.parametrize("theme", THEMES)
def test_what_ranks_do_is_seen(theme: str) -> None:
    """Calls of the time line of ranks stand out from the ground, and from each other for everyone."""
    colours = [THEMES[theme].colour(look.colour) for *_, look in timeline._KINDS]
    assert min(contrast(colour, THEMES[theme].page) for colour in colours) >= 3.5
    for vision in VISION:
        for one, other in itertools.combinations(colours, 2):
            assert distance(lab(one, vision), lab(other, vision)) >= 14, (vision, one, other)
