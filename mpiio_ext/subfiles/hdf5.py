"""Files of HDF5's subfiling driver: what their configuration says.

Format (HDF5 1.14, `H5FDsubfiling.h`). A file F that the driver has written is a stub of that name, which has a copy of
the superblock alone. The data is in F.subfile_INODE_I_of_N: I counts from 1, with as many digits as N has. INODE is
that of the stub. The text F.subfile_INODE.config has the lines ``stripe_size=``, ``aggregator_count=``,
``subfile_count=``, ``hdf5_file=`` and ``subfile_dir=``, and then the name of each subfile. Stripes go to the subfiles
in turn, as units do here, so that the merged file has the same bytes as that of the driver's own tool, h5fuse.

Guarantees. A configuration that misses a line, or whose numbers do not fit, is refused. Files that have been moved or
copied are found: subfiles beside the configuration come before those of the folder that it names, and the stub beside
it before the one that it names, which has to have its inode. All paths are absolute.
"""

from __future__ import annotations

import dataclasses
import os
import re
from pathlib import Path

from mpiio_ext.common.files import read_plain
from mpiio_ext.errors import FileSystemError
from mpiio_ext.subfiles.index import MOST_COUNT, MOST_UNIT, Striping, SubfilesError

_NAME = re.compile(r"(?P<base>.+)\.subfile_(?P<inode>\d+)\.config", re.DOTALL)
_MOST_BYTES = 64 << 20
#: The driver's variable for the folder of configurations.
_PREFIX = "H5FD_SUBFILING_CONFIG_FILE_PREFIX"


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """What a configuration says.

    Attributes
    ----------
    path : of the configuration.
    text : its content.
    file : the stub, which has the logical name.
    inode : of the stub when it was made, in digits.
    striping : stripe size and number of subfiles.
    subfiles : their paths.
    files : where the stub is, or the file that a merge has put in its place.
    """

    path: Path
    text: bytes
    file: Path
    inode: str
    striping: Striping
    subfiles: tuple[Path, ...]
    files: tuple[Path, ...]


def subfile_name(config: str, inode: str, number: int, count: int) -> str:
    """Return the name of a subfile, by the name of its configuration."""
    base = config.removesuffix(f".subfile_{inode}.config")
    return f"{base}.subfile_{inode}_{number + 1:0{len(str(count))}d}_of_{count}"


def find(path: Path) -> Config:
    """Return the configuration of a file, given by its own path or by that of the configuration.

    Raises
    ------
    SubfilesError, FileSystemError
        There is none, or more than one, or it cannot be used.
    """
    path = path.absolute()
    config = (path if _NAME.fullmatch(path.name) else _config_of(path)).absolute()
    named = _NAME.fullmatch(config.name)
    assert named is not None
    try:
        text = read_plain(config, _MOST_BYTES)
    except OSError as error:
        raise FileSystemError(error.errno, f"cannot be read: {error.strerror or error}", str(config)) from error
    if text is None:
        raise SubfilesError(f"{config}: is no plain file, or larger than {_MOST_BYTES} B")
    values, names = _lines(config, text)
    unit, count = (_number(config, values, key) for key in ("stripe_size", "subfile_count"))
    if unit > MOST_UNIT or count > MOST_COUNT or len(names) != count:
        raise SubfilesError(f"{config}: counts {count} subfiles of stripes of {unit} B, and names {len(names)}")
    said = values["subfile_dir"]  # of another folder than this one, where it is relative
    folders = (config.parent, config.parent / said, Path(said).absolute())
    folder = next((one for one in folders if _exists(one / names[0])), config.parent)
    own, elsewhere = config.with_name(named["base"]), config.parent / values["hdf5_file"]
    files = (own,) if _exists(own) else (own, elsewhere)
    if path == config:
        path = elsewhere if len(files) > 1 and has_inode(elsewhere, named["inode"]) else own
    return Config(path=config, text=text, file=path, inode=named["inode"], striping=Striping(unit, count),
                  subfiles=tuple(folder / name for name in names), files=files)  # fmt: skip


def files_of(path: Path) -> tuple[Path, ...]:
    """Return where the stub of a file may be, or the file that a merge has put there: by its path, or a configuration.

    Raises
    ------
    SubfilesError, FileSystemError
        The configuration cannot be used.
    """
    named = _NAME.fullmatch(path.name)
    if named is None:
        return (path,)
    found = find(path).files if _exists(path) else (path.with_name(named["base"]),)  # a merge has removed it
    return tuple(dict.fromkeys(one for one in found if _exists(one)))


def _exists(path: Path) -> bool:
    """Tell whether a path leads to something; what nobody may look at does not."""
    try:
        path.stat()
    except OSError:
        return False
    return True


def has_inode(path: Path, inode: str) -> bool:
    """Tell whether a file is there, and is the stub for which a configuration was made."""
    try:
        return str(path.stat().st_ino) == inode
    except OSError:
        return False


def _config_of(path: Path) -> Path:
    """Return the configuration of a stub: that of its inode, or the only one."""
    try:
        inode = path.stat().st_ino
    except OSError as error:
        raise FileSystemError(error.errno, f"cannot be read: {error.strerror or error}", str(path)) from error
    folders = [path.parent, *([Path(os.environ[_PREFIX])] if os.environ.get(_PREFIX) else [])]
    for folder in folders:
        if _exists(exact := folder / f"{path.name}.subfile_{inode}.config"):
            return exact
    begins = f"{path.name}.subfile_"
    found = [one for folder in folders if folder.is_dir() for one in sorted(folder.iterdir())
             if one.name.startswith(begins) and _NAME.fullmatch(one.name)]  # fmt: skip
    if len(found) != 1:
        what = f"has {len(found)} configurations" if found else "has no configuration"
        raise SubfilesError(f"{path}: {what} of HDF5's subfiling beside it ({begins}INODE.config); name one")
    return found[0]


def _lines(config: Path, text: bytes) -> tuple[dict[str, str], list[str]]:
    """Return the values by their keys, and the names of the subfiles."""
    values, names = {}, []
    for line in os.fsdecode(text).split("\n"):
        key, equals, value = line.partition("=")
        if "subfile_dir" in values:
            names += [line] if line else []
        elif equals:
            values[key] = value
    missing = {"stripe_size", "subfile_count", "hdf5_file", "subfile_dir"} - set(values)
    if missing:
        raise SubfilesError(f"{config}: is no configuration of HDF5's subfiling: without {', '.join(sorted(missing))}")
    if any("/" in name for name in names):
        raise SubfilesError(f"{config}: names a subfile with a folder")
    return values, names


def _number(config: Path, values: dict[str, str], key: str) -> int:
    if not re.fullmatch(r"[1-9][0-9]{0,18}", values[key]):
        raise SubfilesError(f"{config}: {key} is '{values[key]}'")
    return int(values[key])
