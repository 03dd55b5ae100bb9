/* mpiox_arbiter.c - announcing a job, and the thread that follows the map: mpiox_arbiter.h. */
#include "mpiox_arbiter.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "mpiox_peer.h"
#include "mpiox_print.h"
#include "mpiox_program.h"
#include "mpiox_wait.h"

#ifndef RENAME_NOREPLACE
#define RENAME_NOREPLACE 1 /* linux/fs.h; old C libraries do not declare it */
#endif

enum { LOOK_MS = 100, PATH_BYTES = 1024, JOB_BYTES = 1024, DRAFT_TRIES = 8 };
/* seconds of silence of the announcing process until another one announces the job */
static const double beat_s = 1, silence_s = 5;
static const double patience_s = 10; /* seconds without a map, until that is reported */

struct mpiox_arbiter {
    mpiox_arbiter_options options; /* its texts are ours */
    char folder[PATH_BYTES], job[MPIOX_MAP_NAME], program[MPIOX_MAP_NAME], host[64], boot[64];
    uint64_t processes; /* which numbers of processes are meant */
    uint64_t begun;     /* when this process began, clock ticks since the boot; 0 = not known */
    pid_t pid;
    pthread_t thread;
    int wake;   /* eventfd: the thread is to end */
    int notify; /* inotify, or -1 */
    int64_t generation;
    struct stat seen; /* the map at the last check */
    bool looked;      /* there was one */
    bool reported_missing, reported_bad, reported_old, reported_foreign, reported_distrusted;
    bool foreign; /* the file of the job's name is another user's, or no file */
    double started, beaten;
    bool announces;   /* this process has announced the job */
    bool unannounced; /* it could not announce which generation it follows */
    /* from the map's time to its detection by this process, by their clocks; -1 = not known */
    int64_t noticed_us;
    int64_t applied_us;         /* from the detection until page ranges were at their places in the map */
    struct timespec other_time; /* another process has announced the job: the time of its file, */
    double other_since;         /* and since when it is unchanged */
};

static void path_of(const mpiox_arbiter *arbiter, const char *format, char *path, size_t bytes)
{
    const int length = snprintf(path, bytes, "%s/", arbiter->folder);

    if (length >= 0 && (size_t)length < bytes)
        snprintf(path + length, bytes - (size_t)length, format, arbiter->job);
}

/* ---- the announcement -------------------------------------------------------------------------------------------- */

/* A new file beside the announcements, with an unpredictable name: no foreign file is written, whatever lies there.
 * -1: errno. */
static int make_draft(const mpiox_arbiter *arbiter, char *draft, size_t bytes)
{
    path_of(arbiter, "jobs/.%s", draft, bytes);
    const size_t used = strlen(draft);

    for (int tries = 0; tries < DRAFT_TRIES; tries++) {
        uint64_t name[2];

        if (getrandom(name, sizeof name, 0) != (ssize_t)sizeof name)
            return -1;
        snprintf(draft + used, bytes - used, ".%016llx%016llx", (unsigned long long)name[0],
                 (unsigned long long)name[1]);
        const int fd = open(draft, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
        if (fd >= 0 || errno != EEXIST)
            return fd;
    }
    return -1;
}

/* False: errno; nothing is left. */
static bool write_new(const mpiox_arbiter *arbiter, char *draft, size_t draft_bytes, const char *text, size_t bytes)
{
    const int fd = make_draft(arbiter, draft, draft_bytes);

    if (fd < 0) {
        draft[0] = '\0';
        return false;
    }
    bool written = fchmod(fd, 0644) == 0 && /* whatever the umask: the arbiter is another user */
                   write(fd, text, bytes) == (ssize_t)bytes;
    int why = errno;
    if (close(fd) != 0 && written) {
        written = false;
        why = errno;
    }
    if (!written)
        unlink(draft);
    errno = why;
    return written;
}

static bool write_draft(const mpiox_arbiter *arbiter, char *draft, size_t bytes)
{
    const char *scheduler = getenv("SLURM_JOB_ID");
    char text[JOB_BYTES];
    const int length = snprintf(
        text, sizeof text,
        "mpiox-job 1\njob %s\nhost %s\nboot %s\nprocesses %llu\npid %ld\nstarted %llu\nranks %d\nnodes %d\n"
        "delegates %d\nprogram %s\nscheduler_job %.64s\napplied %lld\n",
        arbiter->job, arbiter->host, arbiter->boot, (unsigned long long)arbiter->processes, (long)getpid(),
        (unsigned long long)arbiter->begun, (int)arbiter->options.ranks, (int)arbiter->options.nodes,
        (int)arbiter->options.delegates, arbiter->program, scheduler != NULL && scheduler[0] != '\0' ? scheduler : "-",
        (long long)arbiter->generation);

    if (length < 0 || (size_t)length >= sizeof text)
        return false;
    const int more = snprintf(text + length, sizeof text - (size_t)length, "noticed_us %lld\napplied_us %lld\n",
                              (long long)arbiter->noticed_us, (long long)arbiter->applied_us);
    if (more < 0 || (size_t)more >= sizeof text - (size_t)length)
        return false;
    return write_new(arbiter, draft, bytes, text, (size_t)(length + more));
}

/* Rename only if no such file exists, else EEXIST. Some file systems cannot do that, and some have no links. */
static bool put_first(const char *draft, const char *path)
{
    if (syscall(SYS_renameat2, AT_FDCWD, draft, AT_FDCWD, path, RENAME_NOREPLACE) == 0)
        return true;
    if (errno == EEXIST)
        return false;
    if (link(draft, path) == 0)
        return true;
    if (errno == EEXIST)
        return false;
    const int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);

    if (fd >= 0)
        close(fd);
    return fd >= 0 && rename(draft, path) == 0;
}

/* Announce the job. `new`: only if no process has (EEXIST). */
static bool announce(mpiox_arbiter *arbiter, bool new)
{
    char path[PATH_BYTES], draft[PATH_BYTES] = "";

    path_of(arbiter, "jobs/%s", path, sizeof path);
    const bool done = write_draft(arbiter, draft, sizeof draft) &&
                      (new ? put_first(draft, path) : rename(draft, path) == 0);
    const int why = errno;
    if (draft[0] != '\0' && (new || !done))
        unlink(draft);
    errno = why;
    if (done)
        arbiter->announces = true;
    return done;
}

/* No process of the job has made this file of the job's name: it is not the job's announcement, and the map's line of
 * that name does not apply to the job. */
static bool is_foreign(const struct stat *status)
{
    return !S_ISREG(status->st_mode) || status->st_uid != geteuid();
}

/* Check the announcement of the job. False: there is none (errno), or it is foreign, which is reported once. */
static bool see_announcement(mpiox_arbiter *arbiter, const char *path, struct stat *status)
{
    const bool there = lstat(path, status) == 0;
    const int why = errno;

    arbiter->foreign = there && is_foreign(status);
    if (arbiter->foreign && !arbiter->reported_foreign) {
        arbiter->reported_foreign = true;
        mpiox_print(
            "mpiio_ext: %s is not this job's announcement, but %s of user %ld: the job does not follow the arbiter, "
            "and its I/O delegates stay as they are; let the file's owner or root remove it\n",
            path, S_ISREG(status->st_mode) ? "a file" : "no plain file, and", (long)status->st_uid);
    }
    errno = there ? 0 : why;
    return there && !arbiter->foreign;
}

/* Another process has announced the job. Does it still? */
static void listen_to_other(mpiox_arbiter *arbiter, const char *path)
{
    struct stat status;

    if (!see_announcement(arbiter, path, &status)) {
        if (errno == ENOENT)
            (void)announce(arbiter, true);
        return;
    }
    if (status.st_mtim.tv_sec != arbiter->other_time.tv_sec || status.st_mtim.tv_nsec != arbiter->other_time.tv_nsec) {
        arbiter->other_time = status.st_mtim;
        arbiter->other_since = mpiox_now();
    } else if (mpiox_now() - arbiter->other_since > silence_s) {
        (void)announce(arbiter, false);
    }
}

/* This process has announced the job. If another user gave the file a second name, it would announce other jobs: a new
 * file has only one. */
static void speak(mpiox_arbiter *arbiter, const char *path)
{
    struct stat status;

    if (!see_announcement(arbiter, path, &status)) {
        if (errno == ENOENT)
            (void)announce(arbiter, true);
    } else if (arbiter->unannounced || status.st_nlink > 1) {
        arbiter->unannounced = !announce(arbiter, false);
    } else {
        (void)utimensat(AT_FDCWD, path, NULL, AT_SYMLINK_NOFOLLOW);
    }
}

/* The job lives. A process that the others thought dead announces the job again, and an announcement that found the
 * disk full is repeated. */
void mpiox_arbiter_beat(mpiox_arbiter *arbiter)
{
    char path[PATH_BYTES];

    if (arbiter == NULL || mpiox_now() - arbiter->beaten < beat_s)
        return;
    arbiter->beaten = mpiox_now();
    path_of(arbiter, "jobs/%s", path, sizeof path);
    if (arbiter->announces)
        speak(arbiter, path);
    else
        listen_to_other(arbiter, path);
}

/* ---- the map ----------------------------------------------------------------------------------------------------- */

static void report(const mpiox_arbiter *arbiter, bool *reported, const char *what)
{
    if (*reported || !arbiter->announces)
        return;
    *reported = true;
    mpiox_print("mpiio_ext: %s/map: %s; the I/O delegates stay as they are\n", arbiter->folder, what);
}

/* Only a map of root, of this user, or of the folder's owner, the arbiter's user, is accepted. */
static const char *distrust(const mpiox_arbiter *arbiter, const struct stat *status)
{
    struct stat folder;

    if (!S_ISREG(status->st_mode))
        return "it is no plain file";
    if (status->st_nlink > 1)
        return "it has a second name, a link elsewhere";
    if (status->st_size > MPIOX_MAP_BYTES)
        return "it is larger than 4 MiB";
    if (status->st_uid == 0 || status->st_uid == geteuid())
        return NULL;
    if (stat(arbiter->folder, &folder) == 0 && folder.st_uid == status->st_uid)
        return NULL;
    return "its owner is not the folder's";
}

/* The whole file; NULL: not to be had now, or (*reason) not to be believed. */
static char *load(const mpiox_arbiter *arbiter, const char *path, size_t *bytes, const char **reason)
{
    const int fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    struct stat status;
    char *text = NULL;
    ssize_t got = -1;

    *reason = fd < 0 && errno == ELOOP ? "it is no plain file" : NULL;
    if (fd >= 0 && fstat(fd, &status) == 0 && (*reason = distrust(arbiter, &status)) == NULL &&
        (text = malloc((size_t)status.st_size + 1)) != NULL)
        got = read(fd, text, (size_t)status.st_size);
    if (fd >= 0)
        close(fd);
    *bytes = got > 0 ? (size_t)got : 0;
    if (got >= 0)
        return text;
    free(text);
    return NULL;
}

/* How long ago the map was written; -1: the clocks do not agree. */
static int64_t age_us(const struct stat *status)
{
    struct timespec now;

    clock_gettime(CLOCK_REALTIME, &now);
    const int64_t us = 1000000 * (int64_t)(now.tv_sec - status->st_mtim.tv_sec) +
                       (now.tv_nsec - status->st_mtim.tv_nsec) / 1000;
    return us >= 0 ? us : -1;
}

static void follow(mpiox_arbiter *arbiter, const mpiox_map *map)
{
    if (map->generation < arbiter->generation) {
        report(arbiter, &arbiter->reported_old, "it is older than the one in force");
        return;
    }
    if (map->generation == arbiter->generation || !map->named)
        return;
    const double begun = mpiox_now();

    arbiter->noticed_us = age_us(&arbiter->seen);
    arbiter->options.apply(arbiter->options.context, map);
    arbiter->applied_us = (int64_t)(1e6 * (mpiox_now() - begun));
    arbiter->generation = map->generation;
    if (arbiter->announces)
        arbiter->unannounced = !announce(arbiter, false);
}

static void look(mpiox_arbiter *arbiter)
{
    char path[PATH_BYTES], what[128];
    const char *reason;
    struct stat now;
    mpiox_map map;
    size_t bytes;

    path_of(arbiter, "map", path, sizeof path);
    if (arbiter->foreign) /* the map names another's job */
        return;
    if (lstat(path, &now) != 0) {
        if (arbiter->looked || mpiox_now() - arbiter->started > patience_s)
            report(arbiter, &arbiter->reported_missing, "there is none");
        return;
    }
    if (arbiter->looked && now.st_ino == arbiter->seen.st_ino && now.st_size == arbiter->seen.st_size &&
        now.st_ctim.tv_sec == arbiter->seen.st_ctim.tv_sec && now.st_ctim.tv_nsec == arbiter->seen.st_ctim.tv_nsec)
        return;
    char *text = load(arbiter, path, &bytes, &reason);
    if (text == NULL && reason == NULL)
        return; /* replaced meanwhile, or out of reach: repeat at the next check */
    arbiter->seen = now;
    arbiter->looked = true;
    if (text == NULL) {
        snprintf(what, sizeof what, "rejected (%s)", reason);
        report(arbiter, &arbiter->reported_distrusted, what);
    } else if (mpiox_map_parse(text, bytes, arbiter->job, &map, &reason) == MPIOX_OK) {
        follow(arbiter, &map);
    } else {
        snprintf(what, sizeof what, "no map (%s)", reason);
        report(arbiter, &arbiter->reported_bad, what);
    }
    free(text);
}

/* ---- the thread -------------------------------------------------------------------------------------------------- */

/* True: to end. */
static bool wait_for_news(mpiox_arbiter *arbiter)
{
    struct pollfd of[2] = {{.fd = arbiter->wake, .events = POLLIN}, {.fd = arbiter->notify, .events = POLLIN}};
    char events[4096] __attribute__((aligned(8)));

    (void)poll(of, arbiter->notify >= 0 ? 2 : 1, LOOK_MS);
    while (arbiter->notify >= 0 && read(arbiter->notify, events, sizeof events) > 0) {
    }
    return (of[0].revents & POLLIN) != 0;
}

static void *run(void *argument)
{
    mpiox_arbiter *arbiter = argument;

    do {
        look(arbiter);
        mpiox_arbiter_beat(arbiter);
    } while (!wait_for_news(arbiter));
    return NULL;
}

static bool start_thread(mpiox_arbiter *arbiter)
{
    sigset_t all, before;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    const bool started = pthread_create(&arbiter->thread, NULL, run, arbiter) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return started;
}

/* ---- start and end ----------------------------------------------------------------------------------------------- */

static bool is_name(const char *job)
{
    static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";

    return job[0] != '\0' && job[0] != '.' && strlen(job) < MPIOX_MAP_NAME && strspn(job, allowed) == strlen(job);
}

static void release(mpiox_arbiter *arbiter)
{
    if (arbiter->notify >= 0)
        close(arbiter->notify);
    if (arbiter->wake >= 0)
        close(arbiter->wake);
    free(arbiter);
}

/* Processes of the same number are the same one only within one boot of one system, and one space of such numbers:
 * hosts may have one name, and containers of a host have numbers of their own. */
static void identify(mpiox_arbiter *arbiter)
{
    const int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
    struct stat space;
    ssize_t got = -1;

    gethostname(arbiter->host, sizeof arbiter->host - 1);
    if (fd >= 0) {
        got = read(fd, arbiter->boot, sizeof arbiter->boot - 1);
        close(fd);
    }
    arbiter->boot[got > 0 ? strcspn(arbiter->boot, "\n") : 0] = '\0';
    if (arbiter->boot[0] == '\0')
        snprintf(arbiter->boot, sizeof arbiter->boot, "-");
    if (stat("/proc/self/ns/pid", &space) == 0)
        arbiter->processes = (uint64_t)space.st_ino;
    arbiter->begun = (uint64_t)mpiox_peer_began(getpid());
    arbiter->pid = getpid();
}

static mpiox_arbiter *make(const mpiox_arbiter_options *options)
{
    mpiox_arbiter *arbiter = calloc(1, sizeof *arbiter);

    if (arbiter == NULL)
        return NULL;
    arbiter->options = *options;
    snprintf(arbiter->folder, sizeof arbiter->folder, "%s", options->folder);
    snprintf(arbiter->job, sizeof arbiter->job, "%s", options->job);
    if (options->program != NULL && options->program[0] != '\0')
        snprintf(arbiter->program, sizeof arbiter->program, "%s", options->program);
    else
        mpiox_program_own(arbiter->program, sizeof arbiter->program);
    identify(arbiter);
    arbiter->noticed_us = arbiter->applied_us = -1;
    arbiter->started = mpiox_now();
    arbiter->wake = eventfd(0, EFD_CLOEXEC);
    arbiter->notify = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
    if (arbiter->notify >= 0 && inotify_add_watch(arbiter->notify, options->folder, IN_MOVED_TO | IN_CLOSE_WRITE) < 0) {
        close(arbiter->notify);
        arbiter->notify = -1;
    }
    return arbiter;
}

int mpiox_arbiter_start(const mpiox_arbiter_options *options, mpiox_arbiter **out, mpiox_error *error)
{
    *out = NULL;
    if (!is_name(options->job) || strlen(options->folder) + MPIOX_MAP_NAME + 128 > PATH_BYTES)
        return mpiox_error_set(error, MPIOX_E_ARG, 0, -1, -1, "the arbiter's folder");
    mpiox_arbiter *arbiter = make(options);

    if (arbiter == NULL)
        return mpiox_error_set(error, MPIOX_E_NOMEM, 0, -1, -1, "following the arbiter");
    const bool first = announce(arbiter, true);
    const int why = errno;

    if (!first && why == EEXIST) {
        char path[PATH_BYTES];
        struct stat status;

        path_of(arbiter, "jobs/%s", path, sizeof path);
        (void)see_announcement(arbiter, path, &status);
    } else if (!first) {
        release(arbiter);
        return mpiox_error_set(error, MPIOX_E_IO, why, -1, -1, "announcing the job to the arbiter");
    }
    if (arbiter->wake < 0 || !start_thread(arbiter)) {
        release(arbiter);
        return mpiox_error_set(error, MPIOX_E_NOMEM, 0, -1, -1, "following the arbiter");
    }
    *out = arbiter;
    return MPIOX_OK;
}

void mpiox_arbiter_stop(mpiox_arbiter *arbiter)
{
    const uint64_t one = 1;
    char path[PATH_BYTES];

    if (arbiter == NULL || arbiter->pid != getpid()) /* a child has no such thread; the rest is its parent's */
        return;
    while (write(arbiter->wake, &one, sizeof one) < 0 && errno == EINTR) {
    }
    pthread_join(arbiter->thread, NULL);
    path_of(arbiter, "jobs/%s", path, sizeof path);
    if (arbiter->announces && !arbiter->foreign)
        unlink(path);
    release(arbiter);
}
