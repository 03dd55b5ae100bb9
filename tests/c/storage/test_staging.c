/* test_staging.c - the name that a file has until all of it is there: test_staging FOLDER */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "check.h"
#include "mpiox_storage_folder.h"
#include "mpiox_storage_staging.h"
#include "mpiox_subfiles_files.h"

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

static bool is_unnamed(void)
{
    struct stat status = {.st_ino = 0};
    (void)stat(staging, &status);
    return mpiox_storage_staging_is_unnamed(staging, (uint64_t)status.st_dev, (uint64_t)status.st_ino);
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
    CHECK(!mpiox_storage_staging_is_of(staging, "a-host.1.2"));
    CHECK_EQUAL(mpiox_storage_staging_sign(staging, "a-host.1.2"), 0); /* its '-' is no mark */
    CHECK(mpiox_storage_staging_is_of(staging, "a-host.1.2") && !mpiox_storage_staging_is_of(staging, "a-host.1"));
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
    CHECK_EQUAL(mpiox_storage_staging_begin(staging, 0), 0);
    CHECK(!is_unnamed());
    CHECK_EQUAL(end(0, &renamed), EEXIST);
    CHECK(!renamed && is_there(staging) && is_unnamed());
    unlink(path);
    CHECK_EQUAL(mpiox_storage_staging_end(staging, 0, 0, 0, &renamed), 0); /* another file has the staging name */
    CHECK(!renamed && !is_there(path));
    CHECK_EQUAL(end(0, &renamed), 0);
    CHECK(renamed && is_there(path));
    unlink(path);
}

/* Deleted, and made again under its name while somebody still writes the first one, whose end is not its own. */
static void test_a_name_that_is_made_again(void)
{
    struct stat first;
    bool renamed;
    CHECK_EQUAL(mpiox_storage_staging_create(staging, false, 2), 0);
    CHECK_EQUAL(mpiox_storage_staging_begin(staging, 0), 0);
    const int fd = open(staging, O_WRONLY);
    CHECK(fd >= 0 && fstat(fd, &first) == 0);
    mpiox_storage_staging_remove(staging, (uint64_t)first.st_dev, (uint64_t)first.st_ino);
    CHECK_EQUAL(mpiox_storage_staging_create(staging, false, 2), 0);
    for (int part = 0; part < 2; part++)
        CHECK_EQUAL(mpiox_storage_staging_begin(staging, part), 0);
    CHECK_EQUAL(mpiox_storage_staging_end(staging, 0, (uint64_t)first.st_dev, (uint64_t)first.st_ino, &renamed), 0);
    CHECK(!renamed && is_pending(0));
    CHECK_EQUAL(end(1, &renamed), 0);
    CHECK(!renamed && is_there(staging) && !is_there(path));
    CHECK_EQUAL(end(0, &renamed), 0);
    CHECK(renamed && is_there(path));
    close(fd);
    unlink(path);
}

/* Who has bytes of the file is not known any more: it does not get its name. */
static void test_what_lies_beside_it_is_gone(void)
{
    bool renamed;
    CHECK_EQUAL(mpiox_storage_staging_create(staging, false, 2), 0);
    CHECK_EQUAL(mpiox_storage_staging_begin(staging, 0), 0);
    unlink(parts);
    CHECK_EQUAL(end(0, &renamed), ENODATA);
    CHECK(!renamed && is_there(staging) && !is_there(path));
    unlink(staging);
    CHECK_EQUAL(mpiox_storage_staging_end(staging, 0, 1, 1, &renamed), 0); /* nobody wants it any more */
    CHECK(!renamed);
}

/* Only what nobody has: then it is found, and ended, by its other name. */
static void test_leftovers(void)
{
    char aside[PATH_MAX], found[PATH_MAX], more[PATH_MAX];
    struct stat status;
    bool renamed;
    CHECK_EQUAL(mpiox_storage_staging_create(staging, false, 2), 0);
    CHECK_EQUAL(mpiox_storage_staging_begin(staging, 1), 0);
    const int guard = mpiox_storage_staging_guard(staging);
    CHECK(guard > 0);
    CHECK_EQUAL(mpiox_storage_staging_set_aside(staging, aside, sizeof aside), EAGAIN);
    CHECK(is_there(staging) && is_there(parts));
    close(guard);
    CHECK_EQUAL(mpiox_storage_staging_set_aside(staging, aside, sizeof aside), 0);
    CHECK(strstr(aside, "/.file.left-1.staging") != NULL && is_there(aside) && !is_there(staging) && !is_there(parts));
    CHECK(lstat(aside, &status) == 0);
    CHECK_EQUAL(mpiox_storage_staging_create(staging, false, 1), 0);
    unlink(parts); /* just being made */
    CHECK_EQUAL(mpiox_storage_staging_set_aside(staging, more, sizeof more), ENODATA);
    mpiox_storage_staging_find(staging, (uint64_t)status.st_dev, (uint64_t)status.st_ino, found, sizeof found);
    CHECK(strcmp(found, aside) == 0);
    mpiox_storage_staging_find(staging, 1, 1, found, sizeof found);
    CHECK(strcmp(found, staging) == 0);
    CHECK_EQUAL(mpiox_storage_staging_end(aside, 1, (uint64_t)status.st_dev, (uint64_t)status.st_ino, &renamed), 0);
    CHECK(renamed && is_there("file.left-1") && !is_there(aside));
    /* Somebody was killed when what lies beside it had been moved. */
    CHECK_EQUAL(rename("file.left-1", aside), 0);
    unlink(staging);
    CHECK_EQUAL(mpiox_storage_staging_create(staging, false, 1), 0);
    CHECK_EQUAL(rename(parts, ".file.left-2.staging.parts"), 0);
    CHECK_EQUAL(mpiox_storage_staging_set_aside(staging, more, sizeof more), 0);
    CHECK(strstr(more, "/.file.left-2.staging") != NULL && !is_there(staging));
    CHECK(unlink(more) == 0 && unlink(aside) == 0 && unlink(".file.left-2.staging.parts") == 0);
}

/* Its folder gets another name: it is found there, gets its own name there, and nothing is taken for it elsewhere. */
static void test_a_folder_that_is_renamed(void)
{
    char name[PATH_MAX], now[PATH_MAX], link[PATH_MAX];
    bool renamed;
    CHECK(mkdir("before", 0700) == 0);
    CHECK_EQUAL(mpiox_storage_staging_create("before/.x.staging", false, 1), 0);
    CHECK_EQUAL(mpiox_storage_staging_begin("before/.x.staging", 0), 0);
    CHECK(realpath("before/.x.staging", name) != NULL);
    const int folder = mpiox_storage_folder_open(name);
    CHECK(folder > 0 && mpiox_storage_folder_open("nowhere/.x.staging") == -1 && errno == ENOENT);
    CHECK(!mpiox_storage_folder_now(folder, name, now, sizeof now));
    CHECK(rename("before", "after") == 0 && mkdir("before", 0700) == 0);
    CHECK(mpiox_storage_folder_now(folder, name, now, sizeof now));
    CHECK(strcmp(now + strlen(now) - strlen("/after/.x.staging"), "/after/.x.staging") == 0 && is_there(now));
    CHECK(!mpiox_storage_folder_now(folder, name, now, strlen(name) - 1));
    CHECK(mpiox_storage_folder_in(folder, name, link, sizeof link));
    struct stat status;
    CHECK(lstat(link, &status) == 0);
    CHECK_EQUAL(mpiox_storage_staging_end(link, 0, (uint64_t)status.st_dev, (uint64_t)status.st_ino, &renamed), 0);
    CHECK(renamed && is_there("after/x") && !is_there("after/.x.staging.parts"));
    CHECK(unlink("after/x") == 0 && rmdir("after") == 0 && rmdir("before") == 0);
    CHECK(!mpiox_storage_folder_now(folder, name, now, sizeof now)); /* "... (deleted)" */
    close(folder);
}

/* ---- subfiles: the index has the staging name, and the file is known by the first of them ------------------------ */

static mpiox_subfiles made;
static struct stat first;

/* For two processes, both of which have bytes. Returns the guard of who has opened it. */
static int make_subfiles(void)
{
    char subfile[PATH_MAX];
    int guard, fd;
    CHECK_EQUAL(mpiox_subfiles_create(staging, path, 3, 10, NULL, &made, &guard), 0);
    CHECK_EQUAL(mpiox_storage_staging_create(staging, true, 2), 0);
    for (int part = 0; part < 2; part++)
        CHECK_EQUAL(mpiox_storage_staging_begin(staging, part), 0);
    CHECK(mpiox_subfiles_path(&made, 1, subfile, sizeof subfile) && strstr(subfile, "/file.subfiles/") != NULL);
    fd = open(subfile, O_WRONLY);
    CHECK(pwrite(fd, "x", 1, 12) == 1); /* byte 42 of the file */
    close(fd);
    CHECK(mpiox_subfiles_path(&made, 0, subfile, sizeof subfile) && lstat(subfile, &first) == 0);
    return guard;
}

static int end_subfiles(int part, bool *renamed)
{
    return mpiox_storage_staging_end(staging, part, (uint64_t)first.st_dev, (uint64_t)first.st_ino, renamed);
}

static void remove_subfiles(void)
{
    const int expected = is_there(staging) ? 0 : ENOENT; /* the index of another name */
    CHECK_EQUAL(mpiox_subfiles_remove(&made), expected);
    mpiox_subfiles_free(&made);
    unlink(path);
}

/* Bytes of the file at `path`, -1: it is being written. */
static int64_t stated_size(void)
{
    mpiox_subfiles found;
    const char *why;
    int32_t bad;
    CHECK_EQUAL(mpiox_subfiles_read(path, &found, &why), 0);
    CHECK_EQUAL(mpiox_subfiles_check(&found, &bad), 0);
    const int64_t size = found.size;
    mpiox_subfiles_free(&found);
    return size;
}

static bool is_published(void)
{
    return is_there(path) && stated_size() == 43 && !is_there(staging) && !is_there(parts);
}

/* Whole once all have ended, and nobody has it open; he who closes it last sees to that. */
static void test_subfiles_that_are_open(void)
{
    bool renamed;
    const int guard = make_subfiles();
    CHECK(mpiox_storage_staging_pending(staging, 1, (uint64_t)first.st_dev, (uint64_t)first.st_ino));
    CHECK_EQUAL(mpiox_storage_staging_left(staging), 0); /* both have bytes */
    CHECK_EQUAL(end_subfiles(0, &renamed), 0);
    CHECK(!renamed && !is_there(path));
    CHECK_EQUAL(end_subfiles(1, &renamed), EAGAIN);
    CHECK_EQUAL(mpiox_storage_staging_left(staging), 0);
    CHECK(!renamed && !is_there(path) && is_there(staging));
    close(guard);
    CHECK_EQUAL(mpiox_storage_staging_left(staging), 0);
    CHECK(is_published());
    CHECK_EQUAL(end_subfiles(1, &renamed), 0);
    CHECK_EQUAL(mpiox_storage_staging_left(staging), 0);
    CHECK(!renamed && is_published());
    remove_subfiles();
}

/* By somebody who was killed when the file had its name, and the staging name was still there; by nobody whose file it
 * is not. */
static void test_subfiles_that_have_a_name(void)
{
    bool renamed;
    close(make_subfiles());
    CHECK_EQUAL(link(staging, "before"), 0);
    CHECK_EQUAL(end_subfiles(0, &renamed), 0);
    CHECK_EQUAL(end_subfiles(1, &renamed), 0);
    CHECK(renamed && is_published());
    CHECK_EQUAL(rename("before", staging), 0);
    CHECK_EQUAL(mpiox_storage_staging_create(staging, true, 2), 0);
    CHECK_EQUAL(end_subfiles(1, &renamed), 0);
    CHECK(renamed && is_published());
    remove_subfiles();
    close(make_subfiles());
    touch(path);
    CHECK_EQUAL(end_subfiles(0, &renamed), 0);
    CHECK_EQUAL(end_subfiles(1, &renamed), EEXIST);
    CHECK(!renamed && is_there(staging) && is_there(parts));
    unlink(path);
    CHECK_EQUAL(end_subfiles(1, &renamed), 0);
    CHECK(renamed && is_published());
    remove_subfiles();
}

/* A close has failed: its own name, and not whole, whatever delegates do then. A subfile is gone: no name. */
static void test_subfiles_that_are_not_whole(void)
{
    char subfile[PATH_MAX];
    bool renamed;
    const int guard = make_subfiles();
    CHECK_EQUAL(mpiox_subfiles_reveal(&made, path), 0);
    mpiox_storage_staging_forget(staging);
    close(guard);
    CHECK_EQUAL(end_subfiles(0, &renamed), 0);
    CHECK_EQUAL(end_subfiles(1, &renamed), 0);
    CHECK(!renamed && !is_there(staging) && stated_size() == -1);
    CHECK(strcmp(made.index, path) == 0);
    CHECK_EQUAL(mpiox_subfiles_remove(&made), 0);
    mpiox_subfiles_free(&made);
    close(make_subfiles());
    CHECK_EQUAL(end_subfiles(0, &renamed), 0);
    CHECK(mpiox_subfiles_path(&made, 2, subfile, sizeof subfile) && unlink(subfile) == 0);
    CHECK_EQUAL(end_subfiles(1, &renamed), ESTALE);
    CHECK(!renamed && is_there(staging) && !is_there(path));
    mpiox_storage_staging_forget(staging);
    remove_subfiles();
}

static void *end_first(void *first)
{
    const struct stat *status = first;
    bool renamed;
    return mpiox_storage_staging_end(staging, 0, (uint64_t)status->st_dev, (uint64_t)status->st_ino, &renamed) == 0
               ? first
               : NULL;
}

/* As soon as it has its name it is deleted and made again: whoever has given the name takes away nothing of the new
 * one's. */
static void test_a_name_that_is_made_again_at_once(void)
{
    struct stat first;
    pthread_t thread;
    void *ended;
    int gone = 0;
    for (int turn = 0; turn < 1000; turn++) {
        CHECK(mpiox_storage_staging_create(staging, false, 1) == 0 && mpiox_storage_staging_begin(staging, 0) == 0);
        CHECK(stat(staging, &first) == 0 && pthread_create(&thread, NULL, end_first, &first) == 0);
        while (unlink(path) != 0)
            sched_yield();
        CHECK(mpiox_storage_staging_create(staging, false, 1) == 0);
        CHECK(pthread_join(thread, &ended) == 0 && ended != NULL);
        gone += !is_there(parts);
        mpiox_storage_staging_forget(staging);
        unlink(staging);
    }
    CHECK_EQUAL(gone, 0);
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
    test_a_name_that_is_made_again();
    test_a_name_that_is_made_again_at_once();
    test_what_lies_beside_it_is_gone();
    test_leftovers();
    test_a_folder_that_is_renamed();
    test_subfiles_that_are_open();
    test_subfiles_that_have_a_name();
    test_subfiles_that_are_not_whole();
    return check_exit();
}
