"""A mark that names tests by their parameters names tests that exist."""

from __future__ import annotations

import pytest

from support import marks


@pytest.mark.parametrize("mark", list(marks.NAMING))
def test_a_name_that_no_test_has_is_an_error(request: pytest.FixtureRequest, mark: str) -> None:
    test = pytest.Function.from_parent(request.node.parent, name="test_it", callobj=lambda: None)
    test.add_marker(getattr(pytest.mark, mark)("", "1-2"))
    with pytest.raises(pytest.Collector.CollectError, match=f"test_it: {mark} names no test: {{'1-2'}}"):
        marks.mark_named([test])
