"""Striping: which files have a layout of their own, and how many OSTs a job reaches.

Problem. Most files of a Lustre file system have the site's default layout, so that a large shared file may sit on one
OST. Darshan records what a file has and not what the default was.

Algorithm. A file counts as customised when its stripe size, count or offset differs from the site's default, or when
its layout has several components. Both questions are one scan of a few columns; OSTs are united as bitmaps inside the
engine.

Guarantees. Files without Lustre records count as neither. An offset that the log does not have (record version 2)
counts as the default's.

Source: IOMiner, Section III-C (customised striping), III-F (OSTs of a job).
"""

from __future__ import annotations

import dataclasses

from mpiio_ext.analytics.query import Tuples

__all__ = ["SiteDefault", "custom_stripes", "ost_union"]


@dataclasses.dataclass(frozen=True)
class SiteDefault:
    """The layout that a file gets by itself: Lustre's own defaults, unless the site has others.

    Attributes
    ----------
    size : int
        Stripe size in bytes.
    count : int
        Stripes; -1 is all OSTs.
    offset : int
        First OST; -1 lets Lustre choose.
    """

    size: int = 1 << 20
    count: int = 1
    offset: int = -1


def custom_stripes(files: Tuples, default: SiteDefault | None = None) -> Tuples:
    """Return the files with a customised layout: job, log and file with the layout.

    Parameters
    ----------
    files : Tuples
        Of ``darshan_file``.
    default : SiteDefault, optional
    """
    site = default or SiteDefault()
    return files.filter(
        f"stripe_size != {site.size} or stripe_count != {site.count}"
        f" or stripe_offset != {site.offset} or components > 1"
    ).project("job_id", "log_id", "file_id", "stripe_size", "stripe_count", "stripe_offset", "components")


def ost_union(files: Tuples) -> Tuples:
    """Return the number of different OSTs of each job, over all its files: ``job_id``, ``osts``; NULL where unknown."""
    return files.group("job_id", osts="ost_count()")
