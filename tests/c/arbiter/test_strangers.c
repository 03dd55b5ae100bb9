/*
 * test_strangers.c - a job's side of the arbiter in a folder where another user has put things. Runs as root.
 *
 *   test_strangers FOLDER VICTIM      VICTIM: a file that must stay as it is
 */
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "check.h"
#include "mpiox_arbiter.h"
#include "mpiox_wait.h"

enum { STRANGER = 65534 };
static const double limit_s = 30;
static const char *folder;
static _Atomic int64_t applied;

static void apply(void *context, const mpiox_map *map)
{
    (void)context;
    atomic_store(&applied, map->generation);
}

static mpiox_arbiter *begin(void)
{
    const mpiox_arbiter_options options = {
        .folder = folder, .job = "job.1", .program = "app", .ranks = 4, .nodes = 2, .delegates = 2, .apply = apply};
    mpiox_arbiter *arbiter = NULL;
    mpiox_error error;

    atomic_store(&applied, 0);
    CHECK_EQUAL(mpiox_arbiter_start(&options, &arbiter, &error), MPIOX_OK);
    return arbiter;
}

static char *path_of(const char *name)
{
    static char path[2][600];
    static int turn;
    char *text = path[turn++ % 2];
    snprintf(text, sizeof path[0], "%s/%s", folder, name);
    return text;
}

static void put_map(int generation, uid_t owner)
{
    char text[200];
    int bytes = snprintf(text, sizeof text, "mpiox-map 1\ngeneration %d\njob job.1 0,1\n", generation);
    bytes += snprintf(text + bytes, sizeof text - (size_t)bytes, "end 1 %016llx\n",
                      (unsigned long long)mpiox_map_checksum(text, (size_t)bytes));
    FILE *file = fopen(path_of(".new"), "w");
    CHECK(file != NULL && fwrite(text, 1, (size_t)bytes, file) == (size_t)bytes && fclose(file) == 0);
    CHECK_EQUAL(chown(path_of(".new"), owner, owner), 0);
    CHECK_EQUAL(rename(path_of(".new"), path_of("map")), 0);
}

static bool follows(int64_t generation)
{
    const double until = mpiox_now() + limit_s;
    while (mpiox_now() < until && atomic_load(&applied) != generation)
        usleep(10 * 1000);
    return atomic_load(&applied) == generation;
}

/* Nothing happens for several looks. */
static bool stays(int64_t generation)
{
    usleep(600 * 1000);
    return atomic_load(&applied) == generation;
}

static nlink_t names_of(const char *name)
{
    struct stat status;
    return lstat(path_of(name), &status) == 0 ? status.st_nlink : 0;
}

static int mode_of(const char *name)
{
    struct stat status;
    return lstat(path_of(name), &status) == 0 ? (int)status.st_mode & 0777 : -1;
}

/* Where drafts used to be: a link to somebody's file, of a name that follows from host and process. */
static void drafts(const char *victim)
{
    char host[64] = "", name[300];
    gethostname(host, sizeof host - 1);
    snprintf(name, sizeof name, "jobs/.job.1.%s.%ld", host, (long)getpid());
    CHECK_EQUAL(symlink(victim, path_of(name)), 0);
    const mode_t usual = umask(077); /* a user's who lets nobody read his files */
    mpiox_arbiter *arbiter = begin();
    umask(usual);
    CHECK_EQUAL(mode_of("jobs/job.1"), 0644);
    CHECK_EQUAL(names_of("jobs/job.1"), 1);
    CHECK_EQUAL(link(path_of("jobs/job.1"), path_of("second")), 0);
    const double until = mpiox_now() + limit_s;
    while (mpiox_now() < until && names_of("jobs/job.1") != 1) /* another file, without the second name */
        usleep(10 * 1000);
    CHECK_EQUAL(names_of("jobs/job.1"), 1);
    CHECK_EQUAL(unlink(path_of("second")), 0);
    mpiox_arbiter_stop(arbiter);
    CHECK_EQUAL(names_of("jobs/job.1"), 0);
}

/* Maps that are another user's, a pipe, a link or of two names change nothing; the next good one is followed. */
static void maps(void)
{
    mpiox_arbiter *arbiter = begin();
    put_map(1, 0);
    CHECK(follows(1));
    put_map(2, STRANGER);
    CHECK(stays(1));
    CHECK_EQUAL(unlink(path_of("map")), 0);
    CHECK_EQUAL(mkfifo(path_of("map"), 0666), 0);
    CHECK(stays(1));
    put_map(3, 0);
    CHECK(follows(3));
    put_map(4, 0);
    CHECK(follows(4));
    put_map(5, STRANGER);
    CHECK(stays(4));
    CHECK_EQUAL(chown(path_of("map"), 0, 0), 0);
    CHECK(follows(5));
    CHECK_EQUAL(rename(path_of("map"), path_of("elsewhere")), 0);
    CHECK_EQUAL(symlink("elsewhere", path_of("map")), 0);
    CHECK(stays(5));
    put_map(6, 0);
    CHECK(follows(6));
    CHECK_EQUAL(chown(folder, STRANGER, STRANGER), 0);
    put_map(7, STRANGER); /* the arbiter's user owns the folder */
    CHECK(follows(7));
    CHECK_EQUAL(chown(folder, 0, 0), 0);
    CHECK_EQUAL(unlink(path_of("elsewhere")), 0);
    mpiox_arbiter_stop(arbiter);
}

/* A foreign file of the job's name is neither taken for the job's nor removed, and its part of the map not followed. */
static void squatter(void)
{
    const int fd = open(path_of("jobs/job.1"), O_WRONLY | O_CREAT | O_EXCL, 0644);
    CHECK(fd >= 0 && write(fd, "mpiox-job 1\njob job.1\n", 22) == 22 && fchown(fd, STRANGER, STRANGER) == 0);
    close(fd);
    put_map(8, 0);
    mpiox_arbiter *arbiter = begin();
    CHECK(stays(0));
    usleep(1500 * 1000);
    CHECK(stays(0));
    CHECK_EQUAL(names_of("jobs/job.1"), 1);
    CHECK_EQUAL(unlink(path_of("jobs/job.1")), 0);
    CHECK(follows(8)); /* it announces itself, now that the name is free */
    mpiox_arbiter_stop(arbiter);
    CHECK_EQUAL(names_of("jobs/job.1"), 0);
}

int main(int argc, char **argv)
{
    if (argc != 3)
        return 2;
    folder = argv[1];
    drafts(argv[2]);
    maps();
    squatter();
    return check_exit();
}
