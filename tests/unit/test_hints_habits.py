"""Hints that people have already: ROMIO_HINTS, MPICH_MPIIO_HINTS, Open MPI's parameters; their grammars and places."""

from __future__ import annotations

import ast
import json
import os
import pathlib
import string
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mpiio_ext import hints
from support import cbuild
from support.launch import mpi_family

CSRC_HINTS = cbuild.CSRC / "core" / "hints"
NAMES = ("cb_nodes", "cb_buffer_size", "striping_unit", "striping_factor", "ind_rd_buffer_size", "start_iodevice")


@pytest.fixture(autouse=True)
def nothing_set(monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path) -> None:
    for name in os.environ:
        if name.startswith(("MPIOX_", "OMPI_MCA_", "ROMIO_HINTS", "MPICH_MPIIO_HINTS")):
            monkeypatch.delenv(name)
    (tmp_path / "empty.conf").write_text("", encoding="utf-8")
    monkeypatch.setenv("MPIOX_SITE_FILE", str(tmp_path / "empty.conf"))
    monkeypatch.setenv("HOME", str(tmp_path))


def in_force(path: str = "") -> dict[str, tuple[str, str]]:
    """Return {hint: (value, source)} of what is set."""
    return {item.spec.name: (item.value, item.source) for item in hints.in_force(path) if item.source != "default"}


def from_source(source: str, path: str = "") -> dict[str, str]:
    found = in_force(path)
    assert {origin for _, origin in found.values()} <= {source}
    return {name: value for name, (value, _) in found.items()}


# ---- ROMIO_HINTS -----------------------------------------------------------------------------------------------------


def romio(monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path, text: bytes) -> pathlib.Path:
    file = tmp_path / "romio-hints"
    file.write_bytes(text)
    monkeypatch.setenv("ROMIO_HINTS", str(file))
    return file


def test_romio_file(monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path) -> None:
    romio(
        monkeypatch,
        tmp_path,
        b"# the file of ROMIO's user guide\ncb_nodes 32\n\n  # no column is special\n"
        b"cb_config_list\tn01,n11,n21,n31,n41\n  ind_rd_buffer_size   4M  \nromio_cb_write enable\r\nbg_nodes_pset 8\n",
    )
    assert from_source("ROMIO_HINTS", "/any/file") == {
        "cb_nodes": "32",
        "cb_config_list": "n01,n11,n21,n31,n41",
        "ind_rd_buffer_size": "4194304",
        "romio_cb_write": "enable",
    }
    assert hints.problems() == ()


def test_romio_first_value_holds(monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path) -> None:
    file = romio(monkeypatch, tmp_path, b"cb_nodes 4\nstriping_factor 2\ncb_nodes 8\n")
    assert from_source("ROMIO_HINTS") == {"cb_nodes": "4", "striping_factor": "2"}
    (message,) = hints.problems()
    assert message == f"{file}:3: hint cb_nodes has a value in line 1, and the first one is in force; line ignored"


@pytest.mark.parametrize("line", ["cb_nodes", "cb_nodes = 8", "cb_nodes=8", "cb_nodes 8 # eight", "8 cb_nodes", "a= c"])
def test_romio_malformed_lines_are_told(monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path, line: str) -> None:
    file = romio(monkeypatch, tmp_path, f"striping_factor 2\n{line}\nstart_iodevice 3\n".encode())
    assert from_source("ROMIO_HINTS") == {"striping_factor": "2", "start_iodevice": "3"}
    (message,) = hints.problems()
    assert message == f'{file}:2: expected "NAME VALUE" (two words, no "="), found "{line}"; line ignored'


def test_romio_values_and_names_are_checked(monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path) -> None:
    file = romio(monkeypatch, tmp_path, b"cb_nodes many\ncb_bufer_size 4M\nmpiox_nothing 1\nnc_header_align 8\n")
    assert in_force() == {}
    messages = hints.problems()
    assert [message.split(": ")[0] for message in messages] == [f"{file}:{line}" for line in (1, 2, 3, 4)]
    told = ("bad value", "did you mean cb_buffer_size?", "not exist", "PNETCDF_HINTS")
    for message, words in zip(messages, told, strict=True):
        assert words in message


def test_romio_reads_4096_bytes(monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path) -> None:
    start = b"cb_nodes 4\n"
    fill = b"#" * (4096 - len(start) - len(b"\nstriping_factor 2")) + b"\n"
    romio(monkeypatch, tmp_path, start + fill + b"striping_factor 2")
    assert from_source("ROMIO_HINTS") == {"cb_nodes": "4", "striping_factor": "2"}  # 4096 bytes
    assert hints.problems() == ()
    file = romio(monkeypatch, tmp_path, start + fill + b"striping_factor 24\nstart_iodevice 1\n")  # ROMIO would read 2
    assert from_source("ROMIO_HINTS") == {"cb_nodes": "4"}
    assert hints.problems() == (f"{file}: has more than 4096 bytes, and ROMIO reads no more; shorten it",)


def test_romio_file_that_cannot_be_read(monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path) -> None:
    monkeypatch.setenv("ROMIO_HINTS", str(tmp_path / "none"))
    (message,) = hints.problems()
    assert message.startswith(f"ROMIO_HINTS: {tmp_path / 'none'} cannot be read: No such file or directory; ")
    assert "/etc/romio-hints is read instead" in message
    monkeypatch.setenv("ROMIO_HINTS", str(tmp_path))
    (message,) = hints.problems()
    assert message == f"{tmp_path} cannot be read: Is a directory"
    romio(monkeypatch, tmp_path, b"cb_nodes 4\n\0cb_nodes 5\nstart_iodevice 1\n")
    assert from_source("ROMIO_HINTS") == {"cb_nodes": "4"}
    assert "null character" in hints.problems()[0]


def test_romio_file_of_the_site(tmp_path: pathlib.Path) -> None:
    """In a mount namespace of its own, where /etc has such a file: taken when ROMIO_HINTS names none that is there."""
    code = "import json; from mpiio_ext import hints; "
    code += "print(json.dumps([[h.spec.name, h.value, h.source] for h in hints.in_force() if h.source != 'default']))"
    layers = tmp_path / "layers"
    script = (
        f"mkdir -p {layers} && mount -t tmpfs none {layers} && mkdir {layers}/upper {layers}/work && "
        f"mount -t overlay overlay -o lowerdir=/etc,upperdir={layers}/upper,workdir={layers}/work /etc && "
        'printf "cb_nodes 5\\nstriping_factor 5\\n" > /etc/romio-hints && echo mounted && exec "$@"'
    )
    (tmp_path / "site").write_text("striping_factor = 6\n", encoding="utf-8")
    (tmp_path / "mine").write_text("start_iodevice 7\n", encoding="utf-8")
    expected = {"mine": [["start_iodevice", "7", "ROMIO_HINTS"]], "none": [["cb_nodes", "5", "/etc/romio-hints"]]}
    for name, found in expected.items():
        done = subprocess.run(
            ["unshare", "--mount", "sh", "-c", script, "sh", sys.executable, "-c", code],
            env=os.environ | {"ROMIO_HINTS": str(tmp_path / name), "MPIOX_SITE_FILE": str(tmp_path / "site")},
            capture_output=True,
            text=True,
            timeout=60,
        )
        if not done.stdout.startswith("mounted"):
            pytest.skip(f"no mount namespace with an overlay here: {done.stderr}")
        assert done.returncode == 0, done.stderr
        found.append(["striping_factor", "6", "site file"])
        assert sorted(json.loads(done.stdout.splitlines()[1])) == sorted(found)


def as_romio(text: str) -> dict[str, str]:
    """Return what ROMIO's file_to_info_all() puts into its info object (adio/common/system_hints.c)."""
    found: dict[str, str] = {}
    for line in text.split("\n"):
        words = [word for word in line.replace("\t", " ").split(" ") if word]
        if len(words) == 2 and not line.startswith("#"):
            found.setdefault(words[0], words[1])
    return found


@given(
    st.lists(
        st.one_of(
            st.tuples(st.sampled_from(NAMES), st.sampled_from([" ", "\t", "  "]), st.integers(1, 99)).map(
                lambda parts: "".join(map(str, parts))
            ),
            st.text(string.ascii_lowercase + " \t#=0123456789", max_size=20).map(lambda text: "#" + text),
            st.sampled_from(["", " ", "cb_nodes", "cb_nodes = 4", "cb_nodes 1 2"]),
        ),
        max_size=12,
    )
)
def test_romio_agrees_with_romio(lines: list[str]) -> None:
    text = "\n".join(lines)
    with pytest.MonkeyPatch.context() as patch:
        file = pathlib.Path(os.environ["MPIOX_SITE_FILE"]).with_name("generated")
        file.write_text(text, encoding="utf-8")
        patch.setenv("ROMIO_HINTS", str(file))
        assert from_source("ROMIO_HINTS") == as_romio(text)


# ---- MPICH_MPIIO_HINTS -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "path", "expected"),
    [
        ("*:romio_cb_write=enable:cb_nodes=5", "a/b", {"romio_cb_write": "enable", "cb_nodes": "5"}),
        # the first rule that matches is the only one
        ("wrfinput*:striping_factor=4,*:cb_nodes=3", "wrfinput_d01", {"striping_factor": "4"}),
        ("*:cb_nodes=3,wrfinput*:striping_factor=4", "wrfinput_d01", {"cb_nodes": "3"}),
        ("wrfinput*:striping_factor=4,*:cb_nodes=3", "wrfbdy_d01", {"cb_nodes": "3"}),
        # the whole name, in which * matches / as well
        ("wrfinput*:striping_factor=4", "run/wrfinput_d01", {}),
        ("*/wrfinput*:striping_factor=4", "/a/run/wrfinput_d01", {"striping_factor": "4"}),
        (
            "/scratch/me/dump.*:romio_cb_write=enable:cb_nodes=8",
            "/scratch/me/dump.1",
            {"romio_cb_write": "enable", "cb_nodes": "8"},
        ),
        ("dump.?:cb_nodes=8", "dump.1", {"cb_nodes": "8"}),
        ("dump.[a-c]:cb_nodes=8", "dump.d", {}),
        (r"dump\*:cb_nodes=8", "dump.1", {}),
        (r"dump\*:cb_nodes=8", "dump*", {"cb_nodes": "8"}),
        (r"a\:b\,c:cb_nodes=8", "a:b,c", {"cb_nodes": "8"}),
        ("file#1:cb_nodes=8", "file#1", {"cb_nodes": "8"}),
        # values between #
        ("*:cb_config_list=#*:2#:cb_nodes=32", "x", {"cb_config_list": "*:2", "cb_nodes": "32"}),
        ("*:cb_config_list=#a:2,b:1#,y:cb_nodes=1", "x", {"cb_config_list": "a:2,b:1"}),
        (
            "*:mpiox_delegate_hosts=#a,cb_nodes=2:b#:cb_nodes=1",
            "x",
            {"mpiox_delegate_hosts": "a,cb_nodes=2:b", "cb_nodes": "1"},
        ),
        ("*:cb_config_list=*:*:cb_nodes=4", "x", {"cb_config_list": "*:*", "cb_nodes": "4"}),
        ("a:cb_nodes=1,\n b:cb_nodes=2,\n", "b", {"cb_nodes": "2"}),
        # empty hints, as scripts have them
        ("a*:cb_nodes=4:,b*:cb_nodes=2", "a", {"cb_nodes": "4"}),
        ("a*:cb_nodes=4:,b*:cb_nodes=2", "b", {"cb_nodes": "2"}),
        ("*:cb_nodes=4::striping_factor=2: ", "x", {"cb_nodes": "4", "striping_factor": "2"}),
        ("*:cb_config_list=#*:2#:,b:cb_nodes=1", "x", {"cb_config_list": "*:2"}),
        # names of Cray's own: those without a counterpart are passed on
        ("*:direct_io=true:cray_cb_write_lock_mode=2", "x", {"direct_read": "true", "direct_write": "true"}),
        ("*:romio_lustre_start_iodevice=7", "x", {"start_iodevice": "7"}),
    ],
)
def test_cray(monkeypatch: pytest.MonkeyPatch, text: str, path: str, expected: dict[str, str]) -> None:
    monkeypatch.setenv("MPICH_MPIIO_HINTS", text)
    assert from_source("MPICH_MPIIO_HINTS", path) == expected
    assert hints.problems() == ()


@pytest.mark.parametrize(
    ("text", "left", "problem"),
    [
        ("cb_nodes=8", {}, 'expected GLOB:NAME=VALUE at "cb_nodes=8"'),
        ("*:romio_cb_write=enable,romio_ds_write=disable", {"romio_cb_write": "enable"}, "expected GLOB:NAME=VALUE"),
        ("*:cb_nodes=8:cb_config_list=#*:4", {"cb_nodes": "8"}, "quote not closed"),
        ("romio_ds_write:disable;cb_nodes:16", {}, "expected NAME=VALUE"),
        ("*:cb_nodes=all", {}, 'bad value "all"; allowed: 0 .. 2147483647'),
        ("*:cb_nods=4", {}, "did you mean cb_nodes?"),
        ("*", {}, "expected GLOB:NAME=VALUE"),
    ],
)
def test_cray_ill_formed_text_is_told(
    monkeypatch: pytest.MonkeyPatch, text: str, left: dict[str, str], problem: str
) -> None:
    monkeypatch.setenv("MPICH_MPIIO_HINTS", text)
    assert from_source("MPICH_MPIIO_HINTS", "x") == left
    (message,) = hints.problems()
    assert message.startswith("MPICH_MPIIO_HINTS: ")
    assert problem in message


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["a", "b", "a*", "*b", "*", "?", "[ab]", "a/b", r"\*"]),
            st.lists(st.tuples(st.sampled_from(NAMES), st.integers(1, 99)), min_size=1, max_size=3),
        ),
        min_size=1,
        max_size=5,
    ),
    st.sampled_from(["a", "b", "ab", "a/b", "*", "c"]),
)
def test_cray_first_match(rules: list[tuple[str, list[tuple[str, int]]]], path: str) -> None:
    import fnmatch

    expected: dict[str, str] = {}
    for glob, pairs in rules:
        if path == "*" if glob == r"\*" else fnmatch.fnmatchcase(path, glob):
            expected = {name: str(value) for name, value in pairs}
            break
    with pytest.MonkeyPatch.context() as patch:
        text = ",".join(":".join([glob, *(f"{name}={value}" for name, value in pairs)]) for glob, pairs in rules)
        patch.setenv("MPICH_MPIIO_HINTS", text)
        assert from_source("MPICH_MPIIO_HINTS", path) == expected


@given(st.binary(max_size=300).filter(lambda text: b"\0" not in text))
def test_no_text_breaks_the_parsers(text: bytes) -> None:
    with pytest.MonkeyPatch.context() as patch:
        file = pathlib.Path(os.environ["MPIOX_SITE_FILE"]).with_name("any")
        file.write_bytes(text)
        patch.setenv("MPICH_MPIIO_HINTS", text.decode("utf-8", "surrogateescape"))
        patch.setenv("ROMIO_HINTS", str(file))
        patch.setenv("OMPI_MCA_mca_base_param_files", str(file))
        patch.setenv("OMPI_MCA_mca_base_envar_file_prefix", str(file))
        assert len(hints.in_force("a.h5")) == len(hints.registry())


# ---- Open MPI's parameters -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("parameter", "value", "expected"),
    [
        ("io_ompio_num_aggregators", "4", {"cb_nodes": "4"}),
        ("io_ompio_num_aggregators", "-1", {}),
        ("io_ompio_bytes_per_agg", "8M", {"cb_buffer_size": "8388608"}),
        ("fs_lustre_stripe_size", "1048576", {"striping_unit": "1048576"}),
        ("fs_lustre_stripe_size", "0", {}),
        ("fs_lustre_stripe_width", "8", {"striping_factor": "8"}),
        ("fbtl_posix_max_tmpbuf_size", "65536", {"ind_rd_buffer_size": "65536", "ind_wr_buffer_size": "65536"}),
        ("fbtl_posix_read_datasieving", "false", {"romio_ds_read": "disable"}),
        ("fbtl_posix_write_datasieving", "0", {"romio_ds_write": "disable"}),
        ("fbtl_posix_write_datasieving", "1", {}),
        ("fcoll", "individual", {"romio_cb_read": "disable", "romio_cb_write": "disable"}),
        ("fcoll", "vulcan", {}),
        ("io_ompio_grouping_option", "5", {}),
    ],
)
def test_parameters(monkeypatch: pytest.MonkeyPatch, parameter: str, value: str, expected: dict[str, str]) -> None:
    monkeypatch.setenv(f"OMPI_MCA_{parameter}", value)
    assert from_source("Open MPI parameter") == expected
    assert hints.problems() == ()


def test_parameters_with_bad_values(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMPI_MCA_io_ompio_num_aggregators", "four")
    assert in_force() == {}
    (message,) = hints.problems()
    assert message.startswith('OMPI_MCA_io_ompio_num_aggregators: hint cb_nodes has the bad value "four"; allowed: ')


@pytest.mark.parametrize(
    ("selection", "counts"), [("ompio", True), ("romio321", False), ("^ompio", False), ("^romio321", True), ("", True)]
)
def test_parameters_mean_nothing_without_ompio(
    monkeypatch: pytest.MonkeyPatch, selection: str, *, counts: bool
) -> None:
    monkeypatch.setenv("OMPI_MCA_io", selection)
    monkeypatch.setenv("OMPI_MCA_io_ompio_num_aggregators", "4")
    assert from_source("Open MPI parameter") == ({"cb_nodes": "4"} if counts else {})


openmpi_only = pytest.mark.skipif(mpi_family() != "openmpi", reason="files of Open MPI are read under Open MPI alone")


@openmpi_only
def test_parameter_files(monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path) -> None:
    (tmp_path / ".openmpi").mkdir()
    file = tmp_path / ".openmpi" / "mca-params.conf"
    file.write_text(
        "# mine\nbtl = ^openib\nio_ompio_num_aggregators=4\nio_ompio_num_aggregators = 5  # later wins\n"
        "fs_lustre_stripe_width 3\nsome nonsense\n",
        encoding="utf-8",
    )
    assert from_source("Open MPI parameter") == {"cb_nodes": "5"}
    assert hints.problems() == (f'{file}:5: expected "fs_lustre_stripe_width = VALUE"; line ignored',)
    monkeypatch.setenv("OMPI_MCA_io_ompio_num_aggregators", "6")
    assert from_source("Open MPI parameter") == {"cb_nodes": "6"}


@openmpi_only
def test_listed_parameter_files(monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path) -> None:
    left, right = tmp_path / "left", tmp_path / "right"
    left.write_text("io_ompio_num_aggregators = 1\n", encoding="utf-8")
    right.write_text("io_ompio_num_aggregators = 2\nfs_lustre_stripe_width = many\n", encoding="utf-8")
    monkeypatch.setenv("OMPI_MCA_mca_base_param_files", f"{left},{right},{tmp_path / 'none'}")
    assert from_source("Open MPI parameter") == {"cb_nodes": "1"}
    missing, bad = hints.problems()
    assert missing == f"OMPI_MCA_mca_base_param_files: {tmp_path / 'none'} cannot be read; ignored"
    assert bad.startswith(f'{right}:2: hint striping_factor has the bad value "many"')
    monkeypatch.setenv("OMPI_MCA_mca_base_param_files", "none")
    assert (in_force(), hints.problems()) == ({}, ())


@openmpi_only
def test_tuned_parameter_files(monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path) -> None:
    """`mpirun --tune` of Open MPI 4: stronger than other files, weaker than the environment; as its ompi_info says."""
    left, right, base = tmp_path / "left", tmp_path / "right", tmp_path / "base"
    left.write_text('-mca io_ompio_num_aggregators 3 -x FOO=1 --mca fs_lustre_stripe_width "5"\n', encoding="utf-8")
    right.write_text("io_ompio_num_aggregators = 4\nio_ompio_bytes_per_agg = 8k # less\n-mca io\n", encoding="utf-8")
    base.write_text("io_ompio_num_aggregators = 1\nfs_lustre_stripe_size = 1M\n", encoding="utf-8")
    monkeypatch.setenv("OMPI_MCA_mca_base_param_files", str(base))
    monkeypatch.setenv("OMPI_MCA_mca_base_envar_file_prefix", f"{left},{right},{tmp_path / 'none'}")
    expected = {"cb_nodes": "3", "striping_factor": "5", "cb_buffer_size": "8192", "striping_unit": "1048576"}
    assert from_source("Open MPI parameter") == expected
    (message,) = hints.problems()
    assert message == f"OMPI_MCA_mca_base_envar_file_prefix: {tmp_path / 'none'} cannot be read; ignored"
    monkeypatch.setenv("OMPI_MCA_io_ompio_num_aggregators", "6")
    assert from_source("Open MPI parameter") == expected | {"cb_nodes": "6"}


@openmpi_only
def test_parameters_of_the_installation(tmp_path: pathlib.Path) -> None:
    """A process of its own: where the installation's files are is found once."""
    (tmp_path / "openmpi-mca-params.conf").write_text(
        "io_ompio_num_aggregators = 4\nfs_lustre_stripe_width = 4\nio_ompio_bytes_per_agg = 4M\n", encoding="utf-8"
    )
    (tmp_path / "openmpi-mca-params-override.conf").write_text("io_ompio_bytes_per_agg = 1M\n", encoding="utf-8")
    (tmp_path / "site").write_text("striping_factor = 5\n", encoding="utf-8")
    code = (
        "from mpiio_ext import hints\n"
        "print({h.spec.name: (h.value, h.source) for h in hints.in_force() if h.source != 'default'})"
    )
    environment = os.environ | {
        "OPAL_SYSCONFDIR": str(tmp_path),
        "MPIOX_SITE_FILE": str(tmp_path / "site"),
        "OMPI_MCA_io_ompio_bytes_per_agg": "2M",
    }
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert ast.literal_eval(done.stdout) == {
        "cb_nodes": ("4", "openmpi-mca-params.conf"),
        "striping_factor": ("5", "site file"),
        "cb_buffer_size": ("1048576", "Open MPI parameter"),
    }


# ---- precedence ------------------------------------------------------------------------------------------------------


def test_precedence(monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path) -> None:
    """Sources are added from the strongest to the weakest, each with one hint that nobody has set yet."""
    file, site = tmp_path / "hints", tmp_path / "site"
    added = {
        "MPIOX_HINTS": ("MPIOX_HINTS", "*:{}"),
        "MPIOX_HINTS_FILE": ("MPIOX_HINTS_FILE", file),
        "MPICH_MPIIO_HINTS": ("MPICH_MPIIO_HINTS", "*:{}"),
        "ROMIO_HINTS": ("ROMIO_HINTS", tmp_path / "romio-hints"),
        "site file": ("MPIOX_SITE_FILE", site),
    }
    expected: dict[str, tuple[str, str]] = {}
    for value, (source, (variable, form)) in enumerate(added.items(), 1):
        wanted = NAMES[:value]
        if isinstance(form, pathlib.Path):
            separator = " " if source == "ROMIO_HINTS" else " = "
            form.write_text("".join(f"{name}{separator}{value}\n" for name in wanted), encoding="utf-8")
            monkeypatch.setenv(variable, str(form))
        else:
            monkeypatch.setenv(variable, form.format(":".join(f"{name}={value}" for name in wanted)))
        expected[wanted[-1]] = (str(value), source)
        assert in_force() == expected
    assert hints.problems() == ()
    monkeypatch.setenv("OMPI_MCA_fs_lustre_stripe_size", "77")  # ROMIO_HINTS has striping_factor and it, the site more
    monkeypatch.delenv("ROMIO_HINTS")
    found = in_force()
    assert found["striping_unit"] == ("3", "MPICH_MPIIO_HINTS")
    monkeypatch.delenv("MPICH_MPIIO_HINTS")
    assert in_force()["striping_unit"] == ("77", "Open MPI parameter")
    monkeypatch.delenv("OMPI_MCA_fs_lustre_stripe_size")
    assert in_force()["striping_unit"] == ("5", "site file")


# ---- fuzzing ---------------------------------------------------------------------------------------------------------


def test_fuzzed(tmp_path: pathlib.Path) -> None:
    """libFuzzer with address and undefined-behaviour sanitizers, from texts as people write them."""
    texts = (
        "# c\ncb_nodes 4\ncb_nodes 8\nromio_ds_write\tdisable\r\nstriping_unit = 1M\n",
        "*:cb_config_list=#*:2#:cb_nodes=32,\\*[a-c]?:direct_io=true",
        '*.h5:cb_config_list="a,b":cb_nodes=8,*:striping_unit=1M',
        "# c\nbtl = ^openib\nio_ompio_num_aggregators=4\nio = ^ompio,x\nfcoll = individual\n",
        '[*.h5]\ncb_nodes = 8 # c\n; d\ncb_config_list = "*:*"\n',
    )
    files = [CSRC_HINTS / f"mpiox_hints_{name}.c" for name in ("text", "romio", "mca")]
    files.append(CSRC_HINTS.parent / "common" / "mpiox_text.c")
    cbuild.fuzz(
        "hints/fuzz_hints.c",
        folder=tmp_path,
        runs=100_000,
        most=6000,
        files=files,
        corpus=[text.encode() for text in texts],
    )
