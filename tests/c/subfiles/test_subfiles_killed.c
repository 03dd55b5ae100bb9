/* test_subfiles_killed.c - who is killed while a file gets its name leaves nothing: test_subfiles_killed FOLDER */
#include <dirent.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"
#include "mpiox_storage_staging.h"
#include "mpiox_subfiles_files.h"

static bool dies, dies_late; /* with the next change of a name; before what lies beside the staging name is removed */
static char path[PATH_MAX], staging[PATH_MAX];

int renameat2(int from_folder, const char *from, int to_folder, const char *to, unsigned int flags)
{
    if (dies)
        _exit(9);
    return (int)syscall(SYS_renameat2, from_folder, from, to_folder, to, flags);
}

int rename(const char *from, const char *to)
{
    return renameat2(-100, from, -100, to, 0);
}

int unlink(const char *name)
{
    const size_t length = strlen(name);
    if (dies_late && length > 6 && strcmp(name + length - 6, ".parts") == 0)
        _exit(9);
    return (int)syscall(SYS_unlink, name);
}

static int entries(const char *folder)
{
    DIR *opened = opendir(folder);
    int count = -2; /* itself and its parent */
    while (opened != NULL && readdir(opened) != NULL)
        count++;
    if (opened != NULL)
        closedir(opened);
    return count;
}

static int publish(mpiox_subfiles *unused)
{
    (void)unused;
    return mpiox_subfiles_publish(staging, path);
}

static int write_once(mpiox_subfiles *subfiles)
{
    bool torn;
    const int guard = mpiox_subfiles_guard(subfiles, MPIOX_GUARD_SHARED);
    int code = mpiox_subfiles_begin(subfiles, guard, &torn);
    CHECK(!torn);
    if (code == 0)
        code = mpiox_subfiles_end(subfiles, guard, false);
    close(guard);
    return code;
}

/* A delegate has written its part. */
static int end_part(mpiox_subfiles *subfiles)
{
    char first[PATH_MAX];
    struct stat status;
    bool renamed;
    CHECK(mpiox_subfiles_path(subfiles, 0, first, sizeof first) && stat(first, &status) == 0);
    return mpiox_storage_staging_end(staging, 0, (uint64_t)status.st_dev, (uint64_t)status.st_ino, &renamed);
}

/* Somebody is killed in the middle of it, and another one does it. Nothing is left but the file. */
static void check(const char *folder, int (*work)(mpiox_subfiles *subfiles), mpiox_subfiles *subfiles)
{
    int status = 0;
    const pid_t child = fork();
    if (child == 0) {
        dies_late = work == end_part;
        dies = !dies_late;
        work(subfiles);
        _exit(1);
    }
    CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 9);
    CHECK_EQUAL(entries(folder), 3); /* the index, the folder of the subfiles, and what is left */
    CHECK_EQUAL(work(subfiles), 0);
    CHECK_EQUAL(entries(folder), 2);
}

static void make(int *guard, mpiox_subfiles *subfiles)
{
    CHECK_EQUAL(mpiox_subfiles_create(staging, path, 3, 4096, NULL, subfiles, guard), 0);
    close(*guard);
}

int main(int argc, char **argv)
{
    mpiox_subfiles subfiles, found = {.size = -1};
    const char *why;
    int guard = -1;
    if (argc != 2 || snprintf(path, sizeof path, "%s/file", argv[1]) >= PATH_MAX ||
        snprintf(staging, sizeof staging, "%s/.file.staging", argv[1]) >= PATH_MAX)
        return 2;
    make(&guard, &subfiles);
    check(argv[1], publish, &subfiles);
    CHECK_EQUAL(mpiox_subfiles_read(path, &found, &why), 0);
    CHECK(found.id == subfiles.id && found.size == 0);
    check(argv[1], write_once, &found);
    CHECK_EQUAL(mpiox_subfiles_remove(&found), 0);
    CHECK_EQUAL(entries(argv[1]), 0);
    mpiox_subfiles_free(&found);
    mpiox_subfiles_free(&subfiles);
    make(&guard, &subfiles);
    CHECK_EQUAL(mpiox_storage_staging_create(staging, true, 1), 0);
    CHECK_EQUAL(mpiox_storage_staging_begin(staging, 0), 0);
    check(argv[1], end_part, &subfiles);
    mpiox_subfiles_free(&subfiles);
    return check_exit();
}
