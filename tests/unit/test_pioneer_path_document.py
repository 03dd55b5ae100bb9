"""Documents of workload paths: what a person writes, and what is wrong with one is said and where."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import pathlib
import re
from typing import Any

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mpiio_ext.common.documents import DocumentError, form_schema
from mpiio_ext.pioneer.path import WorkloadPath
from mpiio_ext.pioneer.path.document import PathInfo, parse_path, path_form
from mpiio_ext.pioneer.path.workload_path import COMMON, PER_GROUP


def hand_written(**changes: Any) -> dict[str, Any]:
    """Return a path as a person writes it."""
    rows = [
        {
            "operation": "open",
            "file": "a.{rank}",
            "owner": "private",
            "groups": 3,
            "layer": "posix",
            "extra": {"flags": 66},
        },
        {
            "operation": "write",
            "file": "a.{rank}",
            "owner": "private",
            "groups": 3,
            "layer": "posix",
            "offset_0": 0,
            "size_0": 9,
            "size_1": 9,
            "slack_1": 5,
        },
        {"operation": "close", "file": "a.{rank}", "owner": "private", "groups": 3, "layer": "posix"},
    ]
    return {
        "pioneer-path": {"representatives": [0, 1], "members": [[0], [1]], "version": 1},
        "operations": rows,
        **changes,
    }


def written(document: Any, folder: pathlib.Path) -> pathlib.Path:
    path = folder / "path.json"
    path.write_text(json.dumps(document), encoding="utf-8")
    return path


def test_what_a_person_writes(tmp_path: pathlib.Path) -> None:
    """Without IDs, arguments as an object; and what is saved is read again."""
    path = WorkloadPath.load(written(hand_written(), tmp_path))
    assert path.table["id"].to_pylist() == [0, 1, 2]
    assert json.loads(path.words("extra")[0]) == {"flags": 66}
    assert path.table["size_1"].to_pylist() == [None, 9, None]
    path.save(tmp_path / "again.json")
    assert WorkloadPath.load(tmp_path / "again.json").table.equals(path.table)


@pytest.mark.parametrize(
    ("row", "name", "value", "said"),
    [
        (0, "file", 5, "/operations/0/file: 5 is not a text"),
        (1, "groups", 9, "/operations/1/groups: 9 has bits of groups that are not there: the path has 2"),
        (1, "groups", 1, "/operations/1/size_1: group 1 does not make this operation"),
        (2, "layer", "nfs", '/operations/2/layer: "nfs" is not one of "posix", "stdio", "mpiio", "mpi"'),
        (2, "owner", "me", '/operations/2/owner: "me" is not one of "root", "shared", "private", "child"'),
        (1, "slack_0", -1, "/operations/1/slack_0: -1 is less than 0"),
        (1, "slack_2", 1, "/operations/1/slack_2: there is no such name; there are "),
        (0, "extra", "[1]", "/operations/0/extra: the text is no JSON object"),
        (0, "file", "a{b}", "/operations/0/file: 'a{b}' is no file name with rank fields"),
        (0, "offset_0", 1.5, "/operations/0/offset_0: 1.5 is not a whole number"),
        (0, "size_0", 2**63, f"/operations/0/size_0: {2**63} is greater than {2**63 - 1}"),
    ],
)
def test_what_is_wrong_with_an_operation(tmp_path: pathlib.Path, row: int, name: str, value: Any, said: str) -> None:
    document = hand_written()
    document["operations"][row][name] = value
    path = written(document, tmp_path)
    with pytest.raises(ValueError, match=re.escape(f"{path}: {said}")):
        WorkloadPath.load(path)


@pytest.mark.parametrize(
    ("document", "said"),
    [
        ([], "/: a list of 0 is not an object"),
        ({"pioneer-path": 5, "operations": []}, "/pioneer-path: 5 is not an object"),
        ({"operations": []}, '/: "pioneer-path" is missing'),
        (hand_written(operations=7), "/operations: 7 is not a list"),
        (hand_written(operations=[{}]), '/operations/0: "operation" is missing'),
        (
            {"pioneer-path": {"representatives": 5, "members": [], "version": 1}, "operations": []},
            "/pioneer-path/representatives: 5 is not a list",
        ),
        (
            {"pioneer-path": {"representatives": [0, 1], "members": [[0]], "version": 1}, "operations": []},
            "/pioneer-path/members: there are 1, and 2 representatives",
        ),
        (
            {
                "pioneer-path": {"representatives": [0], "members": [[0]], "starts": [0, 1], "version": 1},
                "operations": [],
            },
            "/pioneer-path/starts: there are 2, and 1 representatives",
        ),
        (
            {
                "pioneer-path": {"representatives": [0], "members": [[0]], "starts": [-1], "version": 1},
                "operations": [],
            },
            "/pioneer-path/starts/0: -1 is less than 0",
        ),
        (
            {"pioneer-path": {"representatives": [], "members": [], "version": 1}, "operations": []},
            "/pioneer-path/representatives: there are 0; a path has 1 to 63 groups",
        ),
        (
            {"pioneer-path": {"representatives": [0], "members": [[0]], "version": 9}, "operations": []},
            "/pioneer-path/version: 9; this release reads 1",
        ),
    ],
)
def test_what_is_no_path(tmp_path: pathlib.Path, document: Any, said: str) -> None:
    path = written(document, tmp_path)
    with pytest.raises(ValueError, match=re.escape(f"{path}: {said}")):
        WorkloadPath.load(path)


@pytest.mark.parametrize("text", ["", "{", "\xff", "[" * 100000, '{"pioneer-path": NaN}'])
def test_what_is_no_json(tmp_path: pathlib.Path, text: str) -> None:
    (tmp_path / "path.json").write_bytes(text.encode("latin-1"))
    with pytest.raises(ValueError, match=r"path\.json: is not JSON: "):
        WorkloadPath.load(tmp_path / "path.json")


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(max_size=5),
        lambda inner: (
            st.lists(inner, max_size=4)
            | st.dictionaries(
                st.sampled_from(
                    [
                        "pioneer-path",
                        "operations",
                        "representatives",
                        "members",
                        "version",
                        "file",
                        "operation",
                        "groups",
                        "layer",
                        "extra",
                    ]
                ),
                inner,
            )
        ),
        max_leaves=12,
    )
)
def test_any_document(document: Any) -> None:
    """It is a path, or it is said what is wrong, and where."""
    with contextlib.suppress(DocumentError):
        parse_path(document)
    with pytest.raises(DocumentError) as caught:
        parse_path(hand_written(operations=[document, *hand_written()["operations"]]))
    assert all(line.startswith("/operations/0") for line in caught.value.problems)


def test_form_of_paths() -> None:
    """The schema is one, and says of each column what the table has."""
    form = form_schema(path_form(2))
    jsonschema.Draft202012Validator.check_schema(form)
    own = {f"{name}_{group}" for name in PER_GROUP for group in (0, 1)}
    assert set(form["$defs"]["Operation"]["properties"]) - own == {field.name for field in COMMON}
    assert set(form["$defs"]["PathInfo"]["properties"]) == {item.name for item in dataclasses.fields(PathInfo)}
    jsonschema.Draft202012Validator(form).validate(hand_written())
