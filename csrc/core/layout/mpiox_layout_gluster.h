/*
 * mpiox_layout_gluster.h - the place of a file on GlusterFS and the structure of its volume, from two texts that every
 * client can read: the virtual attribute glusterfs.pathinfo and the volume file under .meta. Pure but for
 * mpiox_layout_gluster_brick_of(); fuzzed.
 */
#ifndef MPIOX_LAYOUT_GLUSTER_H
#define MPIOX_LAYOUT_GLUSTER_H

#include <stdbool.h>
#include <stdint.h>

#include "mpiox_error.h"

/* Called for each brick with a part or a copy of the file: host and folder, C strings. */
typedef void mpiox_layout_brick(const char *host, const char *brick, void *context);

typedef struct mpiox_layout_pathinfo {
    int32_t bricks;      /* >= 1 */
    int64_t stripe_size; /* bytes, of the old striped volumes; 0: none */
    char kind[16];       /* innermost that spreads the file: "EC", "REPLICATE", "STRIPE", "DISTRIBUTE"; "": one brick */
} mpiox_layout_pathinfo;

/* "(<DISTRIBUTE:vol-dht> (<REPLICATE:vol-replicate-0> <POSIX(/brick):host:/brick/file> <POSIX...>))". visit may be
 * NULL. MPIOX_E_CORRUPT: the text names no brick. */
int mpiox_layout_parse_pathinfo(const void *text, int64_t text_bytes, mpiox_layout_brick *visit, void *context,
                                mpiox_layout_pathinfo *out);

enum { MPIOX_LAYOUT_BRICK_BYTES = 768 };

/* HOST:FOLDER of the (first) brick that has an open file. False: not known. Local, blocking: the function queries a
 * server (mpiox_layout_probe_gluster.c). */
bool mpiox_layout_gluster_brick_of(int fd, char brick[MPIOX_LAYOUT_BRICK_BYTES]);

typedef struct mpiox_layout_volume { /* a client's volume file */
    int32_t bricks;                  /* protocol/client, or storage/posix where bricks are local */
    int32_t subvolumes;  /* of cluster/distribute: each file (or shard) is on one of them; 1: no such layer */
    int64_t shard_size;  /* bytes, 0: files are whole */
    int32_t disperse;    /* bricks of a disperse set, 0: none */
    int32_t redundancy;  /* bricks of a disperse set that may be lost */
    int32_t replicas;    /* bricks of a replicate set, 0: none */
    int32_t stripes;     /* bricks of a stripe set (releases before 6), 0: none */
    int64_t stripe_size; /* its block size */
} mpiox_layout_volume;

/* MPIOX_E_CORRUPT: the text names no brick. */
int mpiox_layout_parse_volume(const void *text, int64_t text_bytes, mpiox_layout_volume *out);
/* Bytes of a size as GlusterFS writes it: "4MB", "64KB", "131072"; -1 for other texts, such as "1.5GB". */
int64_t mpiox_layout_parse_gluster_size(const char *text, int64_t text_bytes);

#endif
