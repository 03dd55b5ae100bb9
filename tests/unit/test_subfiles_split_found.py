"""What a split finds in the folder of its subfiles: another file's subfiles, a swapped folder, leftovers."""

from __future__ import annotations

import pytest

from mpiio_ext.subfiles.journal import is_part


@pytest.mark.parametrize(("name", "part"), [
    (".f.0123456789abcdef.tmp", True), (".f.index-0123456789abcdef", True), (".f\n.0123456789abcdef.tmp", True),
    (".f.tmp", False), (".f.index-1", False), ("f.0123456789abcdef.tmp", False), (".f.0123456789ABCDEF.tmp", False),
])  # fmt: skip
def test_names_of_indexes_that_are_not_there_yet(name: str, part: bool) -> None:
    """A user's own name is none of them: his index counts."""
    assert is_part(name) == part
