"""The OST bitmap of ``darshan_file``: words of 62 bits made of the lists of OSTs.

Source: IOMiner, Section II-B: "the list of storage targets used for each file access as a bitmap". The published code
has 279 bits; here the width grows with the OSTs that are seen, and older files lack the last words (NULL means 0).
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from mpiio_ext.analytics.tables.arrays import Flags, Whole
from mpiio_ext.analytics.tables.schema import OST_WORD_BITS, ost_words

#: OSTs that a bitmap may have. No Lustre has as many; a corrupt record might claim more.
WIDEST = 62 * 64


def _usable(osts: Whole) -> Flags:
    return np.asarray((osts >= 0) & (osts < WIDEST))


def width_of(files: pa.Table) -> int:
    """Return the smallest width in OSTs for every OST of a table of files; OSTs beyond `WIDEST` do not count."""
    flat = pc.list_flatten(files.column("osts")).combine_chunks()
    osts = np.asarray(flat.drop_null())
    osts = osts[_usable(osts)]
    return int(osts.max()) + 1 if len(osts) else 0


def with_words(files: pa.Table, osts: int) -> tuple[pa.Table, Whole]:
    """Append the words of a bitmap of `osts` OSTs to a table of ``darshan_file``.

    Returns
    -------
    table : pyarrow.Table
        With the columns ``ost_words(osts)``: NULL where the list is NULL.
    beyond : numpy.ndarray of int64
        Numbers of the rows with an OST that no bitmap can hold (it stays in the list only).
    """
    column = files.column("osts")
    lists = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    rows = np.asarray(pc.list_parent_indices(lists), dtype=np.int64)
    flat = lists.flatten()
    filled = np.asarray(pc.fill_null(flat, -1), dtype=np.int64)
    usable = _usable(filled)
    beyond = np.unique(rows[~usable])
    rows, values = rows[usable], filled[usable]
    absent = np.asarray(pc.is_null(lists))
    table = files
    for number, name in enumerate(ost_words(osts)):
        words = np.zeros(files.num_rows, dtype=np.int64)
        mine = values // OST_WORD_BITS == number
        np.bitwise_or.at(words, rows[mine], np.int64(1) << (values[mine] % OST_WORD_BITS))
        table = table.append_column(pa.field(name, pa.int64()), pa.array(words, mask=absent))
    return table, beyond
