/*
 * mpiox_layout_probe.h - querying one kind of file system for facts of a file: one source file for each kind.
 *
 * A probe adds facts with their source to a description and does not touch facts that it cannot query. It never fails.
 * Blocking system calls on a descriptor that is open for reading or writing (of a folder: reading); errno changes.
 * Optional vendor libraries are opened at run time (mpiox_layout_library.c), none is needed to build.
 */
#ifndef MPIOX_LAYOUT_PROBE_H
#define MPIOX_LAYOUT_PROBE_H

#include "mpiox_layout_facts.h"
#include "mpiox_layout_mounts.h"

typedef void mpiox_layout_probe(int fd, const mpiox_layout_mount *mount, mpiox_layout_facts *facts);

mpiox_layout_probe mpiox_layout_probe_lustre, mpiox_layout_probe_gpfs, mpiox_layout_probe_beegfs,
    mpiox_layout_probe_ceph, mpiox_layout_probe_gluster, mpiox_layout_probe_daos, mpiox_layout_probe_moose,
    mpiox_layout_probe_nfs, mpiox_layout_probe_xfs, mpiox_layout_probe_ext;

#endif
