"""Generate the calls of ``tests/programs/fortran_calls.F90`` from the table of I/O calls.

Problem. A Fortran binding converts names, handles, counts, logicals, addresses and statuses; the library has its own
one for Open MPI. Algorithm. Each call of the table is made several times, with arguments by type: variant i of a call
takes value i of each list below, in a cycle. Guarantee. No call of the table that has a Fortran form is left out.
"""

from __future__ import annotations

from mpiio_ext.common.iocalls import CALLS, Call

#: What a file name can look like from Fortran. The test creates a file with the leading blanks, and one without.
_NAMES = (
    "'plain'",
    "'trailing   '",
    "'  leading'",
    "'  both sides  '",
    "'       7.chk'",
    "repeat('n', 200)",
    "repeat(' ', 30)",
    "''",
)
_DATAREPS = (
    "'native'",
    "'native   '",
    "'  native'",
    "'  native  '",
    "'na tive'",
    "'none'",
    "repeat('n', 200)",
    "'   '",
    "''",
)
#: Count, datatype and buffer, which belong together. OMPIO accesses MPI_BOTTOM only in collectives.
_DATA = (("2", "pair", "values"), ("0", "pair", "values"), ("4", "MPI_INTEGER", "values"), ("2", "gaps", "values"))
_ABSOLUTE = ("1", "absolute", "MPI_BOTTOM")
#: Arguments of a type, or of the parameter "type:name".
_ARGUMENTS = {
    "comm": ("MPI_COMM_SELF",),
    "info": ("info", "MPI_INFO_NULL"),
    "info_out": ("used",),
    "datatype": ("MPI_INTEGER",),
    "datatype:filetype": ("MPI_INTEGER", "gaps"),
    "datatype_out:etype": ("etype",),
    "datatype_out:filetype": ("filetype",),
    "group_out": ("group",),
    "errhandler": ("MPI_ERRORS_RETURN",),
    "errhandler_out": ("errhandler",),
    "file": ("file", "file", "file", "file", "file", "MPI_FILE_NULL"),
    "file_new": ("fresh",),
    "file_ref": ("file",),
    "int:amode": ("MPI_MODE_RDWR", "MPI_MODE_RDWR + MPI_MODE_CREATE"),
    "int:whence": ("MPI_SEEK_SET", "MPI_SEEK_CUR", "MPI_SEEK_END"),
    "int:errorcode": ("MPI_ERR_IO",),
    "int_out": ("number",),
    "offset": ("2_MPI_OFFSET_KIND", "0_MPI_OFFSET_KIND"),
    "offset:size": ("40_MPI_OFFSET_KIND", "0_MPI_OFFSET_KIND"),
    "offset_out": ("offset",),
    "extent_out": ("extent",),
    "logical": (".true.", ".false."),
    "logical_out": ("flag",),
    "number_out": ("number",),
    "index_out": ("number",),
    "indices_out": ("indices",),
    "string:filename": _NAMES,
    "string:datarep": _DATAREPS,
    "string_out": ("text", "text(1:8)", "text(1:6)", "text(1:3)"),
    "status": ("state", "MPI_STATUS_IGNORE"),
    "statuses": ("states", "MPI_STATUSES_IGNORE"),
    "request": ("request",),
    "request_in": ("requests(2)",),
    "request_ref": ("requests(2)",),
    "requests": ("requests",),
}
#: What shows a result; {n} is the argument.
_SHOWN = {
    "info_out": "call show_info('info', {n})",
    "datatype_out": "call show_type('type', {n})",
    "group_out": "call MPI_Group_size(group, number, i); call show_numbers('group', [number])",
    "errhandler_out": "call show_flag('returns', errhandler == MPI_ERRORS_RETURN)",
    "file_new": "call show_file('file', {n})",
    "file_ref": "call show_flag('null', {n} == MPI_FILE_NULL)",
    "int_out": "call show_numbers('number', [{n}])",
    "number_out": "call show_numbers('number', [{n}])",
    "index_out": "call show_numbers('index', [{n}])",
    "indices_out": "call show_numbers('indices', {n}(:max(0, number)))",
    "offset_out": "call show_number('offset', {n})",
    "extent_out": "call show_number('extent', int({n}, MPI_OFFSET_KIND))",
    "logical_out": "call show_flag('flag', {n})",
    "string_out": "call show_text('text', text)",
    "status": "call show_status('status', state)",
    "buffer_out": "call show_numbers('buffer', values)",
    "request_ref": "call show_flag('null', {n} == MPI_REQUEST_NULL)",
    "requests": "do i = 1, 3; call show_flag('null', {n}(i) == MPI_REQUEST_NULL); end do",
    "statuses": "do i = 1, number; call show_status('status', STATE(i)); end do",
}
_REQUESTS = frozenset({"request_ref", "request_in", "requests"})
#: Calls that the program itself makes, and one that ends it.
_ELSEWHERE = frozenset({"MPI_Init", "MPI_Init_thread", "MPI_Finalize", "MPI_Abort"})


def _data(call: Call) -> tuple[tuple[str, str, str], ...]:
    """Return what a data access moves."""
    return (*_DATA, _ABSOLUTE) if "collective" in call.words and "nonblocking" not in call.words else _DATA


def _choices(kind: str, name: str) -> tuple[str, ...]:
    return _ARGUMENTS.get(f"{kind}:{name}") or _ARGUMENTS[kind]


def _moves(call: Call) -> bool:
    return any(kind.startswith("buffer") for kind, _ in call.parameters)


def _variants(call: Call) -> int:
    if _moves(call):
        return 2 * len(_data(call))
    return max((len(_choices(kind, name)) for kind, name in call.parameters), default=1)


def _arguments(call: Call, variant: int) -> dict[str, str]:
    """Return the argument of each parameter, by its name."""
    data: dict[str, str] = {}
    if _moves(call):
        moved = _data(call)
        data = dict(zip(("count", "datatype", "buf"), moved[variant % len(moved)], strict=True))
    found = {}
    for kind, name in call.parameters:
        choices = (data[name],) if name in data else _choices(kind, name)
        turns = variant // len(choices) if len(choices) < len(_DATA) else 0  # not in step with the longer lists
        found[name] = choices[(variant + turns) % len(choices)]
    return found


def _call(call: Call, arguments: dict[str, str], title: str, *, ierror: bool = True) -> tuple[list[str], list[str]]:
    """Return a call and the line that shows its error class, and what shows its other results."""
    shown = [_SHOWN[kind].replace("{n}", arguments[name]) for kind, name in call.parameters if kind in _SHOWN]
    if "blocking" in call.words:  # ROMIO sets the field at the end of a split collective
        shown.append("call show_numbers('error', [ERROR_FIELD(state)])")
    words = [*arguments.values(), *(["ierror"] if ierror else [])]
    return [f"call {call.name}({', '.join(words)})", f"call show('{title}')"], shown


def _file_call(call: Call, ends: dict[str, Call], *, f08: bool) -> list[str]:
    """Return all variants of a call that completes no requests; in mpi_f08 the last one is without `ierror`."""
    lines = ["call open_file('numbers', MPI_MODE_RDWR)"]
    variants = _variants(call)
    for variant in range(variants):
        arguments = _arguments(call, variant)
        ierror = not f08 or variant < variants - 1
        made, shown = _call(call, arguments, f"{call.name} {variant}", ierror=ierror)
        if "nonblocking" in call.words:
            made += ["call MPI_Wait(request, state, ierror)", "call show('wait')", _SHOWN["status"]]
        lines += ["call clear()", *made, *([] if "begin" in call.words else shown)]
        if "begin" in call.words:
            end = ends[call.name.removesuffix("begin")]
            both = _arguments(end, variant) | arguments
            arguments = {name: both[name] for _, name in end.parameters}
            made, shown = _call(end, arguments, f"{end.name} {variant}", ierror=ierror)
            lines += ["if (ierror == MPI_SUCCESS .or. ierror == untouched) then", *made, *shown, "end if"]
    return [*lines, "call close_file()"]


def _completion(call: Call, starts: dict[str, str], name: str, *, ignore: bool) -> list[str]:
    """Return a call that completes requests, for each start of requests of the file `name`."""
    kinds = dict(call.parameters)
    done = "flag" if "logical_out" in kinds else "number /= 0" if call.name == "MPI_Testsome" else ".true."
    lines = [f"call open_file('{name}', MPI_MODE_RDWR)"]
    for title, start in starts.items():
        for ignored in (False, True) if ignore else (False,):
            length = "0" if title == "empty" else "3"
            known = _ARGUMENTS | {"length": (length,)}
            arguments = {name: (known[kind] * 2)[ignored] for kind, name in call.parameters}
            made, shown = _call(call, arguments, f"{call.name} {title}{' ignored' if ignored else ''}")
            statuses = [] if "number_out" in kinds else [f"number = {length}"]
            lines += ["call clear()", *statuses, f"call {start}", "do", made[0]]
            lines += [f"if ({done} .or. ierror /= MPI_SUCCESS) exit", "end do", *made[1:], *shown]
            if "request_in" in kinds:
                lines.append("call MPI_Wait(requests(2), state, ierror)")
    return [*lines, "call close_file()"]


def _starts(call: Call) -> dict[str, str]:
    """Return what a completion is tried with: three active requests, the second alone, null ones, an empty array."""
    if call.name == "MPI_Request_free":
        return {"one": "start_persistent()"}
    starts = {"one": "start(2, 2)", "none": "start(1, 0)"}
    if "requests" in dict(call.parameters):
        starts["empty"] = "start(1, 0)"
    if call.name == "MPI_Waitall":  # ROMIO's own MPI_Testall of several accesses fails now and then
        starts["three"] = "start(1, 3)"
    return starts


def _refused(call: Call) -> list[str]:
    """Return a data access that the mode of the file forbids, and one of a wrong count."""
    lines = []
    forbids = "MPI_MODE_RDONLY" if "write" in call.words else "MPI_MODE_WRONLY"
    for mode, count in ((forbids, "4"), ("MPI_MODE_RDWR", "-1")):
        arguments = _arguments(call, 0) | {"count": count}
        made, shown = _call(call, arguments, f"{call.name} refused")
        lines += [f"call open_file('numbers', {mode})", "call clear()", *made, *shown, "call close_file()"]
    return lines


def calls(binding: int) -> str:
    """Return the text of fortran_calls.inc for mpif.h (1), `use mpi` (2) or `use mpi_f08` (3)."""
    ends = {call.name.removesuffix("end"): call for call in CALLS if "end" in call.words}
    lines: list[str] = []
    failures: list[str] = []
    for call in CALLS:
        if (
            call.layer not in ("mpi", "mpiio")
            or {"nofortran", "mpi5", "end"} & {*call.words}
            or call.name in _ELSEWHERE
        ):
            continue
        if _REQUESTS & {kind for kind, _ in call.parameters}:
            # Open MPI before 5.0.10 returns no flag where the status is ignored
            lines += _completion(call, _starts(call), "numbers", ignore=call.name != "MPI_Request_get_status")
            if "wait" in call.words:
                failures += _completion(call, {"failing": "start(2, 2)"}, "failing", ignore=False)
        else:
            lines += _file_call(call, ends, f08=binding == 3)
            failures += _refused(call) if "blocking" in call.words else []
    closing = ["call open_file('failing', MPI_MODE_RDWR)", "call MPI_File_close(file, ierror)"]
    closing += ["call show('MPI_File_close failing')", _SHOWN["file_ref"].replace("{n}", "file")]
    return "\n".join([*lines, "if (ours) then", *failures, *closing, "end if", ""])
