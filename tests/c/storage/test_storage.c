/*
 * test_storage.c - transfers through every back end, and the faults that tests of other parts rely on.
 *
 *   test_storage units FOLDER              all checks; exit status 0 when they hold
 *   test_storage write PATH RANK BYTES     open, write BYTES in pieces of 64 KiB, close; prints what happened
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "check.h"
#include "mpiox_fault.h"
#include "mpiox_storage.h"
#include "mpiox_storage_internal.h"
#include "mpiox_storage_refresh.h"

enum { BYTES = 100000 };

static unsigned char pattern[BYTES], buffer[BYTES];

static char data_path[512];

/* An empty file, as rank 1 opens it, behind rules. */
static int open_faulty(const char *rules, mpiox_storage **out)
{
    close(open(data_path, O_RDWR | O_CREAT | O_TRUNC, 0600));
    return mpiox_fault_open(rules, data_path, O_RDWR, 1, NULL, out, NULL);
}

/* As the lists of mpiox_storage_list.c move their vectors. */
static int transfer(mpiox_storage *storage, bool write, const struct iovec *iov, int iov_count, int64_t offset,
                    int64_t *done)
{
    const mpiox_storage_call call = {.iov = iov, .iov_count = iov_count, .fd = -1, .offset = offset};
    return mpiox_storage_finish(storage, write, &call, 0, done, NULL);
}

/* Write and read back through `storage`, contiguous and in vectors, whatever short transfers the back end makes. */
static void check_round_trip(mpiox_storage *storage, int vectors)
{
    struct iovec *iov = calloc((size_t)vectors, sizeof *iov);
    int64_t done = -1, at = 0;
    mpiox_error error = {0};
    for (int i = 0; i < vectors; i++) { /* uneven, some empty */
        int64_t length = i + 1 == vectors ? BYTES - at : (i * 7919) % (2 * BYTES / vectors);
        length = length > BYTES - at ? BYTES - at : length;
        iov[i] = (struct iovec){.iov_base = pattern + at, .iov_len = (size_t)length};
        at += length;
    }
    CHECK_EQUAL(transfer(storage, true, iov, vectors, 77, &done), 0);
    CHECK_EQUAL(done, BYTES);
    CHECK_EQUAL(mpiox_storage_write(storage, pattern, 77, 0, &error), 0);
    for (int i = 0; i < vectors; i++)
        iov[i].iov_base = buffer + ((unsigned char *)iov[i].iov_base - pattern);
    memset(buffer, 0, BYTES);
    CHECK_EQUAL(transfer(storage, false, iov, vectors, 77, &done), 0);
    CHECK_EQUAL(done, BYTES);
    CHECK(memcmp(buffer, pattern, BYTES) == 0);
    memset(buffer, 0, BYTES);
    CHECK_EQUAL(mpiox_storage_read(storage, buffer, 1000, 0, &done, &error), 0);
    CHECK_EQUAL(done, 1000);
    CHECK(memcmp(buffer, pattern, 77) == 0 && memcmp(buffer + 77, pattern, 923) == 0);
    /* Across the end of the file. */
    CHECK_EQUAL(mpiox_storage_read(storage, buffer, 100, BYTES + 77 - 40, &done, &error), 0);
    CHECK_EQUAL(done, 40);
    CHECK_EQUAL(mpiox_storage_read(storage, buffer, 100, BYTES + 1000, &done, &error), 0);
    CHECK_EQUAL(done, 0);
    CHECK_EQUAL(error.code, 0);
    free(iov);
}

static int64_t histogram_sum(const mpiox_storage *storage)
{
    int64_t sum = 0;
    for (int i = 0; i < 48; i++)
        sum += storage->counters.request_size_log2[i];
    return sum;
}

static void test_posix(const char *folder)
{
    char path[512];
    mpiox_storage *storage;
    mpiox_error error;
    const mpiox_storage_options options = {.kind = MPIOX_STORAGE_POSIX};
    snprintf(path, sizeof path, "%s/posix.dat", folder);
    CHECK_EQUAL(mpiox_storage_open(path, O_RDWR | O_CREAT, 0, NULL, &storage, &error), MPIOX_E_IO); /* never creates */
    CHECK(storage == NULL);
    CHECK_EQUAL(error.sys_errno, ENOENT);
    CHECK(strcmp(error.what, "open") == 0);
    close(open(path, O_RDWR | O_CREAT, 0600));
    CHECK_EQUAL(mpiox_storage_open(path, O_RDWR, 0, &options, &storage, &error), 0);
    CHECK(storage->fd >= 0 && strcmp(storage->backend->name, "posix") == 0);
    CHECK((fcntl(storage->fd, F_GETFD) & FD_CLOEXEC) != 0);
    check_round_trip(storage, 1);
    check_round_trip(storage, 3000); /* more than IOV_MAX */
    const mpiox_storage_counters *c = &storage->counters;
    CHECK_EQUAL(c->write_bytes, 2 * (BYTES + 77));
    CHECK_EQUAL(c->write_requests, 2 + 1 + 3); /* 3000 vectors are three calls */
    CHECK_EQUAL(histogram_sum(storage), c->write_requests + c->read_requests);
    /* Beyond 2^31 and 2^32: the file stays sparse. */
    int64_t done;
    CHECK_EQUAL(mpiox_storage_write(storage, pattern, 5000, (INT64_C(5) << 30) - 100, &error), 0);
    CHECK_EQUAL(mpiox_storage_read(storage, buffer, BYTES, (INT64_C(5) << 30) - 200, &done, &error), 0);
    CHECK_EQUAL(done, 5100);
    CHECK(buffer[0] == 0 && buffer[99] == 0 && memcmp(buffer + 100, pattern, 5000) == 0);
    CHECK_EQUAL(mpiox_storage_close(storage), 0);
    CHECK_EQUAL(mpiox_storage_open(path, O_RDONLY, 0, NULL, &storage, &error), 0);
    CHECK_EQUAL(mpiox_storage_write(storage, pattern, 10, 20, &error), MPIOX_E_IO);
    CHECK(error.sys_errno == EBADF && error.offset == 20 && error.length == 10);
    CHECK_EQUAL(mpiox_storage_close(storage), 0);
}

/* A long write is several requests, which end at multiples: the same bytes, also where they come to a limit. */
static void test_writes_in_parts(void)
{
    static const int64_t offsets[] = {0, 1, 4095, 4096, 4097, 12288};
    mpiox_storage *storage;
    mpiox_error error;
    struct rlimit old, low;
    int64_t done, requests = 0;
    close(open(data_path, O_RDWR | O_CREAT | O_TRUNC, 0600));
    CHECK_EQUAL(mpiox_storage_open(data_path, O_RDWR, 0, NULL, &storage, &error), 0);
    storage->most_written = 4096;
    for (size_t i = 0; i < sizeof offsets / sizeof *offsets; i++) {
        const int64_t length = BYTES - (int64_t)i * 1234;
        CHECK_EQUAL(mpiox_storage_write(storage, pattern + i, length, offsets[i], &error), 0);
        CHECK_EQUAL(mpiox_storage_read(storage, buffer, length, offsets[i], &done, &error), 0);
        CHECK(done == length && memcmp(buffer, pattern + i, (size_t)length) == 0);
        requests += (offsets[i] + length - 1) / 4096 - offsets[i] / 4096 + 1;
        CHECK_EQUAL(storage->counters.write_requests, requests);
    }
    CHECK_EQUAL(ftruncate(storage->fd, 0), 0);
    signal(SIGXFSZ, SIG_IGN);
    getrlimit(RLIMIT_FSIZE, &old);
    low = (struct rlimit){.rlim_cur = 10000, .rlim_max = old.rlim_max};
    setrlimit(RLIMIT_FSIZE, &low);
    const int code = mpiox_storage_write(storage, pattern, 20000, 0, &error);
    setrlimit(RLIMIT_FSIZE, &old);
    CHECK_EQUAL(code, MPIOX_E_IO);
    CHECK(error.sys_errno == EFBIG && error.offset == 10000 && error.length == 10000);
    CHECK_EQUAL(mpiox_storage_close(storage), 0);
}

/* What is dropped is asked for again: content and size stay, also of a handle that only reads or writes. */
static void test_refresh(const char *folder)
{
    static const int modes[] = {O_RDWR, O_WRONLY, O_RDONLY};
    struct stat before, after;
    char path[512];
    mpiox_storage *storage;
    mpiox_error error = {.code = MPIOX_OK};
    int64_t done;
    CHECK(snprintf(path, sizeof path, "%s/refreshed", folder) < (int)sizeof path);
    close(open(path, O_RDWR | O_CREAT | O_TRUNC, 0600));
    for (int i = 0; i < 3; i++) {
        CHECK_EQUAL(mpiox_storage_open(path, modes[i], 0, NULL, &storage, &error), MPIOX_OK);
        if (modes[i] != O_RDONLY)
            CHECK_EQUAL(mpiox_storage_write(storage, pattern, 1000, 1000 * i, &error), MPIOX_OK);
        CHECK_EQUAL(stat(path, &before), 0);
        CHECK_EQUAL(mpiox_storage_refresh(storage, &error), MPIOX_OK);
        CHECK_EQUAL(stat(path, &after), 0);
        CHECK_EQUAL(after.st_size, before.st_size);
        if (modes[i] != O_WRONLY) {
            CHECK_EQUAL(mpiox_storage_read(storage, buffer, 1000, 0, &done, &error), MPIOX_OK);
            CHECK(done == 1000 && memcmp(buffer, pattern, 1000) == 0);
        }
        CHECK_EQUAL(mpiox_storage_close(storage), MPIOX_OK);
    }
    CHECK_EQUAL(after.st_size, 2000);
}

static void test_bad_requests(void)
{
    mpiox_storage *storage;
    mpiox_error error;
    int64_t done;
    struct iovec iov[2] = {{pattern, SIZE_MAX / 2}, {pattern, SIZE_MAX / 2}};
    CHECK_EQUAL(open_faulty("", &storage), 0);
    CHECK_EQUAL(mpiox_storage_write(storage, pattern, -1, 0, &error), MPIOX_E_ARG);
    CHECK_EQUAL(mpiox_storage_write(storage, pattern, 1, -1, &error), MPIOX_E_ARG);
    CHECK_EQUAL(mpiox_storage_write(storage, pattern, 10, INT64_MAX - 9, &error), MPIOX_E_ARG);
    CHECK_EQUAL(mpiox_storage_request_bytes(iov, 2, 0), -1);
    CHECK_EQUAL(mpiox_storage_request_bytes(iov, -1, 0), -1);
    CHECK_EQUAL(mpiox_storage_read(storage, buffer, -1, 0, &done, &error), MPIOX_E_ARG);
    CHECK_EQUAL(mpiox_storage_request_bytes(NULL, 0, 0), 0);
    CHECK_EQUAL(mpiox_storage_write(storage, NULL, 0, 0, &error), 0);
    CHECK_EQUAL(storage->counters.write_requests, 0);
    CHECK_EQUAL(mpiox_storage_close(storage), 0);
    CHECK_EQUAL(mpiox_storage_close(NULL), 0);
}

static void test_short_and_interrupted(void)
{
    static const char *const rules[] = {
        "short=1,times=5000",
        "short=1000",
        "op=write,short=7,times=3000;op=read,short=333",
        "errno=EINTR",
        "op=any,after=1,times=3,errno=EINTR;short=4097",
        "op=read,delay_ms=1,times=2",
    };
    for (size_t i = 0; i < sizeof rules / sizeof rules[0]; i++) {
        mpiox_storage *storage;
        CHECK_EQUAL(open_faulty(rules[i], &storage), 0);
        check_round_trip(storage, 200);
        CHECK_EQUAL(storage->counters.write_bytes, BYTES + 77); /* each byte counted once, faults or not */
        CHECK_EQUAL(mpiox_storage_close(storage), 0);
    }
}

static void test_errors(void)
{
    mpiox_storage *storage;
    mpiox_error error;
    int64_t done;
    /* The fourth write fails; the request is half done when it does. */
    CHECK_EQUAL(open_faulty("op=write,rank=1,after=3,errno=ENOSPC;op=write,short=100", &storage), 0);
    CHECK_EQUAL(mpiox_storage_write(storage, pattern, 1000, 50, &error), MPIOX_E_IO);
    CHECK(error.sys_errno == ENOSPC && error.offset == 350 && error.length == 700 && error.rank == -1);
    CHECK(strcmp(error.what, "write") == 0);
    CHECK_EQUAL(storage->counters.write_requests, 4);
    CHECK_EQUAL(mpiox_storage_read(storage, buffer, 1000, 0, &done, &error), 0);
    CHECK_EQUAL(done, 350);
    CHECK(memcmp(buffer + 50, pattern, 300) == 0);
    CHECK_EQUAL(mpiox_storage_close(storage), 0);
    /* A write that moves nothing must not loop; a read that does is the end of the file. */
    CHECK_EQUAL(open_faulty("short=0", &storage), 0);
    CHECK_EQUAL(mpiox_storage_write(storage, pattern, 10, 0, &error), MPIOX_E_IO);
    CHECK_EQUAL(error.sys_errno, ENOSPC);
    CHECK_EQUAL(mpiox_storage_read(storage, buffer, 10, 0, &done, &error), 0);
    CHECK_EQUAL(done, 0);
    CHECK_EQUAL(mpiox_storage_close(storage), 0);
    /* A failing read says how far it came. */
    CHECK_EQUAL(open_faulty("op=read,after=1,errno=5;op=read,short=30", &storage), 0);
    CHECK_EQUAL(mpiox_storage_write(storage, pattern, 100, 0, &error), 0);
    CHECK_EQUAL(mpiox_storage_read(storage, buffer, 100, 0, &done, &error), MPIOX_E_IO);
    CHECK(done == 30 && error.sys_errno == EIO && error.offset == 30 && error.length == 70);
    CHECK_EQUAL(mpiox_storage_close(storage), 0);
    CHECK_EQUAL(open_faulty("op=close,errno=EDQUOT", &storage), 0);
    CHECK_EQUAL(mpiox_storage_close(storage), MPIOX_E_IO);
    CHECK_EQUAL(errno, EDQUOT);
    /* EAGAIN is not repeated: a regular file that says so has no better answer later. */
    CHECK_EQUAL(open_faulty("errno=EAGAIN", &storage), 0);
    CHECK_EQUAL(mpiox_storage_write(storage, pattern, 10, 0, &error), MPIOX_E_IO);
    CHECK_EQUAL(mpiox_storage_write(storage, pattern, 10, 0, &error), 0); /* times=1 by default */
    CHECK_EQUAL(mpiox_storage_close(storage), 0);
}

static void test_rules_select(void)
{
    static const char *const silent[] = {"rank=0,errno=EIO", "path=*.nc,errno=EIO", "op=read,errno=EIO", ";", "",
                                         "times=0,errno=EIO"};
    static const char *const loud[] = {"rank=1,errno=EIO", "path=*.h5,errno=EIO", "op=write,errno=EIO",
                                       "op=any,errno=5", "rank=0,errno=EIO;errno=EIO;"};
    mpiox_storage *storage;
    for (size_t i = 0; i < sizeof silent / sizeof silent[0]; i++) {
        CHECK_EQUAL(open_faulty(silent[i], &storage), 0);
        CHECK_EQUAL(mpiox_storage_write(storage, pattern, 10, 0, NULL), 0);
        CHECK_EQUAL(mpiox_storage_close(storage), 0);
    }
    for (size_t i = 0; i < sizeof loud / sizeof loud[0]; i++) {
        CHECK_EQUAL(open_faulty(loud[i], &storage), 0);
        CHECK_EQUAL(mpiox_storage_write(storage, pattern, 10, 0, NULL), MPIOX_E_IO);
        CHECK_EQUAL(mpiox_storage_close(storage), 0);
    }
}

static void test_bad_rules(void)
{
    static const char *const bad[] = {
        "op=write",
        "errno=ENOSUCH",
        "errno=0",
        "errno=EIO,op=seek",
        "errno=EIO,rank=-1",
        "errno=EIO,after=1x",
        "errno=EIO,short=1",
        "op=open,short=1",
        "errno",
        "=5",
        "short=99999999999999999999",
        "errno=EIO,when=now",
        "errno=EIO, rank=1",
        "path=,errno=EIO",
        "errno=5;;op=open",
    };
    mpiox_storage *storage;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        CHECK_EQUAL(open_faulty(bad[i], &storage), MPIOX_E_ARG);
        CHECK(storage == NULL);
    }
    char many[17 * 8 + 1] = "";
    for (int i = 0; i < 17; i++) { /* there is room for 16 */
        CHECK_EQUAL(open_faulty(many, &storage), 0);
        CHECK_EQUAL(mpiox_storage_close(storage), 0);
        strcat(many, "errno=5;");
    }
    CHECK_EQUAL(open_faulty(many, &storage), MPIOX_E_ARG);
}

/* A back end that only looks at what one call is asked to do. */
static struct {
    int64_t calls, expected_offset, most_bytes;
    int most_vectors;
} watched;

static int64_t watch_transfer(mpiox_storage *storage, bool write, const struct iovec *iov, int iov_count,
                              int64_t offset)
{
    int64_t bytes = 0;
    (void)storage, (void)write;
    for (int i = 0; i < iov_count; i++)
        bytes += (int64_t)iov[i].iov_len;
    CHECK_EQUAL(offset, watched.expected_offset);
    CHECK(iov_count >= 1 && bytes >= 1);
    watched.calls++;
    watched.most_bytes = bytes > watched.most_bytes ? bytes : watched.most_bytes;
    watched.most_vectors = iov_count > watched.most_vectors ? iov_count : watched.most_vectors;
    bytes = watched.calls % 3 == 0 ? (bytes + 1) / 2 : bytes; /* every third call is short */
    watched.expected_offset = offset + bytes;
    return bytes;
}

static void test_limits_of_one_call(void)
{
    static const mpiox_storage_backend backend = {.name = "watch", .transfer = watch_transfer};
    mpiox_storage storage = {.backend = &backend, .fd = -1};
    static struct iovec iov[5000];
    int64_t total = 0, done;
    for (int i = 0; i < 5000; i++) { /* lengths of 0 up to 5 GiB; nobody looks behind the pointers */
        size_t length = i % 997 == 5 ? (size_t)5 << 30 : i % 100 == 7 ? (size_t)1 << 30 : i % 3 == 0 ? 0 : (size_t)i;
        iov[i] = (struct iovec){.iov_base = (void *)(uintptr_t)4096, .iov_len = length};
        total += (int64_t)length;
    }
    watched.expected_offset = 12345;
    CHECK_EQUAL(transfer(&storage, true, iov, 5000, 12345, &done), 0);
    CHECK_EQUAL(watched.expected_offset, 12345 + total);
    CHECK(watched.most_bytes <= 0x7ffff000 && watched.most_vectors <= 1024);
    CHECK_EQUAL(storage.counters.write_bytes, total);
    CHECK_EQUAL(storage.counters.write_requests, watched.calls);
    watched.expected_offset = 1;
    CHECK_EQUAL(mpiox_storage_read(&storage, (void *)(uintptr_t)4096, (INT64_C(3) << 30) + 1, 1, &done, NULL), 0);
    CHECK_EQUAL(done, (INT64_C(3) << 30) + 1);
    CHECK_EQUAL(watched.most_bytes, 0x7ffff000);
    CHECK(storage.counters.request_size_log2[30] > 0);
}

static int command_write(const char *path, int rank, int64_t bytes)
{
    mpiox_storage *storage;
    mpiox_error error = {0};
    for (int attempt = 0; attempt < 2; attempt++) { /* twice: a bad rule is reported once */
        int rc = mpiox_storage_open(path, O_RDWR, rank, NULL, &storage, &error);
        for (int64_t at = 0; rc == MPIOX_OK && at < bytes; at += 65536)
            rc = mpiox_storage_write(storage, pattern, bytes - at < 65536 ? bytes - at : 65536, at, &error);
        int close_rc = mpiox_storage_close(storage);
        printf("%d %" PRId32 " %s %" PRId64 " %d\n", rc, error.sys_errno, error.what[0] != '\0' ? error.what : "-",
               error.offset >= 0 ? error.offset + error.length : error.offset, close_rc);
    }
    return 0;
}

int main(int argc, char **argv)
{
    for (int i = 0; i < BYTES; i++)
        pattern[i] = (unsigned char)(i * 31 + i / 256 + 1);
    if (argc == 5 && strcmp(argv[1], "write") == 0)
        return command_write(argv[2], atoi(argv[3]), strtoll(argv[4], NULL, 10));
    if (argc != 3 || strcmp(argv[1], "units") != 0)
        return 2;
    snprintf(data_path, sizeof data_path, "%s/data.h5", argv[2]);
    test_posix(argv[2]);
    test_writes_in_parts();
    test_refresh(argv[2]);
    test_bad_requests();
    test_short_and_interrupted();
    test_errors();
    test_rules_select();
    test_bad_rules();
    test_limits_of_one_call();
    return check_exit();
}
