/*
 * mpiox_layout_inspect.c - all known facts of a file's layout, with their sources.
 *
 * Algorithm. From weak sources to strong ones, each replacing facts of earlier ones. statfs(2) gives the family, its
 *            lock protocol and coherence; the mount table the kind of a FUSE file system; stat(2) a preferred size.
 *            Then the file system itself is queried (mpiox_layout_probe.h). Hints come last, and override.
 * Guarantee. A fact is present only if a source has it; defaults are called "default".
 */
#include "mpiox_layout_inspect.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

#include "mpiox_layout.h"
#include "mpiox_layout_find_mount.h"
#include "mpiox_layout_probe.h"

typedef struct kind_row {
    const char *type; /* of the mount; the whole of it */
    const char *name;
    mpiox_layout_probe *probe; /* NULL: nothing to ask */
} kind_row;

/* Types of mounts, as the file systems' documentation and mount helpers name them. Those that are missing have the name
 * of their family, or of their FUSE subtype. */
static const kind_row kinds[] = {
    {"lustre", "lustre", mpiox_layout_probe_lustre},
    {"gpfs", "gpfs", mpiox_layout_probe_gpfs},
    {"beegfs", "beegfs", mpiox_layout_probe_beegfs},
    {"fuse.beegfs", "beegfs", NULL},
    {"ceph", "ceph", mpiox_layout_probe_ceph},
    {"fuse.ceph-fuse", "ceph", mpiox_layout_probe_ceph},
    {"fuse.ceph", "ceph", mpiox_layout_probe_ceph},
    {"fuse.glusterfs", "glusterfs", mpiox_layout_probe_gluster},
    {"fuse.daos", "daos", mpiox_layout_probe_daos},
    {"fuse.mfs", "moosefs", mpiox_layout_probe_moose},
    {"fuse.lizardfs", "lizardfs", mpiox_layout_probe_moose},
    {"fuse.saunafs", "saunafs", mpiox_layout_probe_moose},
    {"nfs", "nfs", mpiox_layout_probe_nfs},
    {"nfs4", "nfs", mpiox_layout_probe_nfs},
    {"xfs", "xfs", mpiox_layout_probe_xfs},
    {"ext4", "ext4", mpiox_layout_probe_ext},
};

/* Families by statfs(2), for what the mount table does not name. */
static const kind_row families[] = {
    [MPIOX_FS_LUSTRE] = {NULL, "lustre", mpiox_layout_probe_lustre},
    [MPIOX_FS_GPFS] = {NULL, "gpfs", mpiox_layout_probe_gpfs},
    [MPIOX_FS_BEEGFS] = {NULL, "beegfs", mpiox_layout_probe_beegfs},
    [MPIOX_FS_CEPH] = {NULL, "ceph", mpiox_layout_probe_ceph},
    [MPIOX_FS_NFS] = {NULL, "nfs", mpiox_layout_probe_nfs},
    [MPIOX_FS_XFS] = {NULL, "xfs", mpiox_layout_probe_xfs},
};

#define FAMILIES ((int)(sizeof families / sizeof families[0]))

static void add_mount(const mpiox_layout_mount *mount, mpiox_layout_facts *facts)
{
    static const char source[] = "/proc/self/mountinfo";
    if (mount->type[0] == '\0')
        return;
    mpiox_facts_set(facts, MPIOX_FACT_MOUNT_TYPE, source, "%s", mount->type);
    mpiox_facts_set(facts, MPIOX_FACT_MOUNT_POINT, source, "%s", mount->point);
    if (mount->source[0] != '\0')
        mpiox_facts_set(facts, MPIOX_FACT_MOUNT_SOURCE, source, "%s", mount->source);
}

/* Facts that depend on the family alone; the table is the library's (mpiox_layout_detect.c). */
static void add_family(const mpiox_layout *layout, mpiox_layout_facts *facts)
{
    static const char source[] = "statfs f_type";
    mpiox_facts_set(facts, MPIOX_FACT_FILE_SYSTEM, source, "%s", mpiox_layout_fs_name(layout->fs));
    mpiox_facts_set(facts, MPIOX_FACT_LOCK_PROTOCOL, source, "%s", mpiox_layout_lock_name(layout->lock));
    mpiox_facts_set(facts, MPIOX_FACT_COHERENT, source, "%s", layout->coherent ? "true" : "false");
}

static mpiox_layout_probe *find_probe(mpiox_fs family, const mpiox_layout_mount *mount, mpiox_layout_facts *facts)
{
    const char *type = mpiox_layout_is_moose(mount) ? "fuse.mfs" : mount->type;
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        if (strcmp(kinds[i].type, type) != 0)
            continue;
        mpiox_facts_set(facts, MPIOX_FACT_FILE_SYSTEM, "/proc/self/mountinfo", "%s", kinds[i].name);
        /* The kernel's facts of the descriptor are stronger than a name in a table. */
        if ((int)family >= FAMILIES || families[family].probe == NULL)
            return kinds[i].probe;
    }
    if ((int)family < FAMILIES && families[family].name != NULL) {
        mpiox_facts_set(facts, MPIOX_FACT_FILE_SYSTEM, "statfs f_type", "%s", families[family].name);
        return families[family].probe;
    }
    if (mount->type[0] != '\0' && (family == MPIOX_FS_UNKNOWN || family == MPIOX_FS_FUSE)) {
        const char *subtype = strncmp(mount->type, "fuse.", 5) == 0 ? mount->type + 5 : mount->type;
        mpiox_facts_set(facts, MPIOX_FACT_FILE_SYSTEM, "/proc/self/mountinfo", "%s", subtype);
    }
    return NULL;
}

/* The size that files are cut at without a known stripe size. */
static void add_default(const mpiox_layout *layout, const struct stat *status, mpiox_layout_facts *facts)
{
    if (status->st_blksize > layout->stripe_size)
        mpiox_facts_set_number(facts, MPIOX_FACT_STRIPE_SIZE, "default (stat st_blksize)", status->st_blksize);
    else
        mpiox_facts_set_number(facts, MPIOX_FACT_STRIPE_SIZE, "default", layout->stripe_size);
}

static void add_wish(const mpiox_layout_wish *wish, mpiox_layout_facts *facts)
{
    if (wish->striping_unit > 0 && wish->striping_unit <= MPIOX_LAYOUT_MAX_STRIPE_SIZE)
        mpiox_facts_set_number(facts, MPIOX_FACT_STRIPE_SIZE, "hint striping_unit", wish->striping_unit);
    if (wish->striping_factor > 0) {
        mpiox_facts_set_number(facts, MPIOX_FACT_STRIPE_COUNT, "hint striping_factor", wish->striping_factor);
        mpiox_facts_set_number(facts, MPIOX_FACT_SERVERS, "hint striping_factor", wish->striping_factor);
    }
    if (wish->start_device >= 0)
        mpiox_facts_set_number(facts, MPIOX_FACT_START_DEVICE, "hint start_iodevice", wish->start_device);
}

int mpiox_layout_inspect(int fd, const mpiox_layout_wish *wish, mpiox_layout_facts **out)
{
    mpiox_layout layout;
    mpiox_layout_mount mount;
    struct stat status;
    *out = NULL;
    if (fstat(fd, &status) != 0)
        return MPIOX_E_IO;
    mpiox_layout_facts *facts = mpiox_layout_facts_create();
    if (facts == NULL)
        return MPIOX_E_NOMEM;
    facts->is_folder = S_ISDIR(status.st_mode);
    mpiox_layout_detect_family(fd, &layout);
    mpiox_layout_find_mount(fd, &mount);
    add_family(&layout, facts);
    add_mount(&mount, facts);
    if (status.st_blksize > 0)
        mpiox_facts_set_number(facts, MPIOX_FACT_BLOCK_SIZE, "stat st_blksize", status.st_blksize);
    add_default(&layout, &status, facts);
    mpiox_layout_probe *probe = find_probe(layout.fs, &mount, facts);
    if (probe != NULL)
        probe(fd, &mount, facts);
    if (wish != NULL)
        add_wish(wish, facts);
    if (facts->incomplete) {
        mpiox_layout_facts_free(facts);
        return MPIOX_E_NOMEM;
    }
    *out = facts;
    return MPIOX_OK;
}

int mpiox_layout_inspect_path(const char *path, const mpiox_layout_wish *wish, mpiox_layout_facts **out)
{
    struct stat status;
    *out = NULL;
    if (stat(path, &status) != 0)
        return MPIOX_E_IO;
    if (!S_ISREG(status.st_mode) && !S_ISDIR(status.st_mode)) { /* opening a device or a pipe has effects */
        errno = EINVAL;
        return MPIOX_E_IO;
    }
    int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY);
    const bool is_closed = fd < 0 && (errno == EACCES || errno == EPERM);
    if (is_closed) /* facts of the file system without the file's data */
        fd = open(path, O_PATH | O_CLOEXEC);
    if (fd < 0)
        return MPIOX_E_IO;
    int rc = mpiox_layout_inspect(fd, wish, out);
    int saved_errno = errno;
    if (is_closed && rc == MPIOX_OK)
        mpiox_facts_default_because(*out,
                                    (*out)->is_folder ? "the folder may not be read" : "the file may not be read");
    close(fd);
    errno = saved_errno;
    return rc;
}
