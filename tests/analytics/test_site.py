"""Site facts: what is accepted, what is refused and where, and what is looked up in them."""

from __future__ import annotations

import datetime
import json
import pathlib
import re
from typing import Any

import jsonschema
import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st

from mpiio_ext.analytics.errors import AnalyticsError
from mpiio_ext.analytics.setup import load_setup
from mpiio_ext.analytics.site import FIELDS, Clock, Site, load_site, schema
from mpiio_ext.analytics.sitefiles import find_files
from mpiio_ext.analytics.sitetokio import from_pytokio
from mpiio_ext.cli import main
from support.darshan_rows import shared_data

GOOD: dict[str, Any] = {
    "time_zone": "America/Los_Angeles",
    "mounts": {"/scratch1": {"stripe_size": 1048576, "stripe_count": 1}},
    "lmt_mounts": {"snx9": "/old"},
    "file_systems": {
        "scratch1": {"kind": "lustre", "backend": "snx11025", "mounts": ["/scratch1", "/global/scratch1/"]},
        "inner": {"mounts": ["/scratch1/inner"], "mount_patterns": ["/dws/.*/ss"]},
        "project": {
            "kind": "gpfs",
            "mount_patterns": ["/global/project"],
            "data_targets": [r"^ddn\d+dt\d+$"],
            "metadata_targets": [r"^na\d+md\d+$"],
            "metadata_servers": ["^ngfsv49[23]"],
        },
    },
    "clocks": {"lmt": {"offset_s": 1.5}, "gpfs": {"time_zone": "UTC", "offset_s": -2}},
    "files": [
        {"source": "lmt", "file_system": "scratch1", "clock": "lmt", "path": ["%Y-%m-%d/x.hdf5", "%Y-%m-%d/x.h5lmt"]},
        {"source": "lfs-df", "path": "%Y%m%d/osts*.txt"},
        {
            "source": "mmperfmon",
            "file_system": "project",
            "clock": "gpfs",
            "host": "io1",
            "stamps": "end",
            "path": "gpfs/io1.%Y-%m-%d-%H:00:00.out",
        },
    ],
}


def seconds(text: str) -> float:
    return datetime.datetime.fromisoformat(text).timestamp()


def test_a_site() -> None:
    site = load_site(GOOD)
    assert site.lmt_mounts == {"snx11025": "/scratch1", "snx9": "/old", "inner": "/scratch1/inner"}
    assert (site.clocks["lmt"], site.clocks["gpfs"]) == (Clock("America/Los_Angeles", 1.5), Clock("UTC", -2.0))
    assert site.clock(None) == Clock("America/Los_Angeles", 0.0)
    assert site.correct(100.0, "lmt") == 98.5
    assert site.correct(np.array([100.0, 5.0]), "gpfs").tolist() == [102.0, 7.0]
    with pytest.raises(AnalyticsError, match="the site has no clock 'x'; it has lmt, gpfs"):
        site.correct(1.0, "x")
    project = site.file_systems["project"]
    assert [project.holds_data(name) for name in ("ddn55dt00", "na07md01", "x")] == [True, False, False]
    assert [project.serves_metadata(name) for name in ("ngfsv492.site", "ngfsv448.site")] == [True, False]
    assert load_site({}) == Site()


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("/scratch1", "scratch1"),
        ("/scratch1/a/b", "scratch1"),
        ("/scratch10/a", None),
        ("/scratch1/inner/x", "inner"),
        ("/global/scratch1/x", "scratch1"),
        ("/dws/job/ss/x", "inner"),
        ("/global/projectb", "project"),
        ("/", None),
        ("", None),
    ],
)
def test_the_file_system_of_a_path(path: str, name: str | None) -> None:
    found = load_site(GOOD).file_system_of(path)
    assert (None if found is None else found.name) == name


def test_the_file_system_of_a_backend() -> None:
    site = load_site(GOOD)
    assert site.by_backend("snx11025") is site.file_systems["scratch1"]
    assert site.by_backend("project") is site.file_systems["project"]
    assert site.by_backend("scratch1") is None


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"time_zone": "Mars/North"}, '/time_zone: "Mars/North" is no time zone'),
        ({"time_zone": 5}, "/time_zone: 5 is not a text"),
        ({"mounts": {"/a/b": {"stripe_size": 0}}}, "/mounts/~1a~1b/stripe_size: 0 is less than 1"),
        ({"more": 1}, "/more: there is no such name; there are time_zone, mounts"),
        ({"file_systems": []}, "/file_systems: a list of 0 is not an object"),
        (
            {"file_systems": {"a/b": {"kind": "nfs"}}},
            '/file_systems/a~1b/kind: "nfs" is not one of "lustre", "gpfs", "other"',
        ),
        ({"file_systems": {"a": {"mount": []}}}, "/file_systems/a/mount: there is no such name"),
        ({"file_systems": {"a": {"mounts": ["x"]}}, "files": []}, '/file_systems/a/mounts/0: "x" is no absolute path'),
        (
            {"file_systems": {"a": {"data_targets": ["("]}}, "files": []},
            '/file_systems/a/data_targets/0: "(" is no regular expression',
        ),
        ({"clocks": {"c": {"offset_s": "1"}}}, '/clocks/c/offset_s: "1" is not a number'),
        ({"clocks": {"c": {"time_zone": "x"}}, "files": []}, '/clocks/c/time_zone: "x" is no time zone'),
        ({"files": [{"source": "lmt"}]}, '/files/0: "path" is missing'),
        ({"files": [{"source": "lmt", "path": 5}]}, "/files/0/path: 5 is not a text or a list"),
        ({"files": [{"source": "lmt", "path": "x", "stamps": "mid"}]}, '/files/0/stamps: "mid" is not one of'),
        (
            {"files": [{"source": "lmt", "path": "x", "clock": "y"}]},
            '/files/0/clock: "y" is not among clocks of the site',
        ),
        ({"files": [{"source": "lmt", "path": "x", "file_system": "y"}]}, '/files/0/file_system: "y" is not among'),
        ({"files": [{"source": "lmt", "path": ["x", "%Q"]}]}, '/files/0/path/1: "%Q" stands for no part of a date'),
        ({"files": [{"source": "lmt", "path": "50%"}]}, '/files/0/path: "%" stands for no part of a date'),
        (
            {"files": [{"source": "lmtt", "path": "x"}]},
            '/files/0/source: "lmtt" is no source; there are darshan, lmt, ',
        ),
        (
            {"files": [{"source": "csv", "path": "x", "metrics": {"read": "x"}}]},
            '/files/0/metrics/read: "read" is not one of "bytes_read", "bytes_written", "cpu"',
        ),
        (
            {"files": [{"source": "csv", "path": "x", "metrics": {"cpu": 5}}]},
            "/files/0/metrics/cpu: 5 is not a text or a list",
        ),
        ({"files": [{"source": "", "path": []}]}, '/files/0/source: "" is no source; there are'),
        ({"files": [{"source": "", "path": []}]}, "/files/0/path: is empty"),
    ],
)
def test_a_mistake_is_told_with_its_place(change: dict[str, Any], text: str) -> None:
    with pytest.raises(AnalyticsError) as caught:
        load_site({**GOOD, **change})
    assert f"site: {text}" in str(caught.value), str(caught.value)
    with pytest.raises(AnalyticsError) as caught:
        load_setup({"store": "s", "inputs": {}, "site": {**GOOD, **change}})
    assert f"set-up: /site{text}" in str(caught.value)


def test_all_mistakes_are_told_at_once_and_each_once(tmp_path: pathlib.Path) -> None:
    document = {
        "time_zone": "Mars/North",
        "file_systems": {"a": {"kind": "nfs", "mounts": ["x"]}, "b/c": {"mounts": ["y"]}},
        "clocks": {"here": {}, "there": {"time_zone": "Moon"}, "off": {"offset_s": "1"}},
        "files": [
            {"source": "lmt", "path": ""},
            {"source": "lmt"},
            {"source": "lmt", "path": "%Q", "clock": "off"},
            {"source": "lmt", "path": "x", "clock": "none", "file_system": "a"},
        ],
    }
    with pytest.raises(AnalyticsError) as caught:
        load_site(document)
    assert [line.split(": ")[1] for line in str(caught.value).splitlines()] == [
        "/time_zone",
        "/file_systems/a/kind",
        "/file_systems/a/mounts/0",
        "/file_systems/b~1c/mounts/0",
        "/clocks/there/time_zone",
        "/clocks/off/offset_s",
        "/files/0/path",
        "/files/1",
        "/files/2/path",
        "/files/3/clock",
    ]


def test_an_absolute_path_stays_as_it_is(tmp_path: pathlib.Path) -> None:
    files = [{"source": "lmt", "path": "/data/%Y.hdf5"}, {"source": "lmt", "path": "../x"}]
    assert [each.paths for each in load_site({"files": files}, tmp_path / "a").files] == [
        ("/data/%Y.hdf5",),
        (f"{tmp_path}/x",),
    ]


def test_a_site_in_a_file_of_its_own(tmp_path: pathlib.Path) -> None:
    (tmp_path / "facts").mkdir()
    (tmp_path / "facts" / "site.json").write_text(json.dumps(GOOD))
    setup = load_setup({"store": "s", "inputs": {}, "site": "facts/site.json"}, tmp_path)
    assert setup.site == load_site(tmp_path / "facts" / "site.json")
    assert (setup.time_zone, setup.lmt_mounts["snx11025"]) == ("America/Los_Angeles", "/scratch1")
    assert setup.site.files[1].paths == (f"{tmp_path}/facts/%Y%m%d/osts*.txt",)
    (tmp_path / "facts" / "site.json").write_text('{"time_zone": 5, "clocks": 6}')
    with pytest.raises(AnalyticsError) as caught:
        load_setup({"store": "s", "inputs": {}, "site": "facts/site.json"}, tmp_path)
    assert str(caught.value).splitlines() == [
        f"set-up: /site: {tmp_path}/facts/site.json: /time_zone: 5 is not a text",
        f"set-up: /site: {tmp_path}/facts/site.json: /clocks: 6 is not an object",
    ]
    for text, what in (("{", "is not JSON"), ('{"mounts": {}, "mounts": {}}', "stands twice")):
        (tmp_path / "facts" / "site.json").write_text(text)
        with pytest.raises(AnalyticsError, match=what):
            load_site(tmp_path / "facts" / "site.json")
    with pytest.raises(AnalyticsError, match=r"none\.json: cannot be read: No such file"):
        load_setup({"store": "s", "inputs": {}, "site": "none.json"}, tmp_path)


VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=4)
    | st.sampled_from(["UTC", "lustre", "/a", "%Y", "("]),
    lambda inner: (
        st.lists(inner, max_size=2)
        | st.dictionaries(
            st.sampled_from(
                [
                    "kind",
                    "mounts",
                    "mount_patterns",
                    "data_targets",
                    "offset_s",
                    "time_zone",
                    "source",
                    "path",
                    "clock",
                    "stripe_size",
                    "stamps",
                    "file_system",
                    "a",
                ]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=8,
)


@settings(deadline=None, max_examples=60)
@given(
    st.dictionaries(
        st.sampled_from(["time_zone", "mounts", "lmt_mounts", "file_systems", "clocks", "files", "x"]), VALUES
    )
)
def test_what_the_schema_refuses_is_refused(document: dict[str, Any]) -> None:
    """And what is refused beside it is a text that is none of the wanted sort, which a schema cannot say."""
    valid = jsonschema.Draft202012Validator(schema()).is_valid(document)
    try:
        load_site(document)
    except AnalyticsError as error:
        *lines, last = str(error).splitlines()
        assert all(line.startswith("site: /") for line in lines)
        assert re.fullmatch(r"site: and [0-9,]+ more" if len(lines) == 20 else r"site: /.*", last), last
    else:
        assert valid


def test_the_schema_and_the_fields_are_complete() -> None:
    form = schema()
    jsonschema.Draft202012Validator.check_schema(form)
    jsonschema.validate(GOOD, form)
    places = {f"/file_systems/*/{name}" for name in form["$defs"]["FileSystem"]["properties"]}
    places |= {f"/clocks/*/{name}" for name in form["$defs"]["Clock"]["properties"]}
    places |= {f"/files/*/{name}" for name in form["$defs"]["SourceFiles"]["properties"]}
    assert places <= set(FIELDS)
    assert set(form["properties"]) - {"$schema"} == {place.split("/")[1] for place in FIELDS}


def test_the_files_of_a_range_of_time(tmp_path: pathlib.Path) -> None:
    """Days are those of the clock: 2018-01-28 in Los Angeles begins at 8:00 UTC; the clock is 1.5 s ahead."""
    base = tmp_path / "50% [of] it"
    for name in (
        "2018-01-27/x.h5lmt",
        "2018-01-28/x.hdf5",
        "2018-01-28/x.h5lmt",
        "20180128/osts1.txt",
        "20180128/osts2.txt",
        "gpfs/io1.2018-01-28-08:00:00.out",
    ):
        (base / name).parent.mkdir(parents=True, exist_ok=True)
        (base / name).touch()
    site = load_site(GOOD, base)

    def names(source: str, start: str, end: str, **named: Any) -> list[str]:
        found = find_files(site, source, seconds(start), seconds(end), **named)
        return [str(item.path.relative_to(base)) for item in found.found]

    assert names("lmt", "2018-01-28T07:00:00+00:00", "2018-01-28T09:00:00+00:00") == [
        "2018-01-27/x.h5lmt",
        "2018-01-28/x.hdf5",
    ]
    assert names("lmt", "2018-01-28T08:00:00+00:00", "2018-01-28T09:00:00+00:00") == ["2018-01-28/x.hdf5"]
    assert names("lmt", "2018-01-28T07:00:00+00:00", "2018-01-28T07:59:58.5+00:00") == ["2018-01-27/x.h5lmt"]
    assert names("lmt", "2018-01-28T07:00:00+00:00", "2018-01-28T07:59:59+00:00")[-1] == "2018-01-28/x.hdf5"
    assert names("lfs-df", "2018-01-28T09:00:00+00:00", "2018-01-28T10:00:00+00:00", file_system="scratch1") == [
        "20180128/osts1.txt",
        "20180128/osts2.txt",
    ]
    assert names("lmt", "2018-01-28T09:00:00+00:00", "2018-01-28T10:00:00+00:00", file_system="project") == []
    hours = find_files(site, "mmperfmon", seconds("2018-01-28T08:30:00+00:00"), seconds("2018-01-28T09:30:00+00:00"))
    (hour,) = hours.found
    assert (hour.host, hour.stamps, hour.time_zone, hour.clock) == ("io1", "end", "UTC", "gpfs")
    assert len(hours.missing) == 1 and hours.missing[0].endswith("io1.2018-01-28-09:00:00.out")
    assert not find_files(site, "mmperfmon", 0, 1, host="io2").missing
    for ends in ((5, 5), (0, 1e12), (float("nan"), 1)):
        with pytest.raises(AnalyticsError, match="no range of times"):
            find_files(site, "lmt", *ends)


@pytest.mark.parametrize(
    ("zone", "start", "end", "hours"),
    [
        ("Asia/Kolkata", "2018-01-28T05:45+05:30", "2018-01-28T06:10+05:30", "05 06"),
        ("Asia/Kathmandu", "2018-01-28T05:50+05:45", "2018-01-28T07:00+05:45", "05 06"),
        ("Europe/Berlin", "2018-10-28T01:30+02:00", "2018-10-28T03:10+01:00", "01 02 03"),
        ("Europe/Berlin", "2018-03-25T01:30+01:00", "2018-03-25T04:10+02:00", "01 03 04"),
        ("Australia/Lord_Howe", "2018-10-07T01:30+10:30", "2018-10-07T03:10+11:00", "01 02 03"),
    ],
)
def test_hours_are_those_of_the_clock(tmp_path: pathlib.Path, zone: str, start: str, end: str, hours: str) -> None:
    site = load_site({"time_zone": zone, "files": [{"source": "csv", "path": "io.%d-%H"}]}, tmp_path)
    range_ = (seconds(start), seconds(end))
    missing = find_files(site, "csv", *range_).missing
    assert [path[-2:] for path in missing] == hours.split()
    for path in missing:
        pathlib.Path(path).touch()
    found = find_files(site, "csv", *range_)
    assert [str(each.path) for each in found.found] == list(missing) and not found.missing


def test_a_site_of_pytokio(tmp_path: pathlib.Path) -> None:
    document, left = from_pytokio(
        {
            "lmt_timestep": 5,
            "mount_to_fsname": {"^/scratch1": "scratch1", "^/bb/.*/ss": "bb"},
            "fsname_to_backend_name": {"scratch1": "snx11025"},
            "hdf5_files": {"scratch1": ["%Y-%m-%d/a.hdf5"]},
            "lfsstatus_fullness_files": "%Y/osts.txt",
            "mmperfmon_output_files": {"project": ["x.out"]},
            "mmperfmon_lun_map": {"^dt": "datatarget"},
            "darshan_log_dirs": {"x": "logs"},
            "esnet_snmp_url": "u",
        },
        "America/Los_Angeles",
    )
    assert left == ["esnet_snmp_url"]
    assert document["file_systems"] == {
        "scratch1": {"kind": "lustre", "backend": "snx11025", "mounts": ["/scratch1"]},
        "bb": {"kind": "other", "mount_patterns": ["^/bb/.*/ss"]},
        "project": {"kind": "gpfs", "data_targets": ["^dt"]},
    }
    site = load_site(document, tmp_path)
    assert [(files.source, files.file_system) for files in site.files] == [
        ("lmt", "scratch1"),
        ("lfs-df", None),
        ("mmperfmon", "project"),
        ("darshan", None),
    ]
    with pytest.raises(AnalyticsError, match="/mount_to_fsname: is no object"):
        from_pytokio({"mount_to_fsname": []})


def test_the_real_site_of_pytokio(tmp_path: pathlib.Path) -> None:
    path = shared_data("tokio", "samples", "site.json")
    done = CliRunner().invoke(
        main,
        [
            "analyze",
            "connector",
            "site",
            "--from-pytokio",
            "--time-zone",
            "America/Los_Angeles",
            str(path),
            "-o",
            str(tmp_path / "site.json"),
        ],
    )
    assert done.exit_code == 0 and "left out, without counterpart: esnet_snmp_interfaces" in done.stderr, done.output
    site = load_site(tmp_path / "site.json")
    assert site.lmt_mounts == {
        f"snx{number}": mount
        for number, mount in (
            (11025, "/scratch1"),
            (11035, "/scratch2"),
            (11036, "/scratch3"),
            (11168, "/global/cscratch1"),
        )
    }
    assert site.file_systems["testfs-micro"].holds_data("ddn55dt00")
    done = CliRunner().invoke(main, ["analyze", "connector", "site", str(tmp_path / "site.json")])
    assert done.exit_code == 0 and "scratch1: lustre, snx11025, /scratch1" in done.output
