/*
 * mpiox_segment.h - anonymous memory shared by the processes of one node.
 *
 * The creator makes a memfd; the others open it through /proc/<pid>/fd/<fd>. The segment has no name in any file
 * system, so that nothing is left behind when processes are killed, and it is not bound by the size of /dev/shm.
 * Pages appear when they are first touched. Where /proc does not allow that, an unlinked file in /dev/shm or TMPDIR
 * takes its place.
 */
#ifndef MPIOX_SEGMENT_H
#define MPIOX_SEGMENT_H

#include <stdint.h>

#include "mpiox_error.h"

typedef struct mpiox_segment {
    void *base;
    int64_t bytes;
    int fd; /* the creator's descriptor until mpiox_segment_seal(), else -1 */
} mpiox_segment;

enum { MPIOX_SEGMENT_NAME = 256 };

typedef enum mpiox_segment_kind { MPIOX_SEGMENT_MEMFD, MPIOX_SEGMENT_FILE, MPIOX_SEGMENT_KINDS } mpiox_segment_kind;

/* Creator: zero-filled memory of `bytes` bytes; `name` receives what the others need to attach. */
int mpiox_segment_create(mpiox_segment_kind kind, int64_t bytes, char name[MPIOX_SEGMENT_NAME], mpiox_segment *out, mpiox_error *error);
int mpiox_segment_attach(const char *name, int64_t bytes, mpiox_segment *out, mpiox_error *error);
/* Creator, after everyone has attached: drops the descriptor and any file name. */
void mpiox_segment_seal(mpiox_segment *segment, const char *name);
void mpiox_segment_free(mpiox_segment *segment); /* NULL-safe; unmaps */

#endif
