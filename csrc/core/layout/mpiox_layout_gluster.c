/*
 * mpiox_layout_gluster.c - reading glusterfs.pathinfo and a client's volume file.
 *
 * pathinfo:    one <KIND:name> for each layer that spreads or copies the file, one <POSIX(brick):host:path> for each
 *              brick; an old striped volume writes its block size behind its name: <STRIPE:vol-stripe-0:[131072]>.
 * volume file: "volume NAME", "type KIND/NAME", "option KEY VALUE", "subvolumes A B ...", "end-volume". The graph that
 *              is in use is /.meta/graphs/active/volfile below the mount point, readable for all users.
 * Of a disperse set every block of 512 bytes times the data bricks goes over all of them. With shards a file is cut
 * into pieces, each a file of its own that the distribution places; pathinfo has only the first.
 */
#include "mpiox_layout_gluster.h"

#include <string.h>

#include "mpiox_layout_span.h"

/* "(brick):host:path", what stands behind POSIX; old releases leave the brick out. */
static void parse_brick(mpiox_span token, mpiox_layout_brick *visit, void *context)
{
    char host[256], brick[512];
    mpiox_span folder = {token.at, 0};
    if (mpiox_span_skip(&token, "("))
        folder = mpiox_span_cut(&token, ')');
    mpiox_span_skip(&token, ":");
    mpiox_span_copy(mpiox_span_cut(&token, ':'), false, host, (int64_t)sizeof host);
    mpiox_span_copy(folder.bytes > 0 ? folder : token, false, brick, (int64_t)sizeof brick);
    if (visit != NULL)
        visit(host, brick, context);
}

static void parse_layer(mpiox_span token, mpiox_layout_pathinfo *out)
{
    mpiox_span kind = mpiox_span_cut(&token, ':');
    mpiox_span_copy(kind, false, out->kind, (int64_t)sizeof out->kind);
    int64_t size = mpiox_span_find(token, ":[");
    if (!mpiox_span_is(kind, "STRIPE") || size < 0)
        return;
    mpiox_span number = {token.at + size + 2, token.bytes - size - 2};
    mpiox_span_number(mpiox_span_cut(&number, ']'), &out->stripe_size);
}

int mpiox_layout_parse_pathinfo(const void *text, int64_t text_bytes, mpiox_layout_brick *visit, void *context,
                                mpiox_layout_pathinfo *out)
{
    mpiox_span rest = mpiox_span_of(text, text_bytes);
    mpiox_layout_pathinfo found = {.bricks = 0};
    while (rest.bytes > 0) {
        mpiox_span_cut(&rest, '<');
        if (memchr(rest.at, '>', (size_t)rest.bytes) == NULL)
            break;
        mpiox_span token = mpiox_span_cut(&rest, '>');
        if (mpiox_span_skip(&token, "POSIX")) {
            found.bricks++;
            parse_brick(token, visit, context);
        } else {
            parse_layer(token, &found);
        }
    }
    if (found.bricks == 0)
        return MPIOX_E_CORRUPT;
    *out = found;
    return MPIOX_OK;
}

int64_t mpiox_layout_parse_gluster_size(const char *text, int64_t text_bytes)
{
    static const struct {
        const char *name;
        int shift;
    } units[] = {{"", 0}, {"B", 0}, {"KB", 10}, {"K", 10}, {"MB", 20}, {"M", 20}, {"GB", 30}, {"G", 30}, {"TB", 40}};
    mpiox_span span = mpiox_span_trim(mpiox_span_of(text, text_bytes));
    int64_t digits = 0, value;
    while (digits < span.bytes && span.at[digits] >= '0' && span.at[digits] <= '9')
        digits++;
    mpiox_span unit = {span.at + digits, span.bytes - digits};
    if (!mpiox_span_number((mpiox_span){span.at, digits}, &value))
        return -1;
    for (size_t i = 0; i < sizeof units / sizeof units[0]; i++) {
        if (mpiox_span_is(unit, units[i].name))
            return value > INT64_MAX >> units[i].shift ? -1 : value << units[i].shift;
    }
    return -1;
}

typedef struct layer { /* of a volume file, while it is read */
    mpiox_span type;
    int32_t subvolumes;
    int64_t shard_size, block_size, redundancy;
} layer;

static int32_t at_least_one(int32_t count)
{
    return count > 0 ? count : 1;
}

static void add_layer(const layer *l, mpiox_layout_volume *out)
{
    if (mpiox_span_is(l->type, "protocol/client") || mpiox_span_is(l->type, "storage/posix"))
        out->bricks++;
    else if (mpiox_span_is(l->type, "cluster/distribute"))
        out->subvolumes = at_least_one(l->subvolumes);
    else if (mpiox_span_is(l->type, "features/shard"))
        out->shard_size = l->shard_size;
    else if (mpiox_span_is(l->type, "cluster/replicate"))
        out->replicas = l->subvolumes;
    else if (mpiox_span_is(l->type, "cluster/stripe")) {
        out->stripes = l->subvolumes;
        out->stripe_size = l->block_size;
    } else if (mpiox_span_is(l->type, "cluster/disperse") && l->redundancy >= 0 && l->redundancy < l->subvolumes) {
        out->disperse = l->subvolumes;
        out->redundancy = (int32_t)l->redundancy;
    }
}

static void parse_option(mpiox_span line, layer *l)
{
    mpiox_span key = mpiox_span_word(&line), value = mpiox_span_trim(line);
    int64_t size = mpiox_layout_parse_gluster_size(value.at, value.bytes);
    if (mpiox_span_is(key, "shard-block-size") && size > 0)
        l->shard_size = size;
    else if (mpiox_span_is(key, "block-size") && size > 0)
        l->block_size = size;
    else if (mpiox_span_is(key, "redundancy"))
        mpiox_span_number(value, &l->redundancy);
}

/* Sizes that a volume file leaves out: GlusterFS' own (volume set help: 64MB, 128KB). */
#define DEFAULT_SHARD (INT64_C(64) << 20)
#define DEFAULT_BLOCK (INT64_C(128) << 10)

int mpiox_layout_parse_volume(const void *text, int64_t text_bytes, mpiox_layout_volume *out)
{
    mpiox_span rest = mpiox_span_of(text, text_bytes);
    mpiox_layout_volume found = {.subvolumes = 1};
    layer l = {.type = {NULL, 0}};
    while (rest.bytes > 0) {
        mpiox_span line = mpiox_span_cut(&rest, '\n');
        mpiox_span word = mpiox_span_word(&line);
        if (mpiox_span_is(word, "volume"))
            l = (layer){.shard_size = DEFAULT_SHARD, .block_size = DEFAULT_BLOCK, .redundancy = -1};
        else if (mpiox_span_is(word, "type"))
            l.type = mpiox_span_word(&line);
        else if (mpiox_span_is(word, "option"))
            parse_option(line, &l);
        else if (mpiox_span_is(word, "subvolumes"))
            for (l.subvolumes = 0; mpiox_span_word(&line).bytes > 0;)
                l.subvolumes++;
        else if (mpiox_span_is(word, "end-volume"))
            add_layer(&l, &found);
    }
    if (found.bricks == 0)
        return MPIOX_E_CORRUPT;
    *out = found;
    return MPIOX_OK;
}
