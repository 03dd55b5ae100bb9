/* test_subfiles_killed.c - who is killed before a new index of subfiles has its name: test_subfiles_killed FOLDER */
#include <dirent.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"
#include "mpiox_storage_subfiles_files.h"

static bool dies; /* with the next change of a name */
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

static int publish(mpiox_storage_subfiles *unused)
{
    (void)unused;
    return mpiox_storage_subfiles_publish(staging, path);
}

static int write_once(mpiox_storage_subfiles *subfiles)
{
    bool torn;
    const int guard = mpiox_storage_subfiles_guard(subfiles, MPIOX_GUARD_SHARED);
    int code = mpiox_storage_subfiles_begin(subfiles, guard, &torn);
    CHECK(!torn);
    if (code == 0)
        code = mpiox_storage_subfiles_end(subfiles, guard, false);
    close(guard);
    return code;
}

/* Somebody is killed in the middle of it, and another one does it. Nothing is left but the file. */
static void check(const char *folder, int (*work)(mpiox_storage_subfiles *subfiles), mpiox_storage_subfiles *subfiles)
{
    int status = 0;
    const pid_t child = fork();
    if (child == 0) {
        dies = true;
        work(subfiles);
        _exit(1);
    }
    CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 9);
    CHECK_EQUAL(entries(folder), 3); /* the index, the folder of the subfiles, and what is left */
    CHECK_EQUAL(work(subfiles), 0);
    CHECK_EQUAL(entries(folder), 2);
}

int main(int argc, char **argv)
{
    mpiox_storage_subfiles subfiles, found = {.size = -1};
    const char *why;
    int guard = -1;
    if (argc != 2 || snprintf(path, sizeof path, "%s/file", argv[1]) >= PATH_MAX ||
        snprintf(staging, sizeof staging, "%s/.file.staging", argv[1]) >= PATH_MAX)
        return 2;
    CHECK_EQUAL(mpiox_storage_subfiles_create(staging, path, 3, 4096, NULL, &subfiles, &guard), 0);
    close(guard);
    check(argv[1], publish, &subfiles);
    CHECK_EQUAL(mpiox_storage_subfiles_read(path, &found, &why), 0);
    CHECK(found.id == subfiles.id && found.size == 0);
    check(argv[1], write_once, &found);
    CHECK_EQUAL(mpiox_storage_subfiles_remove(&found), 0);
    CHECK_EQUAL(entries(argv[1]), 0);
    mpiox_storage_subfiles_free(&found);
    mpiox_storage_subfiles_free(&subfiles);
    return check_exit();
}
