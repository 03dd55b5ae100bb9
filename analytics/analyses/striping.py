"""Striping: which files have a layout of their own, and how many OSTs a job reaches.

Problem. Most files of a Lustre file system have the site's default layout, so that a large shared file may sit on one
OST. Darshan records the layout of a file, but not the default layout.

Algorithm. A file counts as customised when its stripe size or count differs from the site's default, or when its layout
has several components. Where the default is the layout of nearly all files, those with other ones are read alone
(:mod:`mpiio_ext.analytics.store.layouts`). OSTs are united as bitmaps inside the engine, in one scan.

The paper also compares the offset with -1. Darshan's counter of that name is not the requested offset: real logs have 0
for files on all OSTs. So the offset is compared only where a default names one
(:class:`mpiio_ext.analytics.setup.StripeDefault`).

Guarantees. Files without Lustre records count as neither. An offset that the log does not have (record version 2)
counts as the default's.

Source: IOMiner, Section III-C (customised striping), III-F (OSTs of a job).
"""

from __future__ import annotations

from mpiio_ext.analytics.query import Tuples
from mpiio_ext.analytics.site import StripeDefault

_LAYOUT = ("job_id", "log_id", "file_id", "stripe_size", "stripe_count", "stripe_offset", "components")


def customised(default: StripeDefault | None = None) -> str:
    """Return the condition that a file's layout is not the default, as :meth:`Tuples.filter` takes it."""
    site = default or StripeDefault()
    differs = [f"stripe_size != {site.stripe_size}", "components > 1"]
    if site.stripe_count != -1:  # of "all OSTs" a log has the number
        differs.append(f"stripe_count != {site.stripe_count}")
    if site.stripe_offset is not None:
        differs.append(f"stripe_offset != {site.stripe_offset}")
    return " or ".join(differs)


def custom_stripes(files: Tuples, default: StripeDefault | None = None) -> Tuples:
    """Return the files with a customised layout: job, log and file with the layout.

    Parameters
    ----------
    files : of ``darshan_file``.
    """
    return files.project(*_LAYOUT).filter(customised(default))


def ost_union(files: Tuples) -> Tuples:
    """Return the number of different OSTs of each job, over all its files: ``job_id``, ``osts``; NULL if unknown."""
    return files.group("job_id", osts="ost_count()")
