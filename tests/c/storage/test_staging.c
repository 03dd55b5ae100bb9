/* test_staging.c - the name that a file has until all of it is there: test_staging FOLDER */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "check.h"
#include "mpiox_storage_staging.h"

static char path[PATH_MAX], staging[PATH_MAX], parts[PATH_MAX];

static bool is_there(const char *name)
{
    struct stat status;
    return lstat(name, &status) == 0;
}

static void touch(const char *name)
{
    const int fd = open(name, O_WRONLY | O_CREAT | O_EXCL, 0600);
    CHECK(fd >= 0);
    close(fd);
}

static int end(int part, bool *renamed)
{
    struct stat status = {.st_ino = 0};
    (void)stat(staging, &status);
    return mpiox_storage_staging_end(staging, part, (uint64_t)status.st_dev, (uint64_t)status.st_ino, renamed);
}

static bool is_pending(int part)
{
    struct stat status = {.st_ino = 0};
    (void)stat(staging, &status);
    return mpiox_storage_staging_pending(staging, part, (uint64_t)status.st_dev, (uint64_t)status.st_ino);
}

static void test_names(void)
{
    char name[PATH_MAX], back[PATH_MAX], longest[NAME_MAX + 1];
    CHECK(mpiox_storage_staging_name("/a/b.h5", name, sizeof name) && strcmp(name, "/a/.b.h5.staging") == 0);
    CHECK(mpiox_storage_staging_final(name, back, sizeof back) && strcmp(back, "/a/b.h5") == 0);
    CHECK(mpiox_storage_staging_name("b", name, sizeof name) && strcmp(name, ".b.staging") == 0);
    CHECK(mpiox_storage_staging_final(name, back, sizeof back) && strcmp(back, "b") == 0);
    CHECK(!mpiox_storage_staging_name("/a/", name, sizeof name));
    CHECK(!mpiox_storage_staging_final("/a/b", back, sizeof back));
    CHECK(!mpiox_storage_staging_final("/a/..staging", back, sizeof back));
    memset(longest, 'x', NAME_MAX);
    longest[NAME_MAX] = '\0';
    CHECK(!mpiox_storage_staging_name(longest, name, sizeof name));
    longest[NAME_MAX - 20] = '\0';
    CHECK(mpiox_storage_staging_name(longest, name, sizeof name));
}

/* The file gets its name from whoever is the last, whatever the order, and not before. */
static void test_the_last_gives_the_name(void)
{
    bool renamed;
    CHECK_EQUAL(mpiox_storage_staging_create(staging, false, 3), 0);
    for (int part = 0; part < 3; part++)
        CHECK_EQUAL(mpiox_storage_staging_begin(staging, part), 0);
    CHECK_EQUAL(end(2, &renamed), 0);
    CHECK(!renamed);
    CHECK_EQUAL(end(0, &renamed), 0);
    CHECK(!renamed);
    CHECK_EQUAL(mpiox_storage_staging_begin(staging, 2), 0); /* it has bytes again */
    CHECK_EQUAL(end(1, &renamed), 0);
    CHECK(!renamed && is_there(staging) && !is_there(path));
    CHECK(!is_pending(1) && is_pending(2));
    CHECK(!mpiox_storage_staging_pending(staging, 2, 1, 1)); /* another file has the staging name */
    CHECK_EQUAL(end(2, &renamed), 0);
    CHECK(!is_pending(2));
    CHECK(renamed && is_there(path) && !is_there(staging) && !is_there(parts));
    CHECK_EQUAL(end(2, &renamed), 0); /* it has its name */
    CHECK(!renamed);
    unlink(path);
}

/* Nothing is opened through a link, replaced, or taken for what it is not. */
static void test_nothing_else_is_touched(void)
{
    bool renamed;
    CHECK_EQUAL(symlink("elsewhere", staging), 0);
    CHECK_EQUAL(mpiox_storage_staging_create(staging, false, 1), EEXIST);
    CHECK(!is_there("elsewhere") && !is_there(parts));
    unlink(staging);
    CHECK_EQUAL(symlink("elsewhere", parts), 0);
    CHECK(mpiox_storage_staging_begin(staging, 0) != 0);
    CHECK_EQUAL(mpiox_storage_staging_create(staging, false, 1), 0); /* what lay beside no file is nobody's */
    CHECK(!is_there("elsewhere"));
    touch(path);
    CHECK_EQUAL(end(0, &renamed), EEXIST);
    CHECK(!renamed && is_there(staging));
    unlink(path);
    CHECK_EQUAL(mpiox_storage_staging_end(staging, 0, 0, 0, &renamed), 0); /* another file has the staging name */
    CHECK(!renamed && !is_there(path));
    CHECK_EQUAL(end(0, &renamed), 0);
    CHECK(renamed && is_there(path));
    unlink(path);
}

/* Who has bytes of the file is not known any more: it does not get its name. */
static void test_what_lies_beside_it_is_gone(void)
{
    bool renamed;
    CHECK_EQUAL(mpiox_storage_staging_create(staging, false, 2), 0);
    CHECK_EQUAL(mpiox_storage_staging_begin(staging, 0), 0);
    unlink(parts);
    CHECK_EQUAL(end(0, &renamed), ENOENT);
    CHECK(!renamed && is_there(staging) && !is_there(path));
    unlink(staging);
    CHECK_EQUAL(mpiox_storage_staging_end(staging, 0, 1, 1, &renamed), 0); /* nobody wants it any more */
    CHECK(!renamed);
}

int main(int argc, char **argv)
{
    CHECK(argc == 2 && chdir(argv[1]) == 0);
    snprintf(path, sizeof path, "%s/file", argv[1]);
    CHECK(mpiox_storage_staging_name(path, staging, sizeof staging));
    snprintf(parts, sizeof parts, "%.4000s.parts", staging);
    test_names();
    test_the_last_gives_the_name();
    test_nothing_else_is_touched();
    test_what_lies_beside_it_is_gone();
    return check_exit();
}
