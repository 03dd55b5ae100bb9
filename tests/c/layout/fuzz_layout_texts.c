/*
 * fuzz_layout_texts.c - libFuzzer harness of what reads texts: CephFS, GlusterFS, /proc.
 *
 *   clang -fsanitize=fuzzer,address,undefined -D_GNU_SOURCE -Icsrc/core/common -Icsrc/core/layout \
 *       tests/c/layout/fuzz_layout_texts.c csrc/core/layout/mpiox_layout_{ceph,gluster,mounts,span}.c -o fuzz
 *   ./fuzz CORPUS
 *
 * Every parser gets every input, in a block of exactly its size. What is accepted must be usable; what is refused must
 * leave the output alone.
 */
#include <stdlib.h>
#include <string.h>

#include "mpiox_layout_ceph.h"
#include "mpiox_layout_gluster.h"
#include "mpiox_layout_mounts.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(int truth)
{
    if (!truth)
        abort();
}

static int is_text(const char *text, size_t capacity)
{
    return memchr(text, '\0', capacity) != NULL;
}

static void count_brick(const char *host, const char *brick, void *context)
{
    require(strlen(host) < 256 && strlen(brick) < 512);
    ++*(int32_t *)context;
}

static void try_ceph(const void *copy, int64_t size)
{
    mpiox_layout_ceph ceph = {.stripe_unit = -7};
    if (mpiox_layout_parse_ceph(copy, size, &ceph) != MPIOX_OK) {
        require(ceph.stripe_unit == -7);
        return;
    }
    require(ceph.stripe_unit > 0 && ceph.stripe_count > 0 && ceph.stripe_count <= INT32_MAX);
    require(ceph.object_size >= ceph.stripe_unit && ceph.object_size % ceph.stripe_unit == 0);
    require(is_text(ceph.pool, sizeof ceph.pool) && is_text(ceph.space, sizeof ceph.space));
}

static void try_gluster(const void *copy, int64_t size)
{
    mpiox_layout_pathinfo info = {.bricks = -7};
    mpiox_layout_volume volume = {.bricks = -7};
    int32_t bricks = 0;
    if (mpiox_layout_parse_pathinfo(copy, size, count_brick, &bricks, &info) == MPIOX_OK)
        require(info.bricks == bricks && bricks > 0 && info.stripe_size >= 0 && is_text(info.kind, sizeof info.kind));
    else
        require(info.bricks == -7 && bricks == 0);
    if (mpiox_layout_parse_volume(copy, size, &volume) == MPIOX_OK)
        require(volume.bricks > 0 && volume.subvolumes > 0 && volume.shard_size >= 0 && volume.redundancy >= 0 &&
                (volume.disperse == 0 || volume.redundancy < volume.disperse));
    else
        require(volume.bricks == -7);
    require(mpiox_layout_parse_gluster_size(copy, size) >= -1);
}

static void try_mounts(const void *copy, int64_t size)
{
    mpiox_layout_mount mount = {.type = ""};
    mpiox_layout_nfs nfs = {.layouts_got = -7};
    require(mpiox_layout_parse_fdinfo(copy, size) >= -1);
    if (mpiox_layout_parse_mountinfo(copy, size, 27, &mount) == MPIOX_OK)
        require(mount.type[0] != '\0' && mount.point[0] != '\0' && is_text(mount.options, sizeof mount.options));
    if (mpiox_layout_parse_mountstats(copy, size, "/mnt", &nfs) == MPIOX_OK)
        require(nfs.layouts_got >= -1 && nfs.devices_got >= -1 && nfs.read_bytes >= 0 && nfs.write_bytes >= 0 &&
                is_text(nfs.pnfs, sizeof nfs.pnfs));
    else
        require(nfs.layouts_got == -7);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    void *copy = malloc(size > 0 ? size : 1);
    if (copy == NULL)
        return 0;
    if (size > 0)
        memcpy(copy, data, size);
    try_ceph(copy, (int64_t)size);
    try_gluster(copy, (int64_t)size);
    try_mounts(copy, (int64_t)size);
    free(copy);
    return 0;
}
