/* mpiox_cache_family.c - see mpiox_cache_family.h. */
#include "mpiox_cache_family.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "mpiox_segment_guard.h"
#include "mpiox_integer.h"

enum { SECOND_NS = 1000000000 };

/* ---- caches ------------------------------------------------------------------------------------------------------ */

static bool is_own(int fd, struct stat *status)
{
    return fstat(fd, status) == 0 && S_ISREG(status->st_mode) && status->st_uid == geteuid() && status->st_nlink == 1 &&
           (status->st_mode & (S_IRWXG | S_IRWXO)) == 0 && status->st_size >= (off_t)sizeof(mpiox_cache_header);
}

int mpiox_cache_member_open(const char *path, mpiox_cache_member *out)
{
    const int fd = open(path, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    struct stat status;
    if (fd < 0)
        return MPIOX_E_IO;
    void *base = is_own(fd, &status) ? mmap(NULL, (size_t)status.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0)
                                     : MAP_FAILED;
    if (base == MAP_FAILED) {
        close(fd);
        return MPIOX_E_IO;
    }
    *out = (mpiox_cache_member){.base = base, .bytes = (size_t)status.st_size, .fd = fd};
    if (mpiox_cache_attach(base, (int64_t)status.st_size, &out->cache) != MPIOX_OK) {
        munmap(base, out->bytes);
        close(fd);
        return MPIOX_E_CORRUPT;
    }
    mpiox_cache_guard(&out->cache, fd);
    return MPIOX_OK;
}

void mpiox_cache_member_close(mpiox_cache_member *member)
{
    mpiox_segment_unguard(member->base);
    munmap(member->base, member->bytes);
    close(member->fd);
}

static bool is_same_file(int a, int b)
{
    struct stat x, y;
    return fstat(a, &x) == 0 && fstat(b, &y) == 0 && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

static bool is_known(const mpiox_cache_family *family, const mpiox_cache_member *member)
{
    for (int32_t i = 0; i < family->count; i++) {
        if (is_same_file(family->members[i].fd, member->fd))
            return true;
    }
    return false;
}

static bool is_of_family(const mpiox_cache_family *family, const mpiox_cache_member *member)
{
    const mpiox_cache_header *own = family->members[0].cache.header, *other = member->cache.header;
    return own->service[0] != '\0' && strncmp(own->service, other->service, sizeof own->service) == 0 &&
           own->delegates == other->delegates;
}

/* Those of a folder. What there is no memory for, or cannot be used, is left out. */
static void add_folder(mpiox_cache_family *family, const char *name)
{
    static const char prefix[] = "mpiox.";
    DIR *folder = opendir(name);
    const struct dirent *entry;
    char path[MPIOX_CACHE_PATH_BYTES];
    while (folder != NULL && (entry = readdir(folder)) != NULL) {
        mpiox_cache_member member, *more;
        if (strncmp(entry->d_name, prefix, sizeof prefix - 1) != 0 ||
            (size_t)snprintf(path, sizeof path, "%s/%s", name, entry->d_name) >= sizeof path ||
            mpiox_cache_member_open(path, &member) != MPIOX_OK)
            continue;
        more = is_of_family(family, &member) && !is_known(family, &member)
                   ? realloc(family->members, (size_t)(family->count + 1) * sizeof *more)
                   : NULL;
        if (more == NULL) {
            mpiox_cache_member_close(&member);
            continue;
        }
        family->members = more;
        family->members[family->count++] = member;
    }
    if (folder != NULL)
        closedir(folder);
}

/* When all caches are found once, each records it: the others may be gone at its recovery. */
static void settle_complete(mpiox_cache_family *family)
{
    const mpiox_cache_header *own = family->members[0].cache.header;
    family->complete = atomic_load(&own->together) != 0 || family->count >= own->delegates;
    if (!family->complete || mpiox_cache_is_serving(&family->members[0].cache, true))
        return;
    for (int32_t i = 0; i < family->count; i++)
        atomic_store(&family->members[i].cache.header->together, 1);
}

int mpiox_cache_family_open(const char *path, const char *folders, mpiox_cache_family *out)
{
    char list[MPIOX_CACHE_PATH_BYTES], *rest = list;
    const char *slash = strrchr(path, '/');
    *out = (mpiox_cache_family){.members = malloc(sizeof *out->members)};
    if (out->members == NULL)
        return MPIOX_E_NOMEM;
    const int code = mpiox_cache_member_open(path, out->members);
    if (code != MPIOX_OK) {
        free(out->members);
        return code;
    }
    out->count = 1;
    if ((size_t)snprintf(list, sizeof list, "%.*s", slash != NULL ? (int)(slash - path) : 1,
                         slash != NULL ? path : ".") < sizeof list)
        add_folder(out, list);
    snprintf(list, sizeof list, "%s", folders != NULL ? folders : "");
    for (const char *name = strtok_r(rest, ",;", &rest); name != NULL; name = strtok_r(NULL, ",;", &rest))
        add_folder(out, name);
    settle_complete(out);
    return MPIOX_OK;
}

void mpiox_cache_family_close(mpiox_cache_family *family)
{
    for (int32_t i = 0; i < family->count; i++)
        mpiox_cache_member_close(&family->members[i]);
    free(family->members);
    *family = (mpiox_cache_family){.members = NULL};
}

/* ---- files ------------------------------------------------------------------------------------------------------- */

/* The record of the same file in a member, from number `next` on; NULL: there are no more. A closed one counts, too. */
static mpiox_file_record *same_file(const mpiox_cache_member *member, const mpiox_file_record *record, int32_t *next)
{
    mpiox_file_record *files = member->cache.header->files;
    while (*next < MPIOX_CACHE_MAX_FILES) {
        mpiox_file_record *at = &files[(*next)++];
        if (at->inode == record->inode && at->device == record->device &&
            !(atomic_load(&at->flags) & MPIOX_FILE_REPLICA))
            return at;
    }
    return NULL;
}

static int64_t alive_ns(const mpiox_cache_family *family)
{
    int64_t alive = 0;
    for (int32_t i = 0; i < family->count; i++)
        alive = mpiox_max(alive, atomic_load(&family->members[i].cache.header->alive_ns));
    return alive;
}

bool mpiox_cache_family_is_changed(const mpiox_cache_family *family, const mpiox_file_record *record,
                                   const struct stat *status)
{
    const int64_t changed = mpiox_cache_changed_ns(status);
    int64_t seen = 0, bytes = -1, begun = 0;
    bool others = !family->complete;
    for (int32_t i = 0; i < family->count; i++) {
        const mpiox_file_record *at;
        for (int32_t next = 0; (at = same_file(&family->members[i], record, &next)) != NULL;) {
            const int64_t then = atomic_load(&at->seen_ns);
            bytes = then > seen ? atomic_load(&at->seen_bytes)
                                : (then == seen ? mpiox_max(bytes, atomic_load(&at->seen_bytes)) : bytes);
            seen = mpiox_max(seen, then);
            begun = mpiox_max(begun, atomic_load(&at->begun_ns));
            others |= (atomic_load(&at->flags) & MPIOX_FILE_PAST) != 0;
        }
    }
    if (changed < seen || (changed == seen && (int64_t)status->st_size == bytes) ||
        (begun > 0 && changed <= begun + MPIOX_CACHE_SLACK_NS))
        return false;
    return !others || changed > alive_ns(family) + MPIOX_CACHE_SLACK_NS;
}

void mpiox_cache_family_begin_write(const mpiox_cache_family *family, const mpiox_file_record *record)
{
    for (int32_t i = 0; i < family->count; i++) {
        mpiox_file_record *at;
        for (int32_t next = 0; (at = same_file(&family->members[i], record, &next)) != NULL;)
            mpiox_cache_begin_write(at);
    }
}

static struct timespec time_of(int64_t ns)
{
    return (struct timespec){.tv_sec = (time_t)(ns / SECOND_NS), .tv_nsec = (long)(ns % SECOND_NS)};
}

void mpiox_cache_family_end_write(const mpiox_cache_family *family, const mpiox_file_record *record, int fd,
                                  int64_t found_ns)
{
    const struct timespec times[2] = {{.tv_nsec = UTIME_OMIT}, time_of(mpiox_max(found_ns, alive_ns(family)))};
    struct stat status;
    if (!family->complete)
        (void)futimens(fd, times); /* where it is another user's file, it is refused on the other nodes */
    if (fstat(fd, &status) != 0)
        return;
    for (int32_t i = 0; i < family->count; i++) {
        mpiox_file_record *at;
        for (int32_t next = 0; (at = same_file(&family->members[i], record, &next)) != NULL;)
            mpiox_cache_see(at, &status, atomic_load(&at->begun_ns));
    }
}
