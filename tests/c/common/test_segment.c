/*
 * test_segment.c - shared memory that is another file, that has no room, whose pages must be committed, or
 *                  cannot be read any more.
 *
 * test_segment attach FOLDER | full | limited | locked | committed KIND: "full" is run where /dev/shm and
 * TMPDIR are small.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "check.h"
#include "mpiox_segment.h"
#include "mpiox_segment_guard.h"

enum { BYTES = 8 * 1024 * 1024 };

static int attach(const mpiox_segment_address *address)
{
    mpiox_segment other;
    mpiox_error error = {.code = MPIOX_OK};
    const int code = mpiox_segment_attach(address, &other, &error);

    mpiox_segment_free(&other);
    return code;
}

/* A regular file of `bytes` bytes whose content is that of the segment. */
static void copy_segment(const mpiox_segment *segment, const char *path, off_t bytes)
{
    const int fd = open(path, O_CREAT | O_TRUNC | O_RDWR, 0600);
    char *all = calloc(1, (size_t)bytes);

    CHECK(all != NULL && pread(segment->fd, all, (size_t)bytes, 0) > 0);
    CHECK(all != NULL && write(fd, all, (size_t)bytes) == (ssize_t)bytes);
    free(all);
    close(fd);
}

static void wrong_files(mpiox_segment_kind kind, const char *folder)
{
    mpiox_segment segment, other;
    mpiox_segment_address address, changed;
    mpiox_error error = {.code = MPIOX_OK};
    char path[200];

    CHECK_EQUAL(mpiox_segment_create(kind, BYTES, &address, &segment, &error), 0);
    CHECK_EQUAL(mpiox_segment_attach(&address, &other, &error), 0);
    ((char *)segment.base)[BYTES - 1] = 'x';
    CHECK_EQUAL(((char *)other.base)[BYTES - 1], 'x');
    CHECK_EQUAL(((char *)other.base)[0], 0);
    mpiox_segment_free(&other);
    changed = address; /* a copy of the same size: another inode */
    snprintf(path, sizeof path, "%s/copy", folder);
    copy_segment(&segment, path, BYTES + 16);
    snprintf(changed.name, sizeof changed.name, "%s", path);
    CHECK_EQUAL(attach(&changed), MPIOX_E_UNSUPPORTED);
    changed = address; /* the same numbers, another mark: of another kernel */
    changed.mark[1] ^= 1;
    CHECK_EQUAL(attach(&changed), MPIOX_E_UNSUPPORTED);
    changed = address; /* larger than it is */
    changed.bytes *= 2;
    CHECK_EQUAL(attach(&changed), MPIOX_E_UNSUPPORTED);
    snprintf(changed.name, sizeof changed.name, "/dev/tty"); /* nothing that is no regular file is opened */
    CHECK_EQUAL(attach(&changed), MPIOX_E_UNSUPPORTED);
    mpiox_segment_seal(&segment, &address);
    CHECK_EQUAL(attach(&address), MPIOX_E_UNSUPPORTED); /* nothing has stayed */
    mpiox_segment_free(&segment);
}

/* Bytes stay, in every mapping, whichever pages the kernel has; a process that uses huge pages has hardly a fault. */
static void huge(mpiox_segment_kind kind)
{
    mpiox_segment segment, other;
    mpiox_segment_address address;
    mpiox_error error = {.code = MPIOX_OK};
    struct rusage before, after;

    CHECK_EQUAL(mpiox_segment_create(kind, BYTES + 4096, &address, &segment, &error), 0);
    CHECK_EQUAL(mpiox_segment_attach(&address, &other, &error), 0);
    unsigned char *mine = segment.base, *theirs = other.base;
    CHECK_EQUAL((uintptr_t)mine % MPIOX_SEGMENT_HUGE, 0);
    CHECK_EQUAL((uintptr_t)theirs % MPIOX_SEGMENT_HUGE, 0);
    memset(mine, 'm', BYTES / 2 + 5000);
    theirs[BYTES + 4095] = 't';
    errno = 17;
    const bool all = mpiox_segment_make_huge(mine, BYTES + 4096);
    CHECK_EQUAL(errno, 17);
    getrusage(RUSAGE_SELF, &before);
    for (int at = 0; at < BYTES; at += 4096)
        theirs[at]++;
    getrusage(RUSAGE_SELF, &after);
    printf("huge pages: %s, %ld faults\n", all ? "yes" : "no", after.ru_minflt - before.ru_minflt);
    CHECK(!all || after.ru_minflt - before.ru_minflt < BYTES / 4096 / 2); /* the kernel may split some again */
    for (int at = 0; at < BYTES; at++)
        if (mine[at] != (at < BYTES / 2 + 5000 ? 'm' : 0) + (at % 4096 == 0))
            CHECK_EQUAL(at, -1);
    CHECK_EQUAL(mine[BYTES + 4095], 't');
    CHECK(mpiox_segment_make_huge(mine + 1, 2 * MPIOX_SEGMENT_HUGE - 2)); /* no whole one */
    mpiox_segment_free(&other);
    mpiox_segment_seal(&segment, &address);
    mpiox_segment_free(&segment);
}

static void full(void)
{
    mpiox_segment segment;
    mpiox_segment_address address;
    mpiox_error error = {.code = MPIOX_OK};

    CHECK_EQUAL(mpiox_segment_create(MPIOX_SEGMENT_FILE, BYTES, &address, &segment, &error), MPIOX_E_FULL);
    CHECK_EQUAL(error.sys_errno, ENOSPC);
    CHECK(segment.base == NULL);
    CHECK_EQUAL(mpiox_segment_create(MPIOX_SEGMENT_FILE, BYTES / 64, &address, &segment, &error), 0);
    memset(segment.base, 1, BYTES / 64);
    mpiox_segment_seal(&segment, &address);
    mpiox_segment_free(&segment);
    CHECK_EQUAL(mpiox_segment_create(MPIOX_SEGMENT_MEMFD, BYTES, &address, &segment, &error), 0); /* not bound by it */
    memset(segment.base, 1, BYTES);
    mpiox_segment_seal(&segment, &address);
    mpiox_segment_free(&segment);
}

/* Beyond ulimit -f: an error, not the signal that ends the process. */
static void limited(void)
{
    const struct rlimit limit = {BYTES, BYTES};

    CHECK_EQUAL(setrlimit(RLIMIT_FSIZE, &limit), 0);
    for (mpiox_segment_kind kind = 0; kind < MPIOX_SEGMENT_KINDS; kind++) {
        mpiox_segment segment;
        mpiox_segment_address address;
        mpiox_error error = {.code = MPIOX_OK};

        CHECK_EQUAL(mpiox_segment_create(kind, BYTES, &address, &segment, &error), MPIOX_E_FULL); /* with its mark */
        CHECK_EQUAL(error.sys_errno, EFBIG);
        CHECK(segment.base == NULL);
        CHECK_EQUAL(mpiox_segment_create(kind, BYTES / 2, &address, &segment, &error), 0);
        mpiox_segment_seal(&segment, &address);
        mpiox_segment_free(&segment);
    }
}

/* Under mlockall(MCL_FUTURE) a segment needs no more than its bytes of ulimit -l, which does not bind root. */
static void locked(void)
{
    const struct rlimit limit = {BYTES / 8 * 7, BYTES / 8 * 7}; /* below the kernel's default */
    mpiox_segment segment;
    mpiox_segment_address address;
    mpiox_error error = {.code = MPIOX_OK};

    CHECK_EQUAL(setrlimit(RLIMIT_MEMLOCK, &limit), 0);
    CHECK(geteuid() != 0 || setuid(65534) == 0);
    CHECK_EQUAL(mlockall(MCL_FUTURE), 0);
    CHECK_EQUAL(mpiox_segment_create(MPIOX_SEGMENT_MEMFD, BYTES / 2, &address, &segment, &error), 0);
    CHECK_EQUAL(attach(&address), 0); /* the first one has been unlocked */
    mpiox_segment_seal(&segment, &address);
    mpiox_segment_free(&segment);
}

/* In a folder: nothing has a name there, everything is reserved, and others find it all the same. */
static void in_a_folder(const char *folder)
{
    mpiox_segment segment, other;
    mpiox_segment_address address;
    mpiox_error error = {.code = MPIOX_OK};
    struct stat status = {.st_blocks = -1};
    char missing[200];

    CHECK_EQUAL(mpiox_segment_create_in(folder, BYTES, NULL, &address, &segment, &error), 0);
    CHECK_EQUAL(fstat(segment.fd, &status), 0);
    CHECK(status.st_blocks * 512 >= BYTES && status.st_nlink == 0 && (status.st_mode & 077) == 0);
    CHECK_EQUAL(mpiox_segment_attach(&address, &other, &error), 0);
    ((char *)segment.base)[BYTES - 1] = 'x';
    CHECK_EQUAL(((char *)other.base)[BYTES - 1], 'x');
    mpiox_segment_free(&other);
    mpiox_segment_seal(&segment, &address);
    CHECK_EQUAL(attach(&address), MPIOX_E_UNSUPPORTED);
    mpiox_segment_free(&segment);
    snprintf(missing, sizeof missing, "%s/missing", folder);
    CHECK_EQUAL(mpiox_segment_create_in(missing, BYTES, NULL, &address, &segment, &error), MPIOX_E_IO);
    CHECK_EQUAL(error.sys_errno, ENOENT);
    CHECK(segment.base == NULL);
}

/* Prints how many bytes of a new segment are reserved. */
static void committed(mpiox_segment_kind kind)
{
    mpiox_segment segment;
    mpiox_segment_address address;
    mpiox_error error = {.code = MPIOX_OK};
    struct stat status = {.st_blocks = -1};

    CHECK_EQUAL(mpiox_segment_create(kind, BYTES, &address, &segment, &error), 0);
    CHECK_EQUAL(fstat(segment.fd, &status), 0);
    printf("reserved %s\n", status.st_blocks * 512 >= BYTES ? "all" : "little");
    mpiox_segment_seal(&segment, &address);
    mpiox_segment_free(&segment);
}

/* A file that is cut: readable bytes stay, the rest is private memory, and the query reports it. */
static void torn(const char *folder)
{
    const int64_t page = sysconf(_SC_PAGESIZE);
    mpiox_segment segment, other;
    mpiox_segment_address address;
    mpiox_error error = {.code = MPIOX_OK};
    char name[MPIOX_SEGMENT_NAME];

    CHECK_EQUAL(mpiox_segment_create_in(folder, BYTES, name, &address, &segment, &error), 0);
    CHECK_EQUAL(mpiox_segment_attach(&address, &other, &error), 0);
    CHECK(other.on_disk);
    char *bytes = other.base;
    const mpiox_segment_empty empty = {
        .ones = bytes + 3 * page + 100, .ones_bytes = 50, .word = (void *)(bytes + 4 * page), .value = 17};
    memset(bytes, 'x', BYTES);
    CHECK(mpiox_segment_guard(bytes, BYTES, &empty));
    CHECK(!mpiox_segment_is_lost(bytes, BYTES));
    CHECK_EQUAL(ftruncate(segment.fd, 2 * page), 0);
    CHECK_EQUAL(bytes[page], 'x');
    CHECK(!mpiox_segment_is_lost(bytes, BYTES)); /* nobody has touched it */
    CHECK_EQUAL(bytes[3 * page + 99], 0);
    CHECK_EQUAL((unsigned char)bytes[3 * page + 100], 255);
    CHECK_EQUAL((unsigned char)bytes[3 * page + 149], 255);
    CHECK_EQUAL(bytes[3 * page + 150], 0);
    CHECK_EQUAL(*empty.word, 17);
    CHECK_EQUAL(bytes[page], 'x');
    CHECK(atomic_load(&mpiox_segment_lost_some));
    CHECK(!mpiox_segment_is_lost(bytes, 3 * page));
    CHECK(mpiox_segment_is_lost(bytes + 3 * page - 1, 2));
    CHECK(mpiox_segment_is_lost(bytes + 4 * page, 1));
    CHECK(!mpiox_segment_is_lost(bytes + 5 * page, BYTES - 5 * page));
    mpiox_segment_unguard(bytes);
    CHECK(!mpiox_segment_is_lost(bytes, BYTES));
    mpiox_segment_free(&other);
    mpiox_segment_seal(&segment, &address);
    mpiox_segment_free(&segment);
    unlink(name);
}

int main(int argc, char **argv)
{
    if (argc > 2 && strcmp(argv[1], "attach") == 0) {
        wrong_files(MPIOX_SEGMENT_MEMFD, argv[2]);
        wrong_files(MPIOX_SEGMENT_FILE, argv[2]);
        huge(MPIOX_SEGMENT_MEMFD);
        huge(MPIOX_SEGMENT_FILE);
        in_a_folder(argv[2]);
        torn(argv[2]);
    } else if (argc > 1 && strcmp(argv[1], "full") == 0) {
        full();
    } else if (argc > 1 && strcmp(argv[1], "limited") == 0) {
        limited();
    } else if (argc > 1 && strcmp(argv[1], "locked") == 0) {
        locked();
    } else if (argc > 2 && strcmp(argv[1], "committed") == 0) {
        committed(strcmp(argv[2], "file") == 0 ? MPIOX_SEGMENT_FILE : MPIOX_SEGMENT_MEMFD);
    }
    return check_exit();
}
