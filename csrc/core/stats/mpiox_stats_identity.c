/*
 * mpiox_stats_identity.c - the ID of a run, and other fields that identify the run of a line of statistics.
 */
#include "mpiox_stats_identity.h"
#include "mpiox_scheduler.h"
#include "mpiox_wait.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char run_id[MPIOX_STATS_RUN_BYTES];
static bool adopted, agreed;
static int64_t loaded_ns;

double mpiox_stats_now(void)
{
    return 1e-9 * (double)mpiox_wall_ns();
}

__attribute__((constructor)) static void note_start(void)
{
    loaded_ns = mpiox_wall_ns();
}

/* Under the lock. */
static void make_run_id(void)
{
    uint64_t bits[2] = {mpiox_unique(), mpiox_unique()};

    bits[0] = (bits[0] & ~UINT64_C(0xf000)) | UINT64_C(0x4000);     /* version 4: random */
    bits[1] = (bits[1] & ~(UINT64_C(3) << 62)) | UINT64_C(1) << 63; /* variant of RFC 4122 */
    snprintf(run_id, sizeof run_id, "%08x-%04x-%04x-%04x-%04x%08x", (unsigned)(bits[0] >> 32),
             (unsigned)(bits[0] >> 16 & 0xffff), (unsigned)(bits[0] & 0xffff), (unsigned)(bits[1] >> 48),
             (unsigned)(bits[1] >> 32 & 0xffff), (unsigned)(bits[1] & 0xffffffff));
}

void mpiox_stats_identity_adopt(const char *run, bool by_all)
{
    pthread_mutex_lock(&lock);
    if (run[0] != '\0' && !agreed && (by_all || !adopted))
        snprintf(run_id, sizeof run_id, "%s", run);
    adopted = true;
    agreed |= by_all;
    pthread_mutex_unlock(&lock);
}

static void read_command(char *text, size_t capacity)
{
    int fd = open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC);
    ssize_t bytes = fd >= 0 ? read(fd, text, capacity - 1) : 0;

    if (fd >= 0)
        close(fd);
    bytes = bytes > 0 ? bytes : 0;
    while (bytes > 0 && text[bytes - 1] == '\0')
        bytes--;
    for (ssize_t i = 0; i < bytes; i++)
        text[i] = text[i] == '\0' ? ' ' : text[i];
    text[bytes] = '\0';
}

void mpiox_stats_identity_get(mpiox_stats_identity *out)
{
    pthread_mutex_lock(&lock);
    if (run_id[0] == '\0')
        make_run_id();
    memcpy(out->run, run_id, sizeof out->run);
    pthread_mutex_unlock(&lock);
    out->scheduler_job = mpiox_scheduler_job();
    out->program = program_invocation_short_name;
    read_command(out->command, sizeof out->command);
    out->uid = (int64_t)getuid();
    out->start = 1e-9 * (double)loaded_ns;
}
