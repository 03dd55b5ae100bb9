/*
 * test_follow.c - a job's side of the arbiter: who announces the job, a program that forks, a full file system.
 *
 *   test_follow FOLDER, which has a folder jobs
 */
#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"
#include "mpiox_arbiter.h"
#include "mpiox_wait.h"

static const double limit_s = 60;
static const char *folder;

typedef struct follower {
    mpiox_arbiter *arbiter;
    _Atomic int64_t applied;
} follower;

static void apply(void *context, const mpiox_map *map)
{
    follower *self = context;
    atomic_store(&self->applied, map->generation);
}

static int begin(follower *self)
{
    const mpiox_arbiter_options options = {.folder = folder,
                                           .job = "job.1",
                                           .program = "flow-3",
                                           .ranks = 6,
                                           .nodes = 3,
                                           .delegates = 2,
                                           .apply = apply,
                                           .context = self};
    mpiox_error error;
    atomic_store(&self->applied, 0);
    return mpiox_arbiter_start(&options, &self->arbiter, &error);
}

static char *path_of(const char *name)
{
    static char path[2][600];
    static int turn;
    char *text = path[turn++ % 2];
    snprintf(text, sizeof path[0], "%s/%s", folder, name);
    return text;
}

/* The announcement; "": there is none. */
static const char *announced(void)
{
    static char text[2048];
    FILE *file = fopen(path_of("jobs/job.1"), "r");
    text[0] = '\0';
    if (file != NULL) {
        text[fread(text, 1, sizeof text - 1, file)] = '\0';
        fclose(file);
    }
    return text;
}

/* Wait until it has the words, or (NULL) is gone. */
static bool becomes(const char *words)
{
    const double until = mpiox_now() + limit_s;
    while (mpiox_now() < until) {
        const char *text = announced();
        if (words == NULL ? text[0] == '\0' : strstr(text, words) != NULL)
            return true;
        usleep(10 * 1000);
    }
    return false;
}

static bool follows(follower *self, int64_t generation)
{
    const double until = mpiox_now() + limit_s;
    while (mpiox_now() < until && atomic_load(&self->applied) != generation)
        usleep(10 * 1000);
    return atomic_load(&self->applied) == generation;
}

static void write_map(int generation, const char *name)
{
    char text[200];
    int bytes = snprintf(text, sizeof text, "mpiox-map 1\ngeneration %d\njob job.1 0,1\n", generation);
    bytes += snprintf(text + bytes, sizeof text - (size_t)bytes, "end 1 %016llx\n",
                      (unsigned long long)mpiox_map_checksum(text, (size_t)bytes));
    FILE *file = fopen(path_of(name), "w");
    CHECK(file != NULL && fwrite(text, 1, (size_t)bytes, file) == (size_t)bytes && fclose(file) == 0);
}

static void put_map(const char *name)
{
    CHECK_EQUAL(rename(path_of(name), path_of("map")), 0);
}

/* What a child does at its end is nothing: its parent goes on to follow, and stays announced. */
static void forks(follower *self)
{
    int status = -1;
    const pid_t child = fork();
    if (child == 0) {
        mpiox_arbiter_stop(self->arbiter);
        _exit(0);
    }
    CHECK_EQUAL(waitpid(child, &status, 0), child);
    CHECK_EQUAL(status, 0);
    CHECK(strstr(announced(), "job job.1\n") != NULL);
    write_map(2, ".new");
    put_map(".new");
    CHECK(follows(self, 2));
    CHECK(becomes("applied 2\n"));
}

/* The folder is full: the job follows the map all the same, and announces it when there is room again. */
static void full_disk(follower *self)
{
    struct rlimit limits, none;
    write_map(5, ".new");
    signal(SIGXFSZ, SIG_IGN);
    CHECK_EQUAL(getrlimit(RLIMIT_FSIZE, &limits), 0);
    none = limits;
    none.rlim_cur = 0;
    CHECK_EQUAL(setrlimit(RLIMIT_FSIZE, &none), 0);
    put_map(".new");
    const bool followed = follows(self, 5);
    usleep(1500 * 1000); /* it tries again meanwhile */
    const bool whole = strstr(announced(), "applied 2\n") != NULL;
    CHECK_EQUAL(setrlimit(RLIMIT_FSIZE, &limits), 0);
    CHECK(followed && whole);
    CHECK(becomes("applied 5\n"));
}

int main(int argc, char **argv)
{
    follower first, second;
    if (argc != 2)
        return 2;
    folder = argv[1];
    CHECK_EQUAL(begin(&first), MPIOX_OK);
    CHECK(strstr(announced(), "ranks 6\nnodes 3\ndelegates 2\nprogram flow-3\n") != NULL);
    CHECK(strstr(announced(), "\nboot ") != NULL && strstr(announced(), "\nprocesses ") != NULL);
    forks(&first);
    CHECK_EQUAL(begin(&second), MPIOX_OK); /* another process of the job, say */
    CHECK(follows(&second, 2));
    full_disk(&first);
    CHECK(follows(&second, 5));
    mpiox_arbiter_stop(first.arbiter);
    CHECK(becomes("applied 5\n")); /* the other one has announced the job */
    mpiox_arbiter_stop(second.arbiter);
    CHECK(becomes(NULL));
    folder = "/nowhere";
    CHECK_EQUAL(begin(&first), MPIOX_E_IO);
    return check_exit();
}
