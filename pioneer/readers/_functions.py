"""What arguments of functions mean, for readers of traces that print them by position.

One line a function: name, layer, its arguments. The words are explained in
``csrc/tools/pioneer/mpiox_rawtrace_call.h``: columns of the table, "-" for what is left out (addresses of buffers), and
keys of ``extra``.
"""

from __future__ import annotations

from mpiio_ext.pioneer.table import LAYERS

_POSIX = """
open file,flags,mode=handle
creat file,mode=handle
openat dir,file,flags,mode=handle
openat2 dir,file,flags=handle
close handle
read handle,-,size
write handle,-,size
pread handle,-,size,offset
pwrite handle,-,size,offset
readv handle,iov,vectors
writev handle,iov,vectors
preadv handle,iov,vectors,offset
pwritev handle,iov,vectors,offset
preadv2 handle,iov,vectors,offset,flags
pwritev2 handle,iov,vectors,offset,flags
lseek handle,offset,whence
_llseek handle,offset_high,offset_low,-,whence
fsync handle
fdatasync handle
sync_file_range handle,offset,size,flags
syncfs handle
ftruncate handle,size
truncate file,size
fallocate handle,mode,offset,size
posix_fallocate handle,offset,size
fadvise handle,offset,size,advice
posix_fadvise handle,offset,size,advice
readahead handle,offset,size
stat file,...
lstat file,...
fstat handle,...
__xstat -,file,...
__lxstat -,file,...
__fxstat -,handle,...
__fxstatat -,dir,file,...
newfstatat dir,file,...
fstatat dir,file,...
statx dir,file,flags,mask,-
statfs file,...
fstatfs handle,...
access file,mode
faccessat dir,file,mode
faccessat2 dir,file,mode,flags
chmod file,mode
fchmod handle,mode
fchmodat dir,file,mode
chown file,owner,group
fchown handle,owner,group
unlink file
unlinkat dir,file,flags
rename file,file2
renameat dir,file,to_dir,file2
renameat2 dir,file,to_dir,file2,flags
link file,file2
linkat dir,file,to_dir,file2,flags
symlink target,file
symlinkat target,dir,file
readlink file,-,size
readlinkat dir,file,-,size
mkdir file,mode
mkdirat dir,file,mode
rmdir file
chdir file
fchdir handle
getdents handle,-,size
opendir file
closedir -
readdir -
utime file,...
utimes file,...
utimensat dir,file,...
getxattr file,name,-,size
setxattr file,name,-,size,flags
listxattr file,-,size
dup handle=handle
dup2 handle,to
dup3 handle,to,flags
fcntl handle,cmd,argument
ioctl handle,request,argument
flock handle,mode
mmap -,size,protection,flags,handle,offset
mmap2 -,size,protection,flags,handle,offset_pages
munmap address,size
msync address,size,flags
sendfile handle,from,offset_address,size
copy_file_range handle,offset_address,to,to_offset_address,size,flags
execve file,...
"""

_STDIO = """
fopen file,mode=handle
freopen file,mode,handle
fdopen descriptor,mode=handle
fclose handle
fread -,unit,unit,handle
fwrite -,unit,unit,handle
fgets -,size,handle
fputs -,handle
fgetc handle
fputc -,handle
fseek handle,offset,whence
fseeko handle,offset,whence
ftell handle
ftello handle
rewind handle
fflush handle
vfprintf handle,-,-
fileno handle
feof handle
setvbuf handle,-,mode,buffer
tmpfile =handle
remove file
"""

_AT = "handle,offset,-,count,datatype,-"
_CURRENT = "handle,-,count,datatype,-"
_START_AT = "handle,offset,-,count,datatype,request"
_START = "handle,-,count,datatype,request"
_BEGIN_AT = "handle,offset,-,count,datatype"
_BEGIN = "handle,-,count,datatype"


_WAITS = {
    "MPI_Wait": "request,-",
    "MPI_Waitall": "-,requests,-",
    "MPI_Waitany": "-,requests,-,-",
    "MPI_Waitsome": "-,requests,-,-,-",
    "MPI_Test": "request,flag,-",
    "MPI_Testall": "-,requests,flag,-",
    "MPI_Testany": "-,requests,-,flag,-",
    "MPI_Testsome": "-,requests,-,-,-",
}


def _mpiio() -> dict[str, str]:
    found = {
        "MPI_File_open": "comm,file,amode,info,handle_address",
        "MPI_File_close": "handle_address",
        "MPI_File_delete": "file,info",
        "MPI_File_set_size": "handle,size",
        "MPI_File_preallocate": "handle,size",
        "MPI_File_get_size": "handle,-",
        "MPI_File_get_amode": "handle,-",
        "MPI_File_get_group": "handle,-",
        "MPI_File_get_info": "handle,-",
        "MPI_File_set_info": "handle,info",
        "MPI_File_set_view": "handle,offset,etype,filetype,representation,info",
        "MPI_File_get_view": "handle,-,-,-,-",
        "MPI_File_seek": "handle,offset,whence",
        "MPI_File_seek_shared": "handle,offset,whence",
        "MPI_File_get_position": "handle,-",
        "MPI_File_get_position_shared": "handle,-",
        "MPI_File_get_byte_offset": "handle,offset,-",
        "MPI_File_get_type_extent": "handle,datatype,-",
        "MPI_File_set_atomicity": "handle,flag",
        "MPI_File_get_atomicity": "handle,-",
        "MPI_File_sync": "handle",
    }
    for verb in ("read", "write"):
        for name, at, current in ((verb, _AT, _CURRENT), (f"i{verb}", _START_AT, _START)):
            found |= {f"MPI_File_{name}{end}": at for end in ("_at", "_at_all")}
            found |= {f"MPI_File_{name}{end}": current for end in ("", "_all", "_shared")}
        found[f"MPI_File_{verb}_ordered"] = _CURRENT
        found[f"MPI_File_{verb}_at_all_begin"] = _BEGIN_AT
        found |= {f"MPI_File_{verb}_{end}_begin": _BEGIN for end in ("all", "ordered")}
        found |= {f"MPI_File_{verb}_{end}_end": "handle,-,-" for end in ("all", "at_all", "ordered")}
    return found


def _table() -> dict[str, tuple[str, str]]:
    found = {name: ("mpiio", signature) for name, signature in _mpiio().items()}
    found["MPI_Barrier"] = ("mpi", "comm")
    found |= {name: ("mpi", signature) for name, signature in _WAITS.items()}
    for layer, lines in (("stdio", _STDIO), ("posix", _POSIX)):
        for line in lines.strip().splitlines():
            name, _, signature = line.partition(" ")
            found[name] = (layer, signature)
    return found


#: Function -> (layer, signature). Names without prefixes of tracers and without "64".
FUNCTIONS = _table()

#: Name in the C library or the kernel -> name in the table.
ALIASES = {
    "__open": "open",
    "__xstat": "stat",
    "__fxstat": "fstat",
    "__lxstat": "lstat",
    "__fxstatat": "fstatat",
    "newfstatat": "fstatat",
    "newstat": "stat",
    "newlstat": "lstat",
    "newfstat": "fstat",
    "_llseek": "lseek",
    "mmap2": "mmap",
    "sendfile64": "sendfile",
    # Numbers of system calls that ltrace does not know; those below 400 are of x86-64.
    "316": "renameat2",
    "326": "copy_file_range",
    "327": "preadv2",
    "328": "pwritev2",
    "332": "statx",
    "435": "clone3",
    "437": "openat2",
    "439": "faccessat2",
}

#: (key of extra, number, name). Whence of the kernel's lseek and of MPI in MPICH-1, MPICH and Open MPI (600, 602, 604);
#: communicators of MPICH-1 (91, 92) and MPICH.
CONSTANTS = (
    ("whence", 0, "SEEK_SET"),
    ("whence", 1, "SEEK_CUR"),
    ("whence", 2, "SEEK_END"),
    ("whence", 3, "SEEK_DATA"),
    ("whence", 4, "SEEK_HOLE"),
    ("whence", 600, "SEEK_SET"),
    ("whence", 602, "SEEK_CUR"),
    ("whence", 604, "SEEK_END"),
    ("comm", 91, "MPI_COMM_WORLD"),
    ("comm", 92, "MPI_COMM_SELF"),
    ("comm", 0x44000000, "MPI_COMM_WORLD"),
    ("comm", 0x44000001, "MPI_COMM_SELF"),
)


#: Predefined datatypes -> bytes of an element, where long and pointers have 8 bytes.
DATATYPES = {
    **dict.fromkeys(
        (
            "BYTE",
            "PACKED",
            "CHAR",
            "SIGNED_CHAR",
            "UNSIGNED_CHAR",
            "INT8_T",
            "UINT8_T",
            "CHARACTER",
            "C_BOOL",
            "CXX_BOOL",
        ),
        1,
    ),
    **dict.fromkeys(("SHORT", "UNSIGNED_SHORT", "INT16_T", "UINT16_T"), 2),
    **dict.fromkeys(
        ("INT", "UNSIGNED", "FLOAT", "INT32_T", "UINT32_T", "INTEGER", "REAL", "LOGICAL", "INTEGER4", "REAL4", "WCHAR"),
        4,
    ),
    **dict.fromkeys(
        (
            "LONG",
            "UNSIGNED_LONG",
            "LONG_LONG",
            "LONG_LONG_INT",
            "UNSIGNED_LONG_LONG",
            "DOUBLE",
            "INT64_T",
            "UINT64_T",
            "DOUBLE_PRECISION",
            "INTEGER8",
            "REAL8",
            "AINT",
            "OFFSET",
            "COUNT",
            "COMPLEX",
            "C_COMPLEX",
            "C_FLOAT_COMPLEX",
        ),
        8,
    ),
    **dict.fromkeys(("LONG_DOUBLE", "DOUBLE_COMPLEX", "C_DOUBLE_COMPLEX"), 16),
}
DATATYPES = {f"MPI_{name}": size for name, size in DATATYPES.items()}


def operation_of(name: str) -> str:
    """Return the name in the table of a function as a tracer writes it."""
    bare = name.removeprefix("SYS_")
    if bare not in FUNCTIONS and bare not in ALIASES:
        bare = bare.removesuffix("64")
    return ALIASES.get(bare, bare)


def layer_of(operation: str) -> str:
    """Return the layer of a function by its name in the table."""
    if operation in FUNCTIONS:
        return FUNCTIONS[operation][0]
    return "mpiio" if operation.startswith("MPI_File_") else "mpi" if operation.startswith("MPI_") else "posix"


assert {layer for layer, _ in FUNCTIONS.values()} <= set(LAYERS)
