"""Views: where in a file the bytes of a data stream are, from the calls that set them.

Algorithm. A view is a displacement and a file type (`file_types`), which is laid side by side without end.
Guarantee. A view that the `extra` of a call does not have is None, never a guess.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mpiio_ext.pioneer.access import parsed
from mpiio_ext.pioneer.file_types import FileType, ViewError, parse


@dataclass(frozen=True, slots=True)
class View:
    """A view.

    Attributes
    ----------
    displacement : bytes.
    text : its file type.
    type : the same, parsed.
    """

    displacement: int
    text: str
    type: FileType

    @property
    def first(self) -> int:
        """Where in the file its first byte is."""
        return self.displacement + self.type.first

    def pieces(self, begin: int, end: int, *, joined: bool = False) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return (offsets, lengths) in the file of the bytes [begin, end) of the stream, in the order of the data.

        Parameters
        ----------
        begin, end : bytes of the stream.
        joined : as of `FileType.pieces`.
        """
        if self.type.is_plain:
            return np.array([self.first + begin], np.int64), np.array([end - begin], np.int64)
        offsets, lengths = self.type.pieces(joined=joined)
        tiles = np.arange(begin // self.type.size, -(-end // self.type.size), dtype=np.int64)
        places = (self.displacement + tiles[:, None] * self.type.extent + offsets).reshape(-1)
        sizes = np.tile(lengths, tiles.size)
        behind = np.cumsum(sizes) + (begin // self.type.size) * self.type.size
        skipped = np.clip(begin - (behind - sizes), 0, sizes)
        kept = np.clip(end - (behind - sizes), 0, sizes) - skipped
        return (places + skipped)[kept > 0], kept[kept > 0]

    def end_of(self, stream: int) -> int:
        """Return a byte of the file that no byte of the stream before `stream` is behind."""
        size = self.type.size
        if stream <= 0 or size == 0:
            return 0
        whole, rest = divmod(stream, size)
        if self.type.is_plain:
            return self.displacement + stream
        return self.displacement + self.type.bounds[1] + (whole - (rest == 0)) * self.type.extent


def _text_of(extra: Mapping[str, Any]) -> str | None:
    parts, number = [extra.get("filetype")], 1
    while f"filetype{number}" in extra:
        parts.append(extra[f"filetype{number}"])
        number += 1
    if all(isinstance(part, str) for part in parts):
        return "".join(parts)  # type: ignore[arg-type]
    size, extent = extra.get("filetype_size"), extra.get("filetype_extent")
    return str(size) if isinstance(size, int) and size == extent and size > 0 else None


def view_of(extra: Mapping[str, Any] | str | None) -> View | None:
    """Return the view that a call of MPI_File_set_view has set, from its `extra`; None if that does not have it."""
    if isinstance(extra, str):
        extra = parsed(extra)
    if not isinstance(extra, Mapping) or not isinstance(extra.get("displacement"), int):
        return None
    text = _text_of(extra)
    try:
        return None if text is None else View(extra["displacement"], text, parse(text))
    except ViewError:
        return None


def views_of_groups(extra: Mapping[str, Any] | str | None, groups: int) -> list[View] | None:
    """Return the view that each group of a path sets, from the `extra` of a call; None if one is unknown."""
    if isinstance(extra, str):
        extra = parsed(extra)
    if not isinstance(extra, Mapping):
        return None
    own = extra.get("groups")
    extras = own if isinstance(own, list) and len(own) == groups else [extra] * groups
    found = [view_of(item) if item is not None else None for item in extras]
    known = next((view for view in found if view is not None), None)
    if known is None or any(view is None and item is not None for view, item in zip(found, extras, strict=True)):
        return None
    return [known if view is None else view for view in found]
