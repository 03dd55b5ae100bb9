"""Colours as people see them: contrast, distance (CIEDE2000), and what they are without one kind of cones.

Sources. WCAG 2.2 (contrast); G. Sharma, W. Wu and E. N. Dalal, "The CIEDE2000 color-difference formula" (2005), whose
pairs check it; G. M. Machado, M. M. Oliveira and L. A. F. Fernandes, "A physiologically-based model for simulation of
color vision deficiency" (2009), severity 1.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

VISION: dict[str, Floats] = {
    "normal": np.eye(3),
    "protanopia": np.array(
        [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]]
    ),
    "deuteranopia": np.array(
        [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]]
    ),
    "tritanopia": np.array(
        [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]]
    ),
}
_XYZ = np.array(
    [[0.4124564, 0.3575761, 0.1804375], [0.2126729, 0.7151522, 0.0721750], [0.0193339, 0.1191920, 0.9503041]]
)
_WHITE = np.array([0.95047, 1.0, 1.08883])


def linear(colour: str) -> Floats:
    """Return red, green and blue of "#rrggbb" in units of light."""
    parts = np.array([int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)])
    return np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)


def contrast(one: str, other: str) -> float:
    """Return the contrast of two colours: 1 to 21."""
    light = sorted(float(np.array([0.2126, 0.7152, 0.0722]) @ linear(colour)) for colour in (one, other))
    return (light[1] + 0.05) / (light[0] + 0.05)


def lab(colour: str, vision: str = "normal") -> Floats:
    """Return a colour in CIELAB (D65) as it is seen."""
    seen = np.clip(VISION[vision] @ linear(colour), 0, 1)
    parts = _XYZ @ seen / _WHITE
    x, y, z = np.where(parts > (6 / 29) ** 3, np.cbrt(parts), parts * (29 / 6) ** 2 / 3 + 4 / 29)
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])


def distance(one: Floats, other: Floats) -> float:
    """Return the distance of two colours in CIELAB by CIEDE2000."""
    (light1, a1, b1), (light2, a2, b2) = one, other
    mean = (np.hypot(a1, b1) + np.hypot(a2, b2)) / 2
    stretch = 1.5 - 0.5 * np.sqrt(mean**7 / (mean**7 + 25.0**7))
    chroma1, chroma2 = np.hypot(stretch * a1, b1), np.hypot(stretch * a2, b2)
    hue1, hue2 = (np.degrees(np.arctan2(b, stretch * a)) % 360 for a, b in ((a1, b1), (a2, b2)))
    grey = chroma1 * chroma2 == 0
    turn = 0.0 if grey else (hue2 - hue1 + 180) % 360 - 180
    far = abs(hue1 - hue2) > 180
    hue = hue1 + hue2 if grey else (hue1 + hue2 + (360 if far and hue1 + hue2 < 360 else -360 if far else 0)) / 2
    light, chroma = (light1 + light2) / 2, (chroma1 + chroma2) / 2
    weight = (
        1
        - 0.17 * np.cos(np.radians(hue - 30))
        + 0.24 * np.cos(np.radians(2 * hue))
        + 0.32 * np.cos(np.radians(3 * hue + 6))
        - 0.20 * np.cos(np.radians(4 * hue - 63))
    )
    of_light = (light2 - light1) / (1 + 0.015 * (light - 50) ** 2 / np.sqrt(20 + (light - 50) ** 2))
    of_chroma = (chroma2 - chroma1) / (1 + 0.045 * chroma)
    of_hue = 2 * np.sqrt(chroma1 * chroma2) * np.sin(np.radians(turn) / 2) / (1 + 0.015 * chroma * weight)
    twist = (
        -np.sin(np.radians(60 * np.exp(-(((hue - 275) / 25) ** 2)))) * 2 * np.sqrt(chroma**7 / (chroma**7 + 25.0**7))
    )
    return float(np.sqrt(of_light**2 + of_chroma**2 + of_hue**2 + twist * of_chroma * of_hue))
