/*
 * mpiox_layout_probe_ceph.c - CephFS (kernel client and ceph-fuse): the virtual attributes ceph.file.layout and
 * ceph.dir.layout.
 *
 * A folder without a layout of its own has no attribute; it inherits the nearest one above
 * (docs.ceph.com, "Inheritance of layouts").
 */
#include "mpiox_layout_probe.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "mpiox_layout_ceph.h"

enum { VALUE_BYTES = 1024, MOST_LEVELS = 64 };

static bool read_layout(int fd, const char *attribute, mpiox_layout_facts *facts, mpiox_layout_ceph *out)
{
    char value[VALUE_BYTES], reason[VALUE_BYTES];
    ssize_t bytes = fgetxattr(fd, attribute, value, sizeof value);
    if (bytes > 0 && mpiox_layout_parse_ceph(value, bytes, out) == MPIOX_OK)
        return true;
    snprintf(reason, sizeof reason, "xattr %s not understood", attribute);
    if (bytes > 0)
        mpiox_facts_default_because(facts, reason);
    return false;
}

/* The folder's own layout or that of the next above it on this file system. */
static bool read_inherited(int fd, bool *own, mpiox_layout_facts *facts, mpiox_layout_ceph *out)
{
    struct stat first, here;
    int folder = openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    bool found = false;
    *own = true;
    if (folder < 0 || fstat(folder, &first) != 0) {
        if (folder >= 0)
            close(folder);
        return false;
    }
    for (int level = 0; level < MOST_LEVELS; level++) {
        found = read_layout(folder, "ceph.dir.layout", facts, out);
        if (found)
            break;
        *own = false;
        int above = openat(folder, "..", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        close(folder);
        folder = above;
        if (folder < 0 || fstat(folder, &here) != 0 || here.st_dev != first.st_dev)
            break;
    }
    if (folder >= 0)
        close(folder);
    return found;
}

void mpiox_layout_probe_ceph(int fd, const mpiox_layout_mount *mount, mpiox_layout_facts *facts)
{
    const char *source = "xattr ceph.file.layout";
    mpiox_layout_ceph layout;
    bool own = true;
    (void)mount;
    if (facts->is_folder ? !read_inherited(fd, &own, facts, &layout)
                         : !read_layout(fd, "ceph.file.layout", facts, &layout))
        return;
    if (facts->is_folder)
        source = own ? "xattr ceph.dir.layout" : "xattr ceph.dir.layout of a folder above";
    mpiox_facts_set_number(facts, MPIOX_FACT_STRIPE_SIZE, source, layout.stripe_unit);
    mpiox_facts_set_number(facts, MPIOX_FACT_STRIPE_COUNT, source, layout.stripe_count);
    mpiox_facts_set_number(facts, MPIOX_FACT_OBJECT_SIZE, source, layout.object_size);
    mpiox_facts_set(facts, MPIOX_FACT_PATTERN, source, "objects placed by hash");
    if (layout.pool[0] != '\0')
        mpiox_facts_set(facts, MPIOX_FACT_POOL, source, "%s%s%s", layout.pool, layout.space[0] != '\0' ? "/" : "",
                        layout.space);
}
