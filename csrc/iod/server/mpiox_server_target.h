/*
 * mpiox_server_target.h - the I/O server of a page, for a scheduler that chooses by servers (twins). Private to
 * csrc/iod/server.
 */
#ifndef MPIOX_SERVER_TARGET_H
#define MPIOX_SERVER_TARGET_H

#include "mpiox_storage.h"

typedef struct mpiox_server_targets { /* of an open file */
    int64_t stripe_bytes;
    int32_t count;  /* 0: not known */
    int32_t *index; /* [count] of the OST of each stripe, in turn */
} mpiox_server_targets;

/* Query the file system about a file that was just opened, if the scheduler needs it. Blocking. Without memory the
 * target is unknown. Free with mpiox_server_targets_free(). */
void mpiox_server_targets_find(const char *scheduler, const mpiox_storage *storage, mpiox_server_targets *out);
void mpiox_server_targets_free(mpiox_server_targets *targets);
/* The server of a byte of the file: the OST index, or, where that is not known, the number of the byte's unit of
 * unit_bytes modulo the file's servers; -1: these are not known either (0). */
int32_t mpiox_server_target_of(const mpiox_server_targets *targets, int64_t offset, int64_t unit_bytes,
                               int32_t servers);

#endif
