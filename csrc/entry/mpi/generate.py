"""Generate the MPI wrappers of libmpiio_ext.so from the table of I/O calls, ``mpiio_ext/common/iocalls.txt``.

``outputs()`` maps the names of the files to their texts; ``build.py`` writes them for the build.

``mpiox_handlers.h`` declares what carries the "handled" functions out. ``mpiox_calls.c`` and ``mpiox_calls_impl.h``
hold the counters of calls. ``mpiox_wrappers.c`` holds one hidden function ``mpiox_wrap_NAME`` for every MPI function of
the table, which counts the call and passes it to the library or to PMPI, and the exported ``MPI_NAME`` that calls it.
``mpiox_fortran.c`` holds, for Open MPI alone, the Fortran entry points: Open MPI's own go straight to ``PMPI_*``, so
that wrapping the C names would miss every Fortran program. MPICH's Fortran library calls the C names.
``mpiox_any_mpi_names.h`` turns every name of the MPI library that the sources use into a look-up at run time, for
builds that serve a whole ABI (mpiox_any_mpi.h).
"""

from __future__ import annotations

import re
import runpy
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
CALLS = HERE.parents[2] / "mpiio_ext" / "common" / "iocalls.py"
COLUMNS = 120
#: Kind of data access -> the function that may take it over.
ACCESS_KINDS = {
    "blocking": "mpiox_mpi_access(fh, &call, status, &result)",
    "nonblocking": "mpiox_mpi_access_start(fh, &call, request, &result)",
    "begin": "mpiox_mpi_access_begin(fh, &call, &result)",
    "end": "mpiox_mpi_access_end(fh, {write}, {positioning}, status, &result)",
}
KINDS = frozenset(ACCESS_KINDS) | {"pass", "handled", "outside", "tracer"}


@dataclass(frozen=True)
class Type:
    """How one parameter type of the table looks in C and how its Fortran form is converted.

    In the templates ``{n}`` is the parameter's name. ``fortran`` is its C declaration in a Fortran entry point (None:
    the type never occurs there; "": Fortran has no such parameter), ``argument`` what is passed on, ``before`` and
    ``after`` the conversions around the call.
    """

    c: str
    fortran: str | None = None
    argument: str = ""
    before: str = ""
    after: str = ""
    large: str | None = None

    def declare(self, name: str, *, large: bool = False) -> str:
        """C parameter declaration; the large-count form if requested."""
        text = self.large if large and self.large else self.c
        return text + name if text.endswith("*") else f"{text} {name}"


def _handler(name: str) -> str:
    """Return the name that carries out a "handled" MPI function: File_open -> mpiox_mpi_open, Wait -> mpiox_wait."""
    return "mpiox_" + re.sub("^file_", "mpi_", name.lower())


#: What begins a conversion behind a call that must have gone well, and what ends one that takes memory.
_IF_WELL = "if (result == MPI_SUCCESS)\n        "
_OR_NO_MEMORY = "\n    if (!c_{n})\n        return mpiox_fortran_result(ierror, MPI_ERR_NO_MEM);"


def _in(c: str, argument: str) -> Type:
    """Return a value that goes in; its `argument` is passed on."""
    return Type(c, "MPI_Fint *{n}", argument)


def _in_handle(c: str, convert: str) -> Type:
    return _in(c, f"{convert}(*{{n}})")


def _through(c: str, value: str, after: str) -> Type:
    """Return an argument by address: a variable in C with a value before the call, converted back behind it."""
    return Type(f"{c} *", "MPI_Fint *{n}", "&c_{n}", f"{c} c_{{n}} = {value};", after)


def _out_handle(c: str, null: str, convert: str) -> Type:
    return _through(c, null, f"{_IF_WELL}*{{n}} = {convert}(c_{{n}});")


_IN_STRING = Type(
    "const char *",
    "const char *{n}",
    "c_{n}",
    "char *c_{n} = mpiox_fortran_string({n}, {n}_length);" + _OR_NO_MEMORY,
    "free(c_{n});",
)
_OUT_STRING = Type(
    "char *",
    "char *{n}",
    "c_{n}",
    'char c_{n}[MPI_MAX_DATAREP_STRING + 1] = "";',
    _IF_WELL + "mpiox_fortran_pad(c_{n}, {n}, {n}_length);",
)

TYPES: dict[str, Type] = {
    "comm": _in_handle("MPI_Comm", "PMPI_Comm_f2c"),
    "info": _in_handle("MPI_Info", "PMPI_Info_f2c"),
    "datatype": _in_handle("MPI_Datatype", "PMPI_Type_f2c"),
    "file": _in_handle("MPI_File", "PMPI_File_f2c"),
    "errhandler": _in_handle("MPI_Errhandler", "PMPI_Errhandler_f2c"),
    "info_out": _out_handle("MPI_Info", "MPI_INFO_NULL", "PMPI_Info_c2f"),
    "datatype_out": _out_handle("MPI_Datatype", "MPI_DATATYPE_NULL", "PMPI_Type_c2f"),
    "group_out": _out_handle("MPI_Group", "MPI_GROUP_NULL", "PMPI_Group_c2f"),
    "errhandler_out": _out_handle("MPI_Errhandler", "MPI_ERRHANDLER_NULL", "PMPI_Errhandler_c2f"),
    "request": _out_handle("MPI_Request", "MPI_REQUEST_NULL", "PMPI_Request_c2f"),
    "file_new": _out_handle("MPI_File", "MPI_FILE_NULL", "PMPI_File_c2f"),
    "file_ref": _through(
        "MPI_File", "PMPI_File_f2c(*{n})", "if (c_{n} == MPI_FILE_NULL)\n        *{n} = PMPI_File_c2f(c_{n});"
    ),
    "argc": Type("int *", "", "NULL"),
    "argv": Type("char ***", "", "NULL"),
    "int": _in("int", "(int) *{n}"),
    "fint": Type("MPI_Fint"),
    "count": Type("int", "MPI_Fint *{n}", "(int) *{n}", large="MPI_Count"),
    "request_in": _in_handle("MPI_Request", "PMPI_Request_f2c"),
    "request_ref": _through("MPI_Request", "PMPI_Request_f2c(*{n})", "*{n} = PMPI_Request_c2f(c_{n});"),
    "requests": Type(
        "MPI_Request *",
        "MPI_Fint *{n}",
        "c_{n}",
        "MPI_Request *c_{n} = mpiox_fortran_requests({n}, *{count});" + _OR_NO_MEMORY,
        "mpiox_fortran_requests_back(c_{n}, {n}, *{count});",
    ),
    "requests_in": Type("const MPI_Request *"),
    "statuses": Type(
        "MPI_Status *",
        "MPI_Fint *{n}",
        "c_{n}",
        "MPI_Status *c_{n} = mpiox_fortran_statuses({n}, *{count});",
        "mpiox_fortran_statuses_back(c_{n}, {n}, *{count});",
    ),
    "index_out": _through("int", "MPI_UNDEFINED", "*{n} = mpiox_fortran_index(c_{n});"),
    "indices_out": Type(
        "int *",
        "MPI_Fint *{n}",
        "{n}",
        "",
        "for (int i = 0; c_outcount != MPI_UNDEFINED && i < c_outcount; i++)\n"
        "        {n}[i] = mpiox_fortran_index({n}[i]);",
    ),
    "length": _in("int", "(int) *{n}"),
    "number_out": _through("int", "0", "*{n} = (MPI_Fint) c_{n};"),
    "logical": _in("int", "*{n} != 0"),
    "logical_out": _through("int", "*{n} != 0", "*{n} = c_{n} != 0;"),
    "int_out": _through("int", "0", _IF_WELL + "*{n} = (MPI_Fint) c_{n};"),
    "offset": Type("MPI_Offset", "MPI_Offset *{n}", "*{n}"),
    "offset_out": Type("MPI_Offset *", "MPI_Offset *{n}", "{n}"),
    "extent_out": Type("MPI_Aint *", "MPI_Aint *{n}", "{n}", large="MPI_Count *"),
    "buffer_in": Type("const void *", "void *{n}", "mpiox_fortran_buffer({n})"),
    "buffer_out": Type("void *", "void *{n}", "mpiox_fortran_buffer({n})"),
    "string": _IN_STRING,
    "string_out": _OUT_STRING,
    "status": Type(
        "MPI_Status *",
        "MPI_Fint *{n}",
        "mpiox_fortran_status_ignored({n}) ? MPI_STATUS_IGNORE : &c_{n}",
        "MPI_Status c_{n};\n\n    if (!mpiox_fortran_status_ignored({n}))\n        PMPI_Status_f2c({n}, &c_{n});",
        "if (!mpiox_fortran_status_ignored({n}))\n        PMPI_Status_c2f(&c_{n}, {n});",
    ),
    "errhandler_fn": Type("MPI_File_errhandler_function *"),
    "datarep_fn": Type("MPI_Datarep_conversion_function *", large="MPI_Datarep_conversion_function_c *"),
    "extent_fn": Type("MPI_Datarep_extent_function *"),
    "state": Type("void *"),
}


@dataclass(frozen=True)
class Function:
    """One line of the table."""

    name: str
    kind: str
    flags: frozenset[str]
    parameters: tuple[tuple[str, str], ...]
    returns: str

    @property
    def wrapper(self) -> str:
        """Name of the function that does the work: hidden, or that which a tool in front of the library wraps."""
        return f"{'MPI' if self.kind in ('outside', 'tracer') else 'mpiox_wrap'}_{self.name}"

    def declaration(self, *, large: bool) -> str:
        """C parameter list."""
        return ", ".join(TYPES[kind].declare(name, large=large) for kind, name in self.parameters) or "void"

    def arguments(self) -> str:
        """C argument list."""
        return ", ".join(name for _, name in self.parameters)

    def names(self) -> tuple[str, ...]:
        """Parameter names."""
        return tuple(name for _, name in self.parameters)


def read_table() -> list[Function]:
    """Return the functions of MPI in the table; ValueError if one has properties for which there is no wrapper."""
    found = []
    for call in runpy.run_path(str(CALLS))["CALLS"]:
        if call.layer not in ("mpi", "mpiio"):
            continue
        kinds = KINDS.intersection(call.words)
        unknown = {kind for kind, _ in call.parameters} - TYPES.keys()
        if len(kinds) != 1 or unknown:
            raise ValueError(f"{call.name}: {', '.join(sorted(unknown)) or 'not one kind'}")
        (kind,), flags, name = kinds, frozenset(call.words) - kinds, call.name.removeprefix("MPI_")
        found.append(Function(name, kind, flags, call.parameters, call.returns or "int"))
    return found


def _access_body(function: Function, pmpi: str) -> list[str]:
    """Body of a data access that the library may take over."""
    write = str("write" in function.flags).lower()
    positioning = (
        "MPIOX_SHARED_POINTER"
        if "shared" in function.flags
        else "MPIOX_EXPLICIT_OFFSET"
        if "at" in function.flags
        else "MPIOX_INDIVIDUAL_POINTER"
    )
    call: list[str] = []
    if function.kind != "end":
        collective = str("collective" in function.flags).lower()
        offset = "offset" if "offset" in function.names() else "0"
        buffer = "(void *) buf" if write == "true" else "buf"
        call = [
            "    const mpiox_mpi_call call = {",
            f"        .write = {write}, .collective = {collective}, .positioning = {positioning}, .offset = {offset},",
            f"        .buffer = {buffer}, .count = count, .datatype = datatype}};",
        ]
    taken = ACCESS_KINDS[function.kind].format(write=write, positioning=positioning)
    count = f"    COUNT({function.name.upper()});"
    checked = f"result == MPI_SUCCESS ? result : mpiox_mpi_failed(fh, {_spent(function)}, result)"
    return [
        "    int result;",
        *call,
        "",
        count,
        f"    if (!{taken})",
        f"        result = {pmpi};",
        f"    return {checked};",
    ]


def _spent(function: Function) -> str:
    """Return as what a failed call counts; "" for not at all."""
    of_data = {"read": "READ", "write": "WRITE"}
    words = function.flags | {function.kind}
    counted = next((of_data.get(word, "SYNC") for word in ("read", "write", "sync", "resize") if word in words), "")
    return f"MPIOX_SPENT_{counted}" if counted else ""


def _wrapper(function: Function, *, large: bool) -> str:
    """Hidden wrapper and exported function of one table line."""
    suffix = "_c" if large else ""
    name = function.name + suffix
    declaration = function.declaration(large=large)
    pmpi = f"PMPI_{name}({function.arguments()})"
    lines = [f"HIDDEN {function.returns} mpiox_wrap_{name}({declaration}) {{"]
    if function.kind in ACCESS_KINDS:
        lines += _access_body(function, pmpi)
    else:
        lines.append(f"    COUNT({function.name.upper()});")
        target = f"{_handler(function.name)}({function.arguments()})" if function.kind == "handled" else pmpi
        spent = _spent(function)
        if spent:
            lines += [
                f"    const int result = {target};",
                f"    return result == MPI_SUCCESS ? result : mpiox_mpi_failed(fh, {spent}, result);",
            ]
        else:
            lines.append(f"    return {target};")
    lines += [
        "}",
        "",
        f"EXPORT {function.returns} MPI_{name}({declaration}) {{",
        f"    return mpiox_wrap_{name}({function.arguments()});",
        "}",
        "",
    ]
    return "\n".join(lines)


WRAPPERS_HEAD = """\
/*
 * Generated by csrc/entry/mpi/generate.py from mpiio_ext/common/iocalls.txt. Do not edit.
 *
 * The C entry points of MPI-IO. mpiox_wrap_NAME counts the call and leaves what the library does not take over to
 * PMPI_NAME. MPI_NAME, the symbol that programs resolve to, and the Fortran entry points both call it.
 */
#include <mpi.h>
#include <stddef.h>
#include <stdint.h>

#include "mpiox_calls_impl.h"
#include "mpiox_handlers.h"
#include "mpiox_mpi_access.h"
#include "mpiox_mpi_error.h"

#define EXPORT __attribute__((visibility("default")))
#define HIDDEN __attribute__((visibility("hidden")))
"""


NOTE = "/* Generated by csrc/entry/mpi/generate.py from mpiio_ext/common/iocalls.txt. Do not edit. */\n"


def calls_header(functions: list[Function]) -> str:
    """Text of mpiox_calls_impl.h: one number for every wrapped function."""
    names = "".join(f"    CALL_{function.name.upper()},\n" for function in functions if function.kind != "outside")
    return (
        f"{NOTE}#ifndef MPIOX_CALLS_IMPL_H\n#define MPIOX_CALLS_IMPL_H\n\n#include <stdatomic.h>\n\n"
        "enum {\n" + names + "    CALLS\n};\n\n"
        'extern atomic_int_least64_t mpiox_calls[CALLS] __attribute__((visibility("hidden")));\n'
        "#define COUNT(name) atomic_fetch_add_explicit(&mpiox_calls[CALL_##name], 1, memory_order_relaxed)\n\n#endif\n"
    )


def calls(functions: list[Function]) -> str:
    """Text of mpiox_calls.c: names and counters of the wrapped functions."""
    names = "".join(f'    "MPI_{function.name}",\n' for function in functions if function.kind != "outside")
    return (
        f'{NOTE}#include "mpiox_calls.h"\n\n#include <stddef.h>\n\n#include "mpiox_calls_impl.h"\n\n'
        "static const char *const names[CALLS] = {\n" + names + "};\n\n"
        "atomic_int_least64_t mpiox_calls[CALLS];\n\n"
        "int mpiox_calls_count(void) {\n    return CALLS;\n}\n\n"
        "const char *mpiox_calls_name(int index) {\n"
        "    return index >= 0 && index < CALLS ? names[index] : NULL;\n}\n\n"
        "int64_t mpiox_calls_value(int index) {\n    return index >= 0 && index < CALLS\n"
        "               ? atomic_load_explicit(&mpiox_calls[index], memory_order_relaxed)\n               : 0;\n}\n"
    )


def handlers(functions: list[Function]) -> str:
    """Text of mpiox_handlers.h: functions that carry calls out, declared like their MPI namesakes."""
    handled = [function for function in functions if function.kind == "handled"]
    new = [function for function in functions if "mpi5" in function.flags]
    lines = [f"{NOTE}#ifndef MPIOX_HANDLERS_H\n#define MPIOX_HANDLERS_H\n\n#include <mpi.h>\n"]
    lines += [f"int {_handler(each.name)}({each.declaration(large=False)});" for each in handled]
    lines.append("\n#if MPI_VERSION >= 5 && !defined(MPIOX_ANY_MPI) /* MPICH has them, but not in its mpi.h */")
    lines += [f"extern {each.returns} PMPI_{each.name}({each.declaration(large=False)});" for each in new]
    return "\n".join([*lines, "#endif\n\n#endif\n"])


def wrappers(functions: list[Function]) -> str:
    """Text of mpiox_wrappers.c."""
    wrapped = [function for function in functions if function.kind != "outside"]
    parts = [WRAPPERS_HEAD]
    for function in wrapped:
        if "mpi5" not in function.flags:
            parts.append(_prototype(function, large=False) + "\n" + _wrapper(function, large=False))
    large = [function for function in wrapped if "large" in function.flags]
    parts.append("#if MPI_VERSION >= 4 /* large counts */\n")
    parts += [_prototype(function, large=True) + "\n" + _wrapper(function, large=True) for function in large]
    parts.append(
        "#endif\n\n#if MPI_VERSION >= 5 /* handles as integers: MPICH exports them, its mpi.h leaves them out */\n"
    )
    for function in wrapped:
        if "mpi5" in function.flags:
            prototype = f"extern {function.returns} MPI_{function.name}({function.declaration(large=False)});\n"
            parts.append(prototype + _prototype(function, large=False) + "\n" + _wrapper(function, large=False))
    parts.append("#endif\n")
    return "\n".join(parts)


def _prototype(function: Function, *, large: bool) -> str:
    name = function.wrapper + ("_c" if large else "")
    return f"{function.returns} {name}({function.declaration(large=large)});\n"


FORTRAN_HEAD = """\
/*
 * Generated by csrc/entry/mpi/generate.py from mpiio_ext/common/iocalls.txt. Do not edit.
 *
 * The Fortran entry points of Open MPI: every spelling of the mpif.h and `use mpi` bindings, and the C-interoperable
 * names that its mpi_f08 module calls. Handles, statuses, strings, logicals and the special addresses MPI_BOTTOM and
 * MPI_STATUS_IGNORE are converted, then the C wrapper is called. A string's hidden length is an int in all of them: the
 * f08 module passes one, and compilers that pass more bytes put the low ones in the same place.
 */
#include <mpi.h>

#ifdef OPEN_MPI

#include <stdlib.h>

#include "mpiox_fortran_convert.h"

#define EXPORT __attribute__((visibility("default")))
#define ALIAS(name, target) \\
    extern __typeof__(target) name __attribute__((alias(#target), visibility("default")))
"""


def _fortran_names(function: Function) -> list[str]:
    """Every symbol by which a Fortran program may call the function, the primary one left out."""
    mixed, lower = f"MPI_{function.name}", f"mpi_{function.name.lower()}"
    names = [lower, f"{lower}__", lower.upper(), f"{mixed}_f", f"{mixed}_f08", f"o{lower}_f"]
    if "f08alias" in function.flags:
        names.append(f"{lower}_f08_")
    return names


def _fortran_entry(function: Function) -> str:
    types = [(TYPES[kind], name) for kind, name in function.parameters]
    declarations = []
    for kind, name in types:
        if kind.fortran is None:
            raise ValueError(f"{function.name}: parameter {name} has no Fortran form")
        declarations += [kind.fortran.replace("{n}", name)] if kind.fortran else []
    declarations.append("MPI_Fint *ierror")
    declarations += [f"int {name}_length" for kind, name in types if kind in (_IN_STRING, _OUT_STRING)]
    primary = f"mpi_{function.name.lower()}_"
    arguments = ", ".join(kind.argument.replace("{n}", name) for kind, name in types)
    parameters = ", ".join(declarations)
    lines = [f"void {primary}({parameters});", f"EXPORT void {primary}({parameters}) {{"]
    counts = [name for kind, name in function.parameters if kind == "length"]

    def fill(template: str, name: str) -> str:
        return template.replace("{n}", name).replace("{count}", counts[0] if counts else "")

    before = [f"    {fill(kind.before, name)}" for kind, name in types if kind.before]
    after = [f"    {fill(kind.after, name)}" for kind, name in types if kind.after]
    lines += [
        "    int result;",
        *before,
        "",
        f"    result = {function.wrapper}({arguments});",
        *after,
        "    mpiox_fortran_result(ierror, result);",
        "}",
    ]
    lines += [f"ALIAS({name}, {primary});" for name in _fortran_names(function)]
    return _prototype(function, large=False) + "\n".join([*lines, ""])


def fortran(functions: list[Function]) -> str:
    """Text of mpiox_fortran.c."""
    entries = [_fortran_entry(function) for function in functions if not function.flags & {"nofortran", "mpi5"}]
    return "\n".join([FORTRAN_HEAD, *entries, "#else\ntypedef int mpiox_fortran_not_needed;\n#endif\n"])


#: Objects of Open MPI's library behind MPI_COMM_WORLD and its kin, and what Fortran programs compare addresses with.
_OPENMPI_OBJECTS = """
    MPI_F_STATUSES_IGNORE MPI_F_STATUS_IGNORE OMPI_C_MPI_COMM_NULL_COPY_FN mpi_fortran_bottom_
    mpi_fortran_status_ignore_ mpi_fortran_statuses_ignore_ ompi_mpi_2int ompi_mpi_byte ompi_mpi_c_bool ompi_mpi_char
    ompi_mpi_comm_null ompi_mpi_comm_self ompi_mpi_comm_world ompi_mpi_datatype_null ompi_mpi_double ompi_mpi_double_int
    ompi_mpi_errhandler_null ompi_mpi_errors_are_fatal ompi_mpi_errors_return ompi_mpi_file_null ompi_mpi_float_int
    ompi_mpi_group_empty ompi_mpi_group_null ompi_mpi_info_null ompi_mpi_int ompi_mpi_int64_t ompi_mpi_long_int
    ompi_mpi_longdbl_int ompi_mpi_op_bor ompi_mpi_op_land ompi_mpi_op_max ompi_mpi_op_min ompi_mpi_op_minloc
    ompi_mpi_op_sum ompi_mpi_short_int ompi_mpi_unsigned_char ompi_request_null
"""

ANY_MPI_HEAD = """\
/*
 * Generated by csrc/entry/mpi/generate.py. Do not edit. Included in front of every source behind mpiox_any_mpi.h.
 *
 * The names of the MPI library that the sources use, each a macro for a look into the table. What mpi.h defines as a
 * macro stays that; MPI_NAME is for the engine, which calls MPI as a program does (MPIOX_ANY_MPI_AS_PROGRAM).
 */
#ifndef MPIOX_ANY_MPI_NAMES_H
#define MPIOX_ANY_MPI_NAMES_H
"""

ANY_MPI_TABLE = """\
#if defined(OPEN_MPI)
#define MPIOX_ANY_LIBRARIES {"libmpi.so.40"}
#elif defined(MPICH)
#define MPIOX_ANY_LIBRARIES {"libmpi.so.12", "libmpich.so.12"}
#else
#define MPIOX_ANY_LIBRARIES {"libmpi_abi.so.1", "libmpi_abi.so.0"}
#endif
"""


def _used_names() -> tuple[list[str], list[str]]:
    """Return the names PMPI_* that the library's own sources use, and the MPI_* that the engine calls."""
    csrc = HERE.parents[1]
    used: set[str] = set()
    called: set[str] = set()
    for path in sorted([*csrc.glob("*/*/*.c"), *csrc.glob("*/*/*.h")]):
        folder = path.parent.name
        if folder not in ("trace", "engine"):
            used.update(re.findall(r"\bPMPI_[A-Z]\w*[a-z0-9]\b", path.read_text(encoding="utf-8")))
        elif folder == "engine":
            text = path.read_text(encoding="utf-8")
            called.update(re.findall(r"\b(MPI_[A-Z]\w*[a-z0-9])\(", text))
            called.update(re.findall(r"\b(MPI_[A-Z][a-z0-9]*_\w*[a-z0-9])\b", text))  # named to a macro that calls it
    return sorted(used), sorted(called)


def any_mpi(functions: list[Function]) -> str:
    """Text of mpiox_any_mpi_names.h."""
    used, called = _used_names()
    wrapped = {f"PMPI_{f.name}{suffix}" for f in functions for suffix in (["", "_c"] if "large" in f.flags else [""])}
    converted = {name for kind in TYPES.values() for name in re.findall(r"PMPI_\w+", f"{kind}")}
    names = sorted({*used, *wrapped, *converted})
    every = [*names, *_OPENMPI_OBJECTS.split(), *called]
    lines = [ANY_MPI_HEAD, "#if MPI_VERSION >= 5 && defined(MPICH) /* its mpi.h leaves them out */"]
    prototypes = (
        f"extern {f.returns} PMPI_{f.name}({f.declaration(large=False)});" for f in functions if "mpi5" in f.flags
    )
    lines += [fold(prototype).rstrip() for prototype in prototypes]
    lines += ["#endif", "#ifdef OPEN_MPI", "extern MPI_Fint mpi_fortran_bottom_, mpi_fortran_status_ignore_;"]
    lines += ["extern MPI_Fint mpi_fortran_statuses_ignore_;", "#endif", "", "enum {"]
    lines += [f"    MPIOX_ANY_{name}," for name in every]
    lines += ["    MPIOX_ANY_NAMES", "};", "", "#define MPIOX_HAS(name) mpiox_any_mpi_has(MPIOX_ANY_##name)", ""]
    lines += [ANY_MPI_TABLE.rstrip(), "#define MPIOX_ANY_TEXTS \\", "    { \\"]
    lines += [f'        "{name}", \\' for name in every]
    lines += ["    }", ""]

    def define(name: str) -> list[str]:
        target = f"(*(__typeof__({name}) *)mpiox_any_mpi(MPIOX_ANY_{name}))"
        return [f"#ifndef {name}", f"#define {name} \\", f"    {target}", "#endif"]

    lines += [line for name in names for line in define(name)]
    lines += ["#ifdef OPEN_MPI", *(line for name in _OPENMPI_OBJECTS.split() for line in define(name)), "#endif"]
    lines += ["#ifdef MPIOX_ANY_MPI_AS_PROGRAM", *(line for name in called for line in define(name)), "#endif", ""]
    return "\n".join([*lines, "#endif\n"])


def fold(text: str) -> str:
    """Break lines of more than COLUMNS characters behind a comma, as the hand-written sources do."""
    lines = []
    for line in text.splitlines():
        indent = " " * (len(line) - len(line.lstrip()) + 4)
        while len(line) > COLUMNS:
            cut = line.rfind(", ", 0, COLUMNS) + 1
            lines.append(line[:cut])
            line = indent + line[cut + 1 :]
        lines.append(line)
    return "\n".join(lines) + "\n"


def outputs() -> dict[str, str]:
    """Name of every generated file, with its text."""
    wrapped = [each for each in read_table() if each.kind != "tracer"]
    return {
        "mpiox_calls.c": calls(wrapped),
        "mpiox_calls_impl.h": calls_header(wrapped),
        "mpiox_handlers.h": fold(handlers(wrapped)),
        "mpiox_wrappers.c": fold(wrappers(wrapped)),
        "mpiox_fortran.c": fold(fortran(wrapped)),
        "mpiox_any_mpi_names.h": any_mpi(wrapped),
    }
