"""JSON documents of sources."""

from __future__ import annotations

import json
from pathlib import Path

from mpiio_ext.analytics.sources.content import read_bytes
from mpiio_ext.analytics.sources.records import Problems, SourceError


def read_json(path: Path, problems: Problems) -> object:
    """Return the JSON document in a file.

    Raises
    ------
    SourceError
        It is none: with the line at which it stops being one.
    """
    data = read_bytes(path, problems)
    try:
        found: object = json.loads(data.decode("utf-8"))
    except json.JSONDecodeError as error:
        text = f"is not JSON from column {error.colno}, or cut: {error.msg}"
        raise SourceError(str(path), error.lineno, text) from error
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        raise SourceError(str(path), line, "bytes that are no text") from error
    except (ValueError, RecursionError) as error:  # a number of 5,000 digits; a thousand brackets
        raise SourceError(str(path), 1, f"is not JSON: {error}") from error
    return found
