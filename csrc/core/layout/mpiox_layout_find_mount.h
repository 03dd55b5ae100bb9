/*
 * mpiox_layout_find_mount.h - the mount that a descriptor's file lies on, as /proc/self describes it.
 */
#ifndef MPIOX_LAYOUT_FIND_MOUNT_H
#define MPIOX_LAYOUT_FIND_MOUNT_H

#include <stdbool.h>

#include "mpiox_layout_mounts.h"

/* The mount of an open descriptor; all texts are empty if the mount is not known. Reads two files of /proc. */
void mpiox_layout_find_mount(int fd, mpiox_layout_mount *out);
/* Is it MooseFS? Its client of release 3 names no subtype, only the source "mfs#HOST:PORT", and LizardFS has inherited
 * that name. Pure. */
bool mpiox_layout_is_moose(const mpiox_layout_mount *mount);

#endif
