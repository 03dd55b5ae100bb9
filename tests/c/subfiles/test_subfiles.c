/* test_subfiles.c - files that are stored as several, against a model: test_subfiles FOLDER SEED; and folders of other
 * users, as root: test_subfiles FOLDER SEED others */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"
#include "descriptors.h"
#include "mpiox_storage_container.h"
#include "mpiox_subfiles_files.h"

static char path[PATH_MAX];
static uint64_t state;

static int64_t drawn(int64_t below)
{
    state ^= state >> 12; /* xorshift64* */
    state ^= state << 25;
    state ^= state >> 27;
    return (int64_t)((state * UINT64_C(2685821657736338717) >> 1) % (uint64_t)below);
}

static int64_t one_of(const int64_t *values, int count)
{
    return values[drawn(count)];
}

/* ---- the mapping ------------------------------------------------------------------------------------------------- */

/* Bytes below `size` that lie in a subfile, unit by unit. */
static int64_t counted_share(int64_t unit, int32_t count, int32_t subfile, int64_t size)
{
    int64_t bytes = 0;
    for (int64_t at = subfile * unit; at < size; at += unit * count)
        bytes += size - at < unit ? size - at : unit;
    return bytes;
}

static void test_mapping(void)
{
    static const int64_t units[] = {1, 3, 4096, 1 << 20, (INT64_C(1) << 32) + 1, MPIOX_SUBFILES_UNIT_MOST};
    static const int64_t counts[] = {1, 2, 3, 7, 64, 4095, 4096};
    static const int64_t around[] = {0, 1, 4096, INT64_C(1) << 31, INT64_C(1) << 32, INT64_C(1) << 62, INT64_MAX - 9};
    for (int i = 0; i < 200000; i++) {
        const int64_t unit = one_of(units, 6), offset = one_of(around, 7) + drawn(9);
        const int32_t count = (int32_t)one_of(counts, 7);
        const mpiox_subfiles_spot place = mpiox_subfiles_place(unit, count, offset);
        const int64_t number = offset / unit;
        CHECK(place.subfile == number % count && place.left == unit - offset % unit);
        CHECK(place.offset == number / count * unit + offset % unit);
        if (offset < INT64_MAX) {
            const int64_t reach = mpiox_subfiles_reach(unit, count, place.subfile, place.offset + 1);
            CHECK_EQUAL(reach, offset + 1); /* the inverse: where the subfile ends, the file does at least */
            CHECK(mpiox_subfiles_share(unit, count, place.subfile, offset + 1) == place.offset + 1);
        }
        CHECK_EQUAL(mpiox_subfiles_reach(unit, count, (int32_t)drawn(count), 0), 0);
    }
    for (int i = 0; i < 2000; i++) {
        const int64_t unit = 1 + drawn(50), size = drawn(3000);
        const int32_t count = 1 + (int32_t)drawn(20);
        int64_t sum = 0;
        for (int32_t k = 0; k < count; k++) {
            const int64_t share = mpiox_subfiles_share(unit, count, k, size);
            CHECK_EQUAL(share, counted_share(unit, count, k, size));
            sum += share;
        }
        CHECK_EQUAL(sum, size);
    }
    CHECK_EQUAL(mpiox_subfiles_reach(1 << 20, 4096, 4095, INT64_MAX), INT64_MAX);
}

/* ---- random requests --------------------------------------------------------------------------------------------- */

enum { MODEL_BYTES = 60000 };

typedef struct model {
    char bytes[MODEL_BYTES];
    int64_t size;
    mpiox_storage *storage;
} model;

static void fill(char *buffer, int64_t length)
{
    for (int64_t i = 0; i < length; i++)
        buffer[i] = (char)(1 + drawn(255));
}

static void note(model *m, const char *buffer, int64_t length, int64_t offset)
{
    memcpy(m->bytes + offset, buffer, (size_t)length);
    m->size = offset + length > m->size ? offset + length : m->size;
}

static void write_some(model *m)
{
    char buffer[9000];
    const int64_t length = 1 + drawn(9000), offset = drawn(MODEL_BYTES - length);
    fill(buffer, length);
    CHECK(mpiox_storage_write(m->storage, buffer, length, offset, NULL) == MPIOX_OK);
    note(m, buffer, length, offset);
}

static void read_some(model *m)
{
    char buffer[9000];
    const int64_t length = 1 + drawn(9000), offset = drawn(MODEL_BYTES), there = m->size - offset;
    const int64_t expected = there < 0 ? 0 : there < length ? there : length;
    int64_t done = -1;
    memset(buffer, 77, sizeof buffer);
    CHECK(mpiox_storage_read(m->storage, buffer, length, offset, &done, NULL) == MPIOX_OK);
    CHECK_EQUAL(done, expected);
    CHECK(memcmp(buffer, m->bytes + offset, (size_t)expected) == 0);
}

/* Pieces that do not overlap, each somewhere in a stripe of its own. */
static void use_list(model *m, bool write)
{
    char buffers[40][400];
    mpiox_storage_piece pieces[40];
    const int64_t count = 1 + drawn(40), stripe = MODEL_BYTES / 40;
    int64_t end = -1, expected = INT64_MAX;
    for (int64_t i = 0; i < count; i++) {
        const int64_t length = 1 + drawn(400);
        pieces[i] = (mpiox_storage_piece){buffers[i], length, i * stripe + drawn(stripe - length)};
        fill(buffers[i], length);
        if (write)
            note(m, buffers[i], length, pieces[i].offset);
        else if (pieces[i].offset + length > m->size && expected == INT64_MAX)
            expected = pieces[i].offset > m->size ? pieces[i].offset : m->size;
    }
    if (write) {
        CHECK(mpiox_storage_write_list(m->storage, pieces, count, NULL) == MPIOX_OK);
        return;
    }
    CHECK(mpiox_storage_read_list(m->storage, pieces, count, &end, NULL) == MPIOX_OK);
    CHECK_EQUAL(end, expected);
    for (int64_t i = 0; i < count; i++) {
        const int64_t there = m->size - pieces[i].offset;
        if (there > 0)
            CHECK(memcmp(buffers[i], m->bytes + pieces[i].offset,
                         (size_t)(there < pieces[i].length ? there : pieces[i].length)) == 0);
    }
}

static void change_size(model *m)
{
    const int64_t size = drawn(MODEL_BYTES);
    const int parts = 1 + (int)drawn(5);
    for (int part = 0; part < parts; part++)
        CHECK(mpiox_storage_resize(m->storage, size, part, parts, NULL) == MPIOX_OK);
    if (size < m->size)
        memset(m->bytes + size, 0, (size_t)(m->size - size));
    m->size = size;
}

static void reserve(model *m)
{
    const int64_t size = drawn(MODEL_BYTES);
    CHECK(mpiox_storage_reserve(m->storage, size, NULL) == MPIOX_OK);
    m->size = size > m->size ? size : m->size;
}

static void ask_size(model *m)
{
    int64_t bytes = -1;
    CHECK(mpiox_storage_size(m->storage, &bytes, NULL) == MPIOX_OK);
    CHECK_EQUAL(bytes, m->size);
}

static void test_requests(mpiox_storage_kind kind, int32_t count, int64_t unit)
{
    static model m;
    const mpiox_storage_options options = {.kind = kind};
    mpiox_subfiles index;
    const char *why;
    int guard;
    int32_t bad;
    memset(&m, 0, sizeof m);
    CHECK_EQUAL(mpiox_subfiles_create(path, path, count, unit, NULL, &index, &guard), 0);
    CHECK(guard >= 0);
    CHECK(mpiox_storage_container.open(path, O_RDWR, 0, &options, &m.storage, NULL) == MPIOX_OK);
    for (int i = 0; i < 400; i++) {
        static void (*const plain[])(model *) = {write_some, write_some,  read_some, read_some,
                                                 ask_size,   change_size, reserve};
        const int64_t what = drawn(9);
        if (what < 7)
            plain[what](&m);
        else
            use_list(&m, what == 7);
    }
    CHECK(mpiox_storage_sync(m.storage, NULL) == MPIOX_OK);
    CHECK(mpiox_storage_close(m.storage) == MPIOX_OK);
    CHECK_EQUAL(mpiox_subfiles_end(&index, guard, false), 0);
    close(guard);
    CHECK_EQUAL(index.size, m.size);
    mpiox_subfiles_free(&index);
    CHECK_EQUAL(mpiox_subfiles_read(path, &index, &why), 0);
    CHECK_EQUAL(index.size, m.size);
    CHECK_EQUAL(mpiox_subfiles_check(&index, &bad), 0);
    CHECK_EQUAL(mpiox_subfiles_remove(&index), 0);
    mpiox_subfiles_free(&index);
}

/* ---- who writes -------------------------------------------------------------------------------------------------- */

static bool is_whole(void)
{
    mpiox_subfiles index;
    const char *why;
    CHECK_EQUAL(mpiox_subfiles_read(path, &index, &why), 0);
    const bool is = index.size >= 0;
    mpiox_subfiles_free(&index);
    return is;
}

static int begin(mpiox_subfiles *index, int *guard, bool *torn)
{
    const char *why;
    CHECK_EQUAL(mpiox_subfiles_read(path, index, &why), 0);
    *guard = mpiox_subfiles_guard(index, MPIOX_GUARD_SHARED);
    CHECK(*guard >= 0 && mpiox_subfiles_is_current(index, *guard));
    return mpiox_subfiles_begin(index, *guard, torn);
}

static int end(mpiox_subfiles *index, int guard, bool stable)
{
    const int code = mpiox_subfiles_end(index, guard, stable);
    close(guard);
    return code;
}

/* Whole when the last of several writers has ended, in whatever order; not when one has failed; nor while one is. */
static void test_the_last_makes_it_whole(void)
{
    mpiox_subfiles first, second;
    int one, other;
    bool torn = true;
    CHECK_EQUAL(mpiox_subfiles_create(path, path, 3, 10, NULL, &first, &one), 0);
    CHECK_EQUAL(mpiox_subfiles_create(path, path, 3, 10, NULL, &second, &other), EEXIST);
    CHECK(!is_whole());
    CHECK(begin(&second, &other, &torn) == 0 && !torn && second.writers == 2);
    CHECK(end(&first, one, false) == 0 && !is_whole());
    CHECK(end(&second, other, true) == 0 && is_whole());
    mpiox_subfiles_free(&second);
    CHECK(begin(&second, &other, &torn) == 0 && !torn && !is_whole());
    close(other); /* it was killed */
    mpiox_subfiles_free(&first);
    CHECK(begin(&first, &one, &torn) == 0 && torn && !is_whole());
    close(one);
    CHECK_EQUAL(mpiox_subfiles_remove(&second), 0);
    CHECK(access(path, F_OK) != 0 && errno == ENOENT);
    mpiox_subfiles_free(&first);
    mpiox_subfiles_free(&second);
}

/* A writer that was killed counts until somebody who has the file alone empties it. */
static void test_killed_writers(void)
{
    mpiox_subfiles index[3];
    int guard[3];
    bool torn[3] = {false, false, false};
    CHECK_EQUAL(mpiox_subfiles_create(path, path, 3, 10, NULL, &index[0], &guard[0]), 0);
    CHECK(begin(&index[1], &guard[1], &torn[1]) == 0 && begin(&index[2], &guard[2], &torn[2]) == 0);
    close(guard[2]);
    CHECK_EQUAL(mpiox_storage_guard(guard[0], MPIOX_GUARD_LOOK), EAGAIN);
    mpiox_subfiles_emptied(&index[0], guard[0], &torn[0]); /* in vain: another one has it open */
    CHECK(end(&index[0], guard[0], false) == 0 && index[0].writers == 2 && !is_whole());
    CHECK_EQUAL(mpiox_storage_guard(guard[1], MPIOX_GUARD_LOOK), 0);
    mpiox_subfiles_emptied(&index[1], guard[1], &torn[1]);
    CHECK(end(&index[1], guard[1], false) == 0 && is_whole());
    for (int i = 0; i < 3; i++)
        mpiox_subfiles_free(&index[i]);
    CHECK(begin(&index[0], &guard[0], &torn[0]) == 0);
    close(guard[0]);
    CHECK(begin(&index[1], &guard[1], &torn[1]) == 0 && begin(&index[2], &guard[2], &torn[2]) == 0);
    CHECK(torn[1] && !torn[2] && index[2].writers == 2);
    CHECK(end(&index[2], guard[2], false) == 0 && !is_whole());
    mpiox_subfiles_emptied(&index[1], guard[1], &torn[1]);
    CHECK(!torn[1] && end(&index[1], guard[1], false) == 0 && is_whole());
    CHECK_EQUAL(mpiox_subfiles_remove(&index[1]), 0);
    guard[1] = mpiox_subfiles_guard(&index[0], MPIOX_GUARD_READS);
    CHECK_EQUAL(guard[1], -1);
    for (int i = 0; i < 3; i++)
        mpiox_subfiles_free(&index[i]);
}

/* What is wrong with the subfiles of a whole file is found. */
static void test_checks(void)
{
    mpiox_subfiles index;
    mpiox_storage *storage;
    char name[PATH_MAX], other[PATH_MAX + 8];
    int guard;
    int32_t bad = -1;
    CHECK_EQUAL(mpiox_subfiles_create(path, path, 4, 10, NULL, &index, &guard), 0);
    CHECK(mpiox_storage_container.open(path, O_RDWR, 0, NULL, &storage, NULL) == MPIOX_OK);
    CHECK(mpiox_storage_write(storage, "abcde", 5, 95, NULL) == MPIOX_OK);
    CHECK(mpiox_storage_close(storage) == MPIOX_OK);
    CHECK_EQUAL(mpiox_subfiles_end(&index, guard, false), 0);
    close(guard);
    CHECK_EQUAL(index.size, 100);
    CHECK(mpiox_subfiles_path(&index, 2, name, sizeof name));
    CHECK(truncate(name, 19) == 0);
    CHECK_EQUAL(mpiox_subfiles_check(&index, &bad), EBADMSG);
    CHECK_EQUAL(bad, 2);
    snprintf(other, sizeof other, "%s.other", name);
    CHECK(rename(name, other) == 0);
    CHECK_EQUAL(mpiox_subfiles_check(&index, &bad), ENOENT);
    CHECK(symlink(other, name) == 0); /* whose file that is, nobody knows */
    CHECK_EQUAL(mpiox_subfiles_check(&index, &bad), ELOOP);
    CHECK(mpiox_storage_container.open(path, O_RDONLY, 0, NULL, &storage, NULL) == MPIOX_OK);
    char byte;
    int64_t done;
    mpiox_error error;
    CHECK(mpiox_storage_read(storage, &byte, 1, 20, &done, &error) == MPIOX_E_IO && error.sys_errno == ELOOP);
    CHECK(mpiox_storage_close(storage) == MPIOX_OK);
    CHECK(unlink(name) == 0 && unlink(other) == 0);
    CHECK_EQUAL(mpiox_subfiles_remove(&index), 0);
    mpiox_subfiles_free(&index);
}

/* More subfiles than the process may have descriptors. */
static void test_few_descriptors(void)
{
    const struct rlimit few = {40, 40};
    struct rlimit before, soft;
    getrlimit(RLIMIT_NOFILE, &before);
    soft = (struct rlimit){few.rlim_cur, before.rlim_max};
    CHECK(setrlimit(RLIMIT_NOFILE, &soft) == 0);
    test_requests(MPIOX_STORAGE_AUTO, 300, 100);
    CHECK(setrlimit(RLIMIT_NOFILE, &before) == 0);
}

/* Several files together have no more descriptors than one may have, and each goes on. */
static void test_files_share_descriptors(void)
{
    enum { FILES = 6, COUNT = 100, FEW = 120, FIRST_ONES = FILES, GUARDS = FILES };
    mpiox_subfiles index[FILES];
    mpiox_storage *storage[FILES];
    char name[PATH_MAX + 16];
    struct rlimit before;
    int guard[FILES];
    getrlimit(RLIMIT_NOFILE, &before);
    CHECK(setrlimit(RLIMIT_NOFILE, &(struct rlimit){FEW, before.rlim_max}) == 0);
    const int open_before = open_descriptors();
    for (int i = 0; i < FILES; i++) {
        snprintf(name, sizeof name, "%s%d", path, i);
        CHECK_EQUAL(mpiox_subfiles_create(name, name, COUNT, 1, NULL, &index[i], &guard[i]), 0);
        CHECK(mpiox_storage_container.open(name, O_RDWR, 0, NULL, &storage[i], NULL) == MPIOX_OK);
        for (int turn = 0; turn <= i; turn++)
            CHECK(mpiox_storage_write(storage[turn], "0123456789abcdefghij0123456789abcdefghij", 40, 40 * i, NULL) ==
                  MPIOX_OK);
        CHECK(open_descriptors() - open_before <= FEW / 4 + FIRST_ONES + GUARDS);
    }
    for (int i = 0; i < FILES; i++) {
        char back[40];
        int64_t done = 0;
        CHECK(mpiox_storage_read(storage[i], back, 40, 40 * i, &done, NULL) == MPIOX_OK && done == 40);
        CHECK(memcmp(back, "0123456789abcdefghij0123456789abcdefghij", 40) == 0);
        CHECK(mpiox_storage_sync(storage[i], NULL) == MPIOX_OK && mpiox_storage_close(storage[i]) == MPIOX_OK);
        CHECK_EQUAL(mpiox_subfiles_end(&index[i], guard[i], false), 0);
        close(guard[i]);
        CHECK_EQUAL(mpiox_subfiles_remove(&index[i]), 0);
        mpiox_subfiles_free(&index[i]);
    }
    CHECK_EQUAL(open_descriptors(), open_before);
    CHECK(setrlimit(RLIMIT_NOFILE, &before) == 0);
}

/* Of a file that is being made the first subfile is guarded before there is another one: as far as locks reach, nobody
 * takes those for what somebody has left, whatever the clocks say. */
static bool see_guard(int fd, int32_t subfile, bool last, void *context)
{
    char name[40], first[PATH_MAX];
    bool *seen = context;
    (void)last;
    snprintf(name, sizeof name, "/proc/self/fd/%d", fd);
    const ssize_t bytes = readlink(name, first, sizeof first - 1);
    CHECK(bytes > 0);
    first[bytes] = '\0';
    strcpy(strrchr(first, '.'), ".0");
    const int guard = open(first, O_RDWR);
    CHECK(guard >= 0 && subfile < 3);
    seen[subfile] = mpiox_storage_guard(guard, MPIOX_GUARD_LOOK) == EAGAIN;
    close(guard);
    return true;
}

/* Other openers put a new index in the place of the old one again and again; exits. */
static void replace_index(const char *index)
{
    static char text[1 << 16];
    char other[PATH_MAX + 8];
    const int from = open(index, O_RDONLY);
    const ssize_t length = read(from, text, sizeof text);
    close(from);
    snprintf(other, sizeof other, "%s.new", index);
    for (int turn = 0; turn < 5000; turn++) {
        const int to = open(other, O_WRONLY | O_CREAT | O_EXCL, 0600);
        if (write(to, text, (size_t)length) != length || close(to) != 0 || rename(other, index) != 0)
            _exit(1);
    }
    _exit(0);
}

/* An index that is just being replaced is no copy of itself. */
static void test_replaced(void)
{
    mpiox_subfiles index;
    int guard, status = 1, copies = 0;
    CHECK_EQUAL(mpiox_subfiles_create(path, path, 3, 10, NULL, &index, &guard), 0);
    const pid_t child = fork();
    if (child == 0)
        replace_index(index.index);
    while (waitpid(child, &status, WNOHANG) == 0)
        copies += mpiox_subfiles_is_copy(&index);
    CHECK_EQUAL(status, 0);
    CHECK_EQUAL(copies, 0);
    close(guard);
    CHECK_EQUAL(mpiox_subfiles_remove(&index), 0);
    mpiox_subfiles_free(&index);
}

static void test_made(void)
{
    bool seen[3] = {false};
    const mpiox_subfiles_places places = {see_guard, seen};
    mpiox_subfiles index;
    int guard;
    CHECK_EQUAL(mpiox_subfiles_create(path, path, 3, 10, &places, &index, &guard), 0);
    CHECK(!seen[0] && seen[1] && seen[2] && guard >= 0);
    close(guard);
    CHECK_EQUAL(mpiox_subfiles_remove(&index), 0);
    mpiox_subfiles_free(&index);
}

/* Somebody else removes the folder as soon as it is empty: also between it and its first subfile. */
static void test_folder_goes(void)
{
    mpiox_subfiles index;
    char folder[PATH_MAX + 16];
    int guard;
    snprintf(folder, sizeof folder, "%s.subfiles", path);
    const pid_t other = fork();
    while (other == 0) {
        rmdir(folder);
        usleep(500);
    }
    for (int i = 0; i < 2000; i++) {
        const int code = mpiox_subfiles_create(path, path, 1, 10, NULL, &index, &guard);
        CHECK_EQUAL(code, 0);
        if (code != 0)
            break;
        close(guard);
        CHECK_EQUAL(mpiox_subfiles_remove(&index), 0);
        mpiox_subfiles_free(&index);
    }
    CHECK(kill(other, SIGKILL) == 0 && waitpid(other, NULL, 0) == other);
    rmdir(folder);
}

/* A folder that another user has made before, where names can be guessed. */
static void test_folder_of_another_user(void)
{
    enum { NOBODY = 65534, DAEMON = 1 };
    static const struct {
        uid_t caller, owner;
        mode_t parent;
        int code;
    } cases[] = {
        {0, NOBODY, 01777, EPERM},      {0, NOBODY, 0777, 0},      {0, 0, 01777, 0},      {NOBODY, NOBODY, 01777, 0},
        {NOBODY, DAEMON, 01777, EPERM}, {NOBODY, DAEMON, 0777, 0}, {NOBODY, 0, 01777, 0},
    };
    mpiox_subfiles index;
    char folder[PATH_MAX + 16], parent[PATH_MAX];
    int guard;
    snprintf(folder, sizeof folder, "%s.subfiles", path);
    snprintf(parent, sizeof parent, "%.*s", (int)(strrchr(path, '/') - path), path);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        CHECK(mkdir(folder, 0777) == 0 && chmod(folder, 0777) == 0 && chown(folder, cases[i].owner, 0) == 0);
        CHECK(chmod(parent, cases[i].parent) == 0 && seteuid(cases[i].caller) == 0);
        const int code = mpiox_subfiles_create(path, path, 3, 10, NULL, &index, &guard);
        CHECK(seteuid(0) == 0);
        CHECK_EQUAL(code, cases[i].code);
        CHECK((access(path, F_OK) == 0) == (code == 0));
        if (code == 0) {
            close(guard);
            CHECK_EQUAL(mpiox_subfiles_remove(&index), 0);
            mpiox_subfiles_free(&index);
        } else {
            CHECK(rmdir(folder) == 0); /* nothing was made in it */
        }
    }
}

/* An index that was emptied goes with its subfiles, not while they are written, and nothing else goes. */
static void test_emptied(void)
{
    mpiox_subfiles index;
    char folder[PATH_MAX + 16], other[PATH_MAX + 64];
    int guard;
    CHECK(!mpiox_subfiles_drop_emptied(path));
    CHECK_EQUAL(mpiox_subfiles_create(path, path, 3, 10, NULL, &index, &guard), 0);
    CHECK(!mpiox_subfiles_drop_emptied(path)); /* it is not empty */
    CHECK(truncate(path, 0) == 0);
    CHECK(!mpiox_subfiles_drop_emptied(path)); /* it is written */
    close(guard);
    snprintf(folder, sizeof folder, "%s.subfiles", path);
    snprintf(other, sizeof other, "%s/0123456789abcdeg.0", folder);
    close(open(other, O_CREAT | O_WRONLY, 0600));
    CHECK(mpiox_subfiles_drop_emptied(path));
    CHECK(access(path, F_OK) != 0 && access(other, F_OK) == 0 && rmdir(folder) != 0);
    CHECK(unlink(other) == 0 && rmdir(folder) == 0);
    mpiox_subfiles_free(&index);
}

/* Index and folder are renamed past the library: in either order, or one of them alone. */
static void test_renamed(void)
{
    mpiox_subfiles index;
    char folder[PATH_MAX + 16], other[PATH_MAX + 16], other_folder[PATH_MAX + 32], found[PATH_MAX];
    mpiox_error error;
    const char *why;
    int32_t bad;
    int guard;
    bool torn;
    snprintf(folder, sizeof folder, "%s.subfiles", path);
    snprintf(other, sizeof other, "%s renamed", path);
    snprintf(other_folder, sizeof other_folder, "%s.subfiles", other);
    CHECK_EQUAL(mpiox_subfiles_create(path, path, 13, 10, NULL, &index, &guard), 0);
    CHECK_EQUAL(mpiox_subfiles_end(&index, guard, false), 0);
    close(guard);
    mpiox_subfiles_free(&index);
    CHECK(rename(path, other) == 0); /* the index alone: its folder is where it says */
    CHECK_EQUAL(mpiox_subfiles_read(other, &index, &why), 0);
    CHECK_EQUAL(mpiox_subfiles_check(&index, &bad), 0);
    CHECK(mpiox_subfiles_folder(&index, found, sizeof found) && strcmp(found, folder) == 0);
    mpiox_subfiles_free(&index);
    CHECK(mkdir(other_folder, 0700) == 0 && mpiox_subfiles_read(other, &index, &why) == 0);
    CHECK(mpiox_subfiles_check(&index, &bad) == 0 && rmdir(other_folder) == 0); /* nothing is in it */
    mpiox_subfiles_free(&index);
    CHECK(rename(folder, other_folder) == 0); /* both */
    CHECK_EQUAL(mpiox_subfiles_read(other, &index, &why), 0);
    CHECK_EQUAL(mpiox_subfiles_check(&index, &bad), 0);
    CHECK(mpiox_subfiles_folder(&index, found, sizeof found) && strcmp(found, other_folder) == 0);
    guard = mpiox_subfiles_guard(&index, MPIOX_GUARD_SHARED);
    CHECK(mpiox_subfiles_is_current(&index, guard));
    CHECK_EQUAL(mpiox_subfiles_begin(&index, guard, &torn), 0); /* the text says so from now on */
    CHECK_EQUAL(mpiox_subfiles_end(&index, guard, false), 0);
    close(guard);
    mpiox_subfiles_free(&index);
    CHECK(rename(other_folder, folder) == 0); /* the folder alone */
    CHECK_EQUAL(mpiox_subfiles_read(other, &index, &why), 0);
    CHECK_EQUAL(mpiox_subfiles_check(&index, &bad), ENOENT);
    CHECK(!mpiox_subfiles_folder(&index, found, sizeof found) && strcmp(found, other_folder) == 0);
    mpiox_subfiles_free(&index);
    mpiox_error_set(&error, MPIOX_E_IO, ENOENT, -1, -1, "open (its folder x.subfiles is missing)");
    CHECK(strstr(mpiox_error_text(&error, "x", found, sizeof found), "; rename index and folder together") != NULL);
    mpiox_error_set(&error, MPIOX_E_IO, ENOENT, -1, -1, "open");
    CHECK(strstr(mpiox_error_text(&error, "x", found, sizeof found), "; check that the directory exists") != NULL);
    CHECK(rename(other, path) == 0 && mpiox_subfiles_read(path, &index, &why) == 0);
    CHECK_EQUAL(mpiox_subfiles_check(&index, &bad), 0);
    CHECK_EQUAL(mpiox_subfiles_remove(&index), 0);
    CHECK(access(path, F_OK) != 0 && access(folder, F_OK) != 0);
    mpiox_subfiles_free(&index);
}

int main(int argc, char **argv)
{
    static const int64_t units[] = {1, 7, 100, 1000, 4096, 100000};
    snprintf(path, sizeof path, "%s/a %%name\n", argc > 1 ? argv[1] : ".");
    state = (argc > 2 ? strtoull(argv[2], NULL, 10) : 1) * UINT64_C(0x9e3779b97f4a7c15) + 1;
    if (argc > 3) {
        test_folder_of_another_user();
        return check_exit();
    }
    test_mapping();
    for (int i = 0; i < 12; i++)
        test_requests((mpiox_storage_kind)(i % 3), 1 + (int32_t)drawn(12), units[i % 6]);
    test_few_descriptors();
    test_files_share_descriptors();
    test_made();
    test_replaced();
    test_folder_goes();
    test_emptied();
    test_renamed();
    test_the_last_makes_it_whole();
    test_killed_writers();
    test_checks();
    return check_exit();
}
