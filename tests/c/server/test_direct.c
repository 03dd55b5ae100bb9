/*
 * test_direct.c - a delegate whose file is open for direct I/O: every byte is right, whole blocks are not in the page
 * cache, and descriptors are what was asked for.
 *
 *   test_direct DIRECTORY
 *
 * Exit status 77: the file system of DIRECTORY has no direct I/O.
 */
#include <dirent.h>
#include <sys/mman.h>

#include "harness.h"

enum { SKIPPED = 77, PAGE = 16384, PAGES = 24, FRAMES = 6, BYTES = PAGES * PAGE - 1234, ROUNDS = 400, BOTH = 24 };

static const int all_flags = MPIOX_FILE_READABLE | MPIOX_FILE_WRITABLE | MPIOX_FILE_DIRECT_READ |
                             MPIOX_FILE_DIRECT_WRITE;
static char folder[512], expected[BYTES], found[BYTES];

static const char *path_of(const char *name)
{
    static char path[600];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

/* Descriptors of this process that are open for direct I/O of that file. */
static int direct_descriptors(const char *path)
{
    char entry[300], real[600], target[600];
    int count = 0;
    DIR *list = opendir("/proc/self/fd");
    if (list == NULL || realpath(path, real) == NULL)
        exit(1);
    for (struct dirent *at; (at = readdir(list)) != NULL;) {
        snprintf(entry, sizeof entry, "/proc/self/fd/%s", at->d_name);
        const ssize_t length = readlink(entry, target, sizeof target - 1);
        target[length > 0 ? length : 0] = '\0';
        count += strcmp(target, real) == 0 && (fcntl(atoi(at->d_name), F_GETFL) & O_DIRECT) != 0;
    }
    closedir(list);
    return count;
}

/* Pages of the file, of the operating system, that its page cache has. */
static int64_t cached_bytes(const char *path)
{
    static unsigned char resident[PAGES * PAGE / 512];
    const int64_t page = sysconf(_SC_PAGESIZE);
    const int fd = open(path, O_RDWR);
    struct stat status;
    if (fd < 0 || fstat(fd, &status) != 0)
        exit(1);
    void *base = mmap(NULL, (size_t)status.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (base == MAP_FAILED || mincore(base, (size_t)status.st_size, resident) != 0)
        exit(1);
    int64_t bytes = 0;
    for (int64_t i = 0; i * page < status.st_size; i++)
        bytes += (resident[i] & 1) * page;
    munmap(base, (size_t)status.st_size);
    close(fd);
    return bytes;
}

static void forget_cached(const char *path)
{
    const int fd = open(path, O_RDONLY);
    CHECK(fd >= 0 && fsync(fd) == 0 && posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED) == 0);
    close(fd);
}

/* Accesses of any size and place, with fewer frames than pages, beside somebody who uses the page cache: what is read,
 * and what the file is at the end, is what was written. */
static void any_access(void)
{
    static char bytes[3 * PAGE];
    mpiox_server_options options = options_for(PAGE, FRAMES);
    running delegate;
    uint32_t random = 20261;
    int64_t end = 0;
    options.io_threads = 3;
    make_file(path_of("any.dat"), NULL, 0);
    const mpiox_cache *cache = start_server(&delegate, &options);
    const int id = mpiox_ring_join(cache), file = open_shared(cache, path_of("any.dat"), all_flags, 1, 1);
    CHECK(file >= 0);
    CHECK_EQUAL(direct_descriptors(path_of("any.dat")), 1);
    for (int round = 0; round < ROUNDS; round++) {
        const int64_t offset = next_random(&random) % (BYTES - 1);
        const int64_t rest = BYTES - offset, most = rest < (int64_t)sizeof bytes ? rest : (int64_t)sizeof bytes;
        const int64_t length = 1 + next_random(&random) % most;
        if (next_random(&random) % 3 > 0) {
            for (int64_t i = 0; i < length; i++)
                expected[offset + i] = bytes[i] = (char)next_random(&random);
            CHECK_EQUAL(access_bytes(cache, file, true, bytes, offset, length, NULL), MPIOX_OK);
            end = offset + length > end ? offset + length : end;
        } else {
            CHECK_EQUAL(access_bytes(cache, file, false, bytes, offset, length, NULL), MPIOX_OK);
            CHECK(memcmp(bytes, expected + offset, (size_t)length) == 0);
        }
        if (round % 50 == 49) {
            CHECK_EQUAL(flush_file(cache, file, false, round % 100 == 99), MPIOX_OK);
            CHECK_EQUAL(read_whole(path_of("any.dat"), found, sizeof found), end);
            CHECK(memcmp(found, expected, (size_t)end) == 0);
        }
    }
    CHECK_EQUAL(close_shared(cache, file), MPIOX_OK);
    CHECK_EQUAL(direct_descriptors(path_of("any.dat")), 0);
    leave(cache, id);
    CHECK_EQUAL(end_server(&delegate), MPIOX_OK);
    CHECK_EQUAL(read_whole(path_of("any.dat"), found, sizeof found), end);
    CHECK(memcmp(found, expected, (size_t)end) == 0);
}

/* One pass of writing whole pages and one of reading them; returns the bytes that the page cache has after each. */
static void pass(int flags, int64_t cached[2])
{
    const mpiox_server_options options = options_for(PAGE, FRAMES);
    running delegate;
    make_file(path_of("pass.dat"), NULL, 0);
    for (int64_t i = 0; i < BYTES; i++)
        expected[i] = (char)(i * 7 + i / PAGE);
    const mpiox_cache *cache = start_server(&delegate, &options);
    const int id = mpiox_ring_join(cache), file = open_shared(cache, path_of("pass.dat"), flags, 1, 1);
    CHECK_EQUAL(direct_descriptors(path_of("pass.dat")), (flags & BOTH) != 0);
    CHECK_EQUAL(access_bytes(cache, file, true, expected, 0, BYTES, NULL), MPIOX_OK);
    CHECK_EQUAL(flush_file(cache, file, true, true), MPIOX_OK);
    cached[0] = cached_bytes(path_of("pass.dat"));
    forget_cached(path_of("pass.dat"));
    CHECK_EQUAL(cached_bytes(path_of("pass.dat")), 0);
    memset(found, 1, sizeof found);
    CHECK_EQUAL(access_bytes(cache, file, false, found, 0, BYTES, NULL), MPIOX_OK);
    CHECK(memcmp(found, expected, BYTES) == 0);
    cached[1] = cached_bytes(path_of("pass.dat"));
    CHECK_EQUAL(close_shared(cache, file), MPIOX_OK);
    leave(cache, id);
    CHECK_EQUAL(end_server(&delegate), MPIOX_OK);
}

/* Each flag moves its own direction past the page cache, all but the last page, which the file does not fill. */
static void past_the_page_cache(void)
{
    const int plain = MPIOX_FILE_READABLE | MPIOX_FILE_WRITABLE;
    int64_t cached[2];
    pass(plain, cached);
    CHECK(cached[0] >= BYTES && cached[1] >= BYTES);
    pass(plain | MPIOX_FILE_DIRECT_WRITE, cached);
    CHECK(cached[0] <= PAGE && cached[1] >= BYTES);
    pass(plain | MPIOX_FILE_DIRECT_READ, cached);
    CHECK(cached[0] >= BYTES && cached[1] <= PAGE);
    pass(all_flags, cached);
    CHECK(cached[0] <= PAGE && cached[1] <= PAGE);
}

int main(int argc, char **argv)
{
    if (argc != 2)
        return 2;
    snprintf(folder, sizeof folder, "%s", argv[1]);
    make_file(path_of("probe.dat"), NULL, 0);
    const int fd = open(path_of("probe.dat"), O_RDWR | O_DIRECT);
    if (fd < 0) {
        printf("no direct I/O on the file system of %s\n", folder);
        return SKIPPED;
    }
    close(fd);
    any_access();
    past_the_page_cache();
    return check_exit();
}
