/*
 * mpiox_layout_probe_daos.c - DAOS through dfuse: pool and container, class and chunk size of a file's object.
 *
 * What dfuse answers are its ioctls (dfuse_ioctl.h, version 7), for the user who runs dfuse, and the attribute
 * user.daos at the root of a container ("DAOS.POSIX://pool/container"):
 *   DFUSE_IOCTL_IL            pool, container and the object's id. In the id's upper half are the class' kind of
 *                             redundancy (8 bits) and its number of groups (16 bits; all ones: all of the pool)
 *                             (daos_obj.h, daos_obj_class.h, since release 2.0).
 *   DFUSE_IOCTL_REPLY_DOOH    the object as other processes may import it (struct dfs_obj_glob), with the chunk size.
 *                             A first call returns its size, which distinguishes its two forms; the id at its place in
 *                             it is checked, because no header specifies the form.
 * Each chunk of a file is on the group that a hash of its number chooses.
 */
#include "mpiox_layout_probe.h"

#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/xattr.h>

enum { VERSION = 7, UUID_BYTES = 16, UUID_TEXT = 37, VALUE_BYTES = 512, ALL_GROUPS = 0xFFFF };
enum { GLOBAL_BYTES = 344, GLOBAL_TAIL_BYTES = 360 }; /* of an object; with a second object for a file's tail */
enum { GLOBAL_ID_AT = 16, GLOBAL_CHUNK_AT = 48, GLOBAL_TAIL_CHUNK_AT = 64 };

typedef struct dfuse_reply {
    int version;
    uint64_t object[2]; /* low, high */
    unsigned char pool[UUID_BYTES], container[UUID_BYTES];
    uint64_t flags;
} dfuse_reply;

typedef struct dfuse_size {
    int version;
    size_t bytes;
} dfuse_size;

#define GET_OBJECT _IOR(0xA3, 0xC1, dfuse_reply)
#define GET_GLOBAL_SIZE _IOR(0xA3, 0xC8, dfuse_size)
#define GET_GLOBAL(bytes) _IOC(_IOC_READ, 0xA3, 0xC6, bytes)

/* Kinds of redundancy that a class may have: copies, or blocks of data and of parity (enum daos_obj_redun). */
static const struct {
    unsigned char kind, copies, data, parity;
} redundancies[] = {
    {1, 1, 0, 0},  {8, 2, 0, 0},  {9, 3, 0, 0},  {10, 4, 0, 0}, {11, 5, 0, 0}, {12, 6, 0, 0},  {32, 0, 2, 1},
    {33, 0, 2, 2}, {34, 0, 4, 1}, {35, 0, 4, 2}, {36, 0, 8, 1}, {37, 0, 8, 2}, {38, 0, 16, 1}, {39, 0, 16, 2},
};

static const char *uuid_text(const unsigned char *uuid, char *text)
{
    static const char digits[] = "0123456789abcdef";
    char *at = text;
    for (int i = 0; i < UUID_BYTES; i++) {
        if (i == 4 || i == 6 || i == 8 || i == 10)
            *at++ = '-';
        *at++ = digits[uuid[i] >> 4];
        *at++ = digits[uuid[i] & 15];
    }
    *at = '\0';
    return text;
}

/* The class of the object, by its name in DAOS: S4, RP_2G1, EC_4P2GX. */
static void add_class(uint64_t high, mpiox_layout_facts *facts)
{
    static const char source[] = "object id (ioctl DFUSE_IOCTL_IL)";
    const unsigned kind = (unsigned)(high >> 48 & 0xFF), groups = (unsigned)(high >> 32 & 0xFFFF);
    char number[8], name[24];
    snprintf(number, sizeof number, "%u", groups);
    if (groups == ALL_GROUPS)
        strcpy(number, "X");
    for (size_t i = 0; groups > 0 && i < sizeof redundancies / sizeof redundancies[0]; i++) {
        const unsigned copies = redundancies[i].copies, data = redundancies[i].data, parity = redundancies[i].parity;
        if (redundancies[i].kind != kind)
            continue;
        if (data > 0)
            snprintf(name, sizeof name, "EC_%uP%uG%s", data, parity, number);
        else if (copies > 1)
            snprintf(name, sizeof name, "RP_%uG%s", copies, number);
        else
            snprintf(name, sizeof name, "S%s", number);
        mpiox_facts_set(facts, MPIOX_FACT_PATTERN, source, "%s, chunks placed by hash", name);
        mpiox_facts_set_number(facts, MPIOX_FACT_STRIPE_COUNT, source, groups == ALL_GROUPS ? -1 : (int64_t)groups);
        if (data > 0)
            mpiox_facts_set(facts, MPIOX_FACT_REDUNDANCY, source, "erasure code %u+%u", data, parity);
        else if (copies > 1)
            mpiox_facts_set(facts, MPIOX_FACT_REDUNDANCY, source, "replicate %u", copies);
        return;
    }
}

static void add_chunk(int fd, const dfuse_reply *object, mpiox_layout_facts *facts)
{
    unsigned char global[GLOBAL_TAIL_BYTES];
    dfuse_size size = {.version = 0};
    int64_t chunk;
    if (ioctl(fd, GET_GLOBAL_SIZE, &size) != 0 || size.version != VERSION ||
        (size.bytes != GLOBAL_BYTES && size.bytes != GLOBAL_TAIL_BYTES) ||
        ioctl(fd, GET_GLOBAL(size.bytes), global) != 0 ||
        memcmp(global + GLOBAL_ID_AT, object->object, sizeof object->object) != 0)
        return;
    memcpy(&chunk, global + (size.bytes == GLOBAL_BYTES ? GLOBAL_CHUNK_AT : GLOBAL_TAIL_CHUNK_AT), sizeof chunk);
    if (chunk > 0 && chunk <= INT64_C(1) << 40)
        mpiox_facts_set_number(facts, MPIOX_FACT_STRIPE_SIZE, "ioctl DFUSE_IOCTL_REPLY_DOOH (chunk size)", chunk);
}

void mpiox_layout_probe_daos(int fd, const mpiox_layout_mount *mount, mpiox_layout_facts *facts)
{
    dfuse_reply reply = {.version = 0};
    char pool[UUID_TEXT], container[UUID_TEXT], value[VALUE_BYTES];
    (void)mount;
    ssize_t bytes = fgetxattr(fd, "user.daos", value, sizeof value - 1);
    if (bytes > 0) {
        value[bytes] = '\0';
        mpiox_facts_set(facts, MPIOX_FACT_POOL, "xattr user.daos", "%s", value);
    }
    if (ioctl(fd, GET_OBJECT, &reply) != 0 || reply.version != VERSION)
        return;
    mpiox_facts_set(facts, MPIOX_FACT_POOL, "ioctl DFUSE_IOCTL_IL", "%s/%s", uuid_text(reply.pool, pool),
                    uuid_text(reply.container, container));
    if (facts->is_folder) /* its own object keeps names; those of new files have classes of their own */
        return;
    add_class(reply.object[1], facts);
    add_chunk(fd, &reply, facts);
}
