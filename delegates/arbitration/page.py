"""One self-contained HTML page of a simulation, in the style of ``mpiio-ext bench report``.

Figures are images inside the page, not part of its markup: the style sheet is for the report's own drawings.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Sequence
from importlib.resources import files

import jinja2
from markupsafe import Markup

import mpiio_ext

__all__ = ["page"]

_TEMPLATE = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="generator" content="mpiio-ext {{ version }}">
<title>{{ title }}</title>
<style>
{{ style }}
figure { margin: 1rem 0; overflow-x: auto; background: #fff; color: #000; }
figure img { max-width: 100%; height: auto; }
figcaption { color: #333; padding: .3rem .6rem; }
</style>
</head>
<body>
<h1>{{ title }}</h1>
<ul>{% for line in lines %}<li>{{ line }}</li>{% endfor %}</ul>
{% for caption, figure in figures %}
<figure><img src="data:image/svg+xml;base64,{{ figure }}" alt="{{ caption }}">
<figcaption>{{ caption }}</figcaption></figure>
{% endfor %}
</body>
</html>
"""


def page(title: str, lines: Sequence[str], figures: Sequence[tuple[str, str]]) -> str:
    """Return HTML.

    Parameters
    ----------
    lines : sentences; escaped
    figures : (caption, SVG that was drawn here)
    """
    style = files("mpiio_ext.report").joinpath("templates/style.css").read_text(encoding="utf-8")
    template = jinja2.Environment(autoescape=True, undefined=jinja2.StrictUndefined).from_string(_TEMPLATE)
    return template.render(version=mpiio_ext.__version__, title=title, style=Markup(style), lines=lines,
                           figures=[(caption, b64encode(figure.encode()).decode()) for caption, figure in figures])
