/* mpiox_process_serve.c - see mpiox_process_serve.h. */
#include "mpiox_process_serve.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "mpiox_cache_hidden.h"
#include "mpiox_cache_kept.h"
#include "mpiox_process_notify.h"

enum { RANGE_BYTES = 128 }; /* of a range in a line, and of how many more there are */
enum { TEXT_BYTES = 2400 }; /* room for a path and MPIOX_CACHE_ERRORS ranges */

/* The kernel takes away the cores that the process must not use. */
static void use_any_core(void)
{
    cpu_set_t cores;

    memset(&cores, 0xff, sizeof cores);
    sched_setaffinity(0, sizeof cores, &cores); /* fails where it is forbidden: then it stays where it is */
}

/* The names are for `mpiio-ext delegates status`. */
static void sign(const mpiox_server *server, const mpiox_process_orders *orders, mpiox_announcement *out)
{
    mpiox_cache_header *header = mpiox_server_cache(server)->header;

    out->page_bytes = header->geometry.page_bytes; /* less than ordered where not even one fits */
    out->cap_bytes = header->geometry.cap_bytes;
    snprintf(header->service, sizeof header->service, "%s", orders->service);
    snprintf(header->mode, sizeof header->mode, "%s", orders->mode);
}

static int take_connections(const mpiox_process_orders *orders, mpiox_process_instance *instance,
                            mpiox_announcement *out)
{
    uint64_t secret[2] = {orders->secret[0], orders->secret[1]};

    if ((secret[0] | secret[1]) == 0 && mpiox_handshake_secret(secret) != MPIOX_OK)
        return mpiox_error_set(&out->error, MPIOX_E_IO, errno, -1, -1, "getrandom, for the secret of a delegate,");
    return mpiox_remote_start(mpiox_server_cache(instance->server), &orders->place, secret, &instance->remote,
                              &out->link, &out->error);
}

/* Clients may keep copies here of what delegates of other nodes have. */
static void know_peers(const mpiox_process_orders *orders, mpiox_process_instance *instance)
{
    instance->peers = mpiox_process_peers_new(orders->server.delegates);
    mpiox_server_set_peers(instance->server, &(mpiox_server_peers){.context = instance->peers,
                                                                   .name = mpiox_process_peers_name,
                                                                   .gone_s = mpiox_process_peers_gone_s});
}

int mpiox_process_begin(const mpiox_process_orders *orders, mpiox_process_instance *instance, mpiox_announcement *out)
{
    static const mpiox_server_reports reports = {mpiox_process_report_clash, mpiox_process_report_removal};

    *instance = (mpiox_process_instance){.server = NULL};
    memset(out, 0, sizeof *out);
    out->index = orders->server.delegate;
    out->node = orders->node;
    out->pid = getpid();
    gethostname(out->host, sizeof out->host - 1);
    use_any_core();
    out->code = mpiox_server_create(&orders->server, &instance->server, &out->segment, &out->error);
    if (out->code != MPIOX_OK)
        return out->code;
    sign(instance->server, orders, out);
    mpiox_server_set_reports(instance->server, &reports);
    snprintf(instance->cache_dirs, sizeof instance->cache_dirs, "%s", orders->server.cache_dirs);
    if (orders->listens) {
        know_peers(orders, instance);
        out->code = take_connections(orders, instance, out);
        out->listens = out->code == MPIOX_OK;
    }
    if (out->code != MPIOX_OK)
        mpiox_process_end(instance);
    return out->code;
}

static void report_left(void *cache, const mpiox_cache_left *left)
{
    if (left->whole)
        mpiox_process_notify("%s %s", left->file, left->why);
    else
        mpiox_process_notify("%s %s; its bytes are in %s: mpiio-ext delegates recover%s", left->file, left->why,
                             (char *)cache, left->changed ? " --force writes them all the same" : "");
}

/* A thread. What earlier jobs have left on this node's disks; the memory that clients of other nodes will write to. */
static void *prepare(void *context)
{
    mpiox_process_instance *instance = context;
    const mpiox_cache *cache = mpiox_server_cache(instance->server);

    if (cache->header->kept[0] != '\0')
        mpiox_cache_recover_all(instance->cache_dirs, cache->header->kept, report_left);
    mpiox_server_adopted(instance->server);
    if (instance->peers != NULL)
        mpiox_process_touch(cache, NULL);
    return NULL;
}

/* With all signals blocked: they are the program's. SIGBUS is a page of a cache that cannot be read any more. */
static bool start_preparing(mpiox_process_instance *instance, pthread_t *thread)
{
    sigset_t all, before;

    sigfillset(&all);
    sigdelset(&all, SIGBUS);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    const bool started = pthread_create(thread, NULL, prepare, instance) == 0;

    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return started;
}

static bool is_of_the_same(const mpiox_server_lost *a, const mpiox_server_lost *b)
{
    return strcmp(a->path, b->path) == 0 && a->error.sys_errno == b->error.sys_errno &&
           strcmp(a->error.what, b->error.what) == 0 && b->error.offset >= 0 && b->error.length >= 0;
}

/* One line for all ranges of a file. Returns how many of `count` are in it. */
static int report_lost(const mpiox_server_lost *lost, int count)
{
    char text[TEXT_BYTES], room[MPIOX_CACHE_PATH_BYTES];
    int named = 1, more = lost->more;

    mpiox_error_text(&lost->error, mpiox_cache_shown_name(lost->path, room, sizeof room), text, TEXT_BYTES);
    for (; named < count && is_of_the_same(lost, &lost[named]); named++) {
        const size_t used = strlen(text);

        if (used > sizeof text - RANGE_BYTES) /* the next line continues */
            break;

        more += lost[named].more;
        (void)snprintf(text + used, sizeof text - used, "%s at offset %" PRId64 ", length %" PRId64,
                       named == 1 ? "; also" : ",", lost[named].error.offset, lost[named].error.length);
    }
    const size_t used = strlen(text);

    if (more > 0)
        (void)snprintf(text + used, sizeof text - used, "; %d more ranges", more);
    mpiox_process_notify("an I/O delegate could not write bytes of a program: %s", text);
    return named;
}

int mpiox_process_serve(mpiox_process_instance *instance)
{
    const mpiox_server_lost *lost;
    int count, rest;
    const mpiox_cache_header *header = mpiox_server_cache(instance->server)->header;
    const char *kept = header->kept;
    pthread_t preparing;
    const bool prepares = (kept[0] != '\0' || header->early) && start_preparing(instance, &preparing);

    if (!prepares)
        mpiox_server_adopted(instance->server);
    const int code = mpiox_server_run(instance->server, &lost, &count, &rest);

    if (prepares)
        pthread_join(preparing, NULL);

    for (int i = 0; i < count;)
        i += report_lost(lost + i, count - i);
    if (rest > 0)
        mpiox_process_notify("an I/O delegate could not write %d more ranges of bytes", rest);
    if (count > 0 && kept[0] != '\0')
        mpiox_process_notify("files that were closed before are in %s: mpiio-ext delegates recover", kept);
    return code;
}

void mpiox_process_seal(mpiox_process_instance *instance, const mpiox_announcement *announced)
{
    if (strncmp(announced->segment.name, "/proc/", 6) != 0)
        mpiox_server_seal(instance->server);
}

void mpiox_process_stop(mpiox_process_instance *instance)
{
    mpiox_server_stop(instance->server);
}

void mpiox_process_end(mpiox_process_instance *instance)
{
    mpiox_remote_stop(instance->remote);
    mpiox_server_free(instance->server);
    mpiox_process_peers_free(instance->peers);
    *instance = (mpiox_process_instance){.server = NULL};
}
