/*
 * mpiox_layout_probe_gluster.c - GlusterFS: the bricks of a file and how its volume is made.
 *
 * Both are readable without rights. The virtual attribute glusterfs.pathinfo names the bricks (of a file with shards,
 * those of its first; release 10 answers ENOMEM for disperse volumes). The graph that the client uses is in
 * .meta/graphs/active/volfile at the mount point. The attributes that bricks keep (trusted.*) are for the superuser and
 * do not pass the client.
 */
#include "mpiox_layout_probe.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "mpiox_layout_gluster.h"

#define PATHINFO "glusterfs.pathinfo"
#define VOLFILE ".meta/graphs/active/volfile"
#define TEXT_BYTES 65536
#define VOLFILE_BYTES (1 << 22) /* a volume of thousands of bricks */
#define EC_FRAGMENT 512         /* a brick's bytes of each block of a disperse set (ec-method.h) */

static void add_brick(const char *host, const char *brick, void *context)
{
    mpiox_facts_add_target(context, "%s:%s", host, brick);
}

static void ask_pathinfo(int fd, char *text, mpiox_layout_facts *facts)
{
    mpiox_layout_pathinfo info;
    const mpiox_layout_component whole = {.end = INT64_MAX};
    ssize_t bytes = facts->is_folder ? -1 : fgetxattr(fd, PATHINFO, text, TEXT_BYTES);
    if (bytes <= 0 || mpiox_layout_parse_pathinfo(text, bytes, NULL, NULL, &info) != MPIOX_OK ||
        mpiox_facts_add_component(facts, &whole) == NULL)
        return;
    mpiox_layout_parse_pathinfo(text, bytes, add_brick, facts, &info);
    mpiox_layout_component *part = &facts->components[facts->n_components - 1];
    snprintf(part->pattern, sizeof part->pattern, "%s", info.kind);
    part->stripe_size = info.stripe_size;
    part->servers = mpiox_facts_distinct(facts, part);
    mpiox_facts_set_number(facts, MPIOX_FACT_SERVERS, "xattr " PATHINFO, part->servers);
    if (info.stripe_size > 0) {
        mpiox_facts_set_number(facts, MPIOX_FACT_STRIPE_SIZE, "xattr " PATHINFO, info.stripe_size);
        mpiox_facts_set_number(facts, MPIOX_FACT_STRIPE_COUNT, "xattr " PATHINFO, info.bricks);
    }
}

static void copy_brick(const char *host, const char *brick, void *context)
{
    char *out = context;
    if (out[0] == '\0') /* the first of a replicate or disperse set stands for it */
        snprintf(out, MPIOX_LAYOUT_BRICK_BYTES, "%s:%s", host, brick);
}

bool mpiox_layout_gluster_brick_of(int fd, char brick[MPIOX_LAYOUT_BRICK_BYTES])
{
    char text[4096];
    mpiox_layout_pathinfo info;
    const ssize_t bytes = fgetxattr(fd, PATHINFO, text, sizeof text);
    brick[0] = '\0';
    return bytes > 0 && mpiox_layout_parse_pathinfo(text, bytes, copy_brick, brick, &info) == MPIOX_OK;
}

static void add_volume(const mpiox_layout_volume *v, mpiox_layout_facts *facts)
{
    static const char source[] = "volume file " VOLFILE;
    int32_t data = v->disperse - v->redundancy;
    char spread[32] = "";
    if (v->subvolumes > 1)
        snprintf(spread, sizeof spread, "distribute %d,", v->subvolumes);
    if (v->subvolumes > 1 && v->shard_size == 0)
        mpiox_facts_set_number(facts, MPIOX_FACT_TARGETS, source, v->subvolumes);
    if (v->disperse > 0) {
        mpiox_facts_set(facts, MPIOX_FACT_REDUNDANCY, source, "disperse %d+%d", data, v->redundancy);
        mpiox_facts_set_number(facts, MPIOX_FACT_STRIPE_SIZE, source, (int64_t)EC_FRAGMENT * data);
        mpiox_facts_set_number(facts, MPIOX_FACT_STRIPE_COUNT, source, 1);
    } else if (v->replicas > 0) {
        mpiox_facts_set(facts, MPIOX_FACT_REDUNDANCY, source, "replicate %d", v->replicas);
    }
    mpiox_facts_set(facts, MPIOX_FACT_PATTERN, source, "%s%s%s", spread, v->shard_size > 0 ? "shard," : "",
                    v->disperse > 0   ? "disperse"
                    : v->replicas > 0 ? "replicate"
                    : v->stripes > 0  ? "stripe"
                                      : "whole");
    if (v->stripes > 0) {
        mpiox_facts_set_number(facts, MPIOX_FACT_STRIPE_SIZE, source, v->stripe_size);
        mpiox_facts_set_number(facts, MPIOX_FACT_STRIPE_COUNT, source, v->stripes);
    }
    if (v->shard_size > 0) { /* shards lie anywhere: all bricks of the volume can have a part of the file */
        mpiox_facts_set_number(facts, MPIOX_FACT_STRIPE_SIZE, source, v->shard_size);
        mpiox_facts_set_number(facts, MPIOX_FACT_OBJECT_SIZE, source, v->shard_size);
        mpiox_facts_set_number(facts, MPIOX_FACT_STRIPE_COUNT, source, v->subvolumes);
        mpiox_facts_set_number(facts, MPIOX_FACT_SERVERS, source, v->bricks);
    }
}

static void ask_volfile(const mpiox_layout_mount *mount, mpiox_layout_facts *facts)
{
    char path[sizeof mount->point + sizeof VOLFILE + 1];
    mpiox_layout_volume volume;
    int64_t used = 0;
    snprintf(path, sizeof path, "%s/%s", mount->point, VOLFILE);
    char *text = mount->point[0] != '\0' ? malloc(VOLFILE_BYTES) : NULL;
    int fd = text != NULL ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    while (fd >= 0 && used < VOLFILE_BYTES) {
        ssize_t bytes = read(fd, text + used, (size_t)(VOLFILE_BYTES - used));
        if (bytes <= 0)
            break;
        used += bytes;
    }
    if (fd >= 0)
        close(fd);
    if (used > 0 && mpiox_layout_parse_volume(text, used, &volume) == MPIOX_OK)
        add_volume(&volume, facts);
    free(text);
}

void mpiox_layout_probe_gluster(int fd, const mpiox_layout_mount *mount, mpiox_layout_facts *facts)
{
    char *text = malloc(TEXT_BYTES);
    if (text != NULL)
        ask_pathinfo(fd, text, facts);
    free(text);
    ask_volfile(mount, facts);
}
