/* mpiox_cache_kept.c - see mpiox_cache_kept.h. */
#include "mpiox_cache_kept.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "mpiox_cache.h"
#include "mpiox_cache_family.h"
#include "mpiox_cache_hidden.h"

enum { SECOND_NS = 1000000000, WHY_BYTES = 2 * MPIOX_CACHE_PATH_BYTES + 256, TIME_BYTES = 40 };

/* Of this node's clock. */
static const char *time_text(int64_t ns, char text[TIME_BYTES])
{
    const time_t seconds = (time_t)(ns / SECOND_NS);
    struct tm parts;
    char day[TIME_BYTES / 2];
    if (localtime_r(&seconds, &parts) == NULL || strftime(day, sizeof day, "%F %T", &parts) == 0)
        day[0] = '\0';
    snprintf(text, TIME_BYTES, "%s.%03d", day, (int)(ns % SECOND_NS / 1000000));
    return text;
}

static void explain(const mpiox_file_record *record, const mpiox_error *error, char why[WHY_BYTES])
{
    char before[TIME_BYTES], since[TIME_BYTES];
    struct stat status;
    if (strcmp(error->what, MPIOX_CACHE_CHANGED) == 0 && lstat(record->path, &status) == 0)
        snprintf(why, WHY_BYTES, "was written by another process on %s, later than by its job (%s)",
                 time_text(mpiox_cache_changed_ns(&status), since), time_text(atomic_load(&record->seen_ns), before));
    else if (strncmp(error->what, MPIOX_CACHE_RESCUE, sizeof MPIOX_CACHE_RESCUE - 1) != 0)
        snprintf(why, WHY_BYTES, "has lost bytes that its I/O delegate could not write: %s",
                 strerror(error->sys_errno));
    else if (error->sys_errno == ESTALE)
        snprintf(why, WHY_BYTES, "cannot be written: another file has its name now");
    else
        snprintf(why, WHY_BYTES, "cannot be written: %s", strerror(error->sys_errno));
}

/* Report files of which the cache still has bytes. */
static int report_failures(const mpiox_cache *cache, mpiox_cache_reporter report, void *context)
{
    char file[MPIOX_CACHE_PATH_BYTES], why[WHY_BYTES];
    mpiox_error error;
    int count = 0;
    for (int32_t i = 0; i < MPIOX_CACHE_MAX_FILES; i++) {
        const mpiox_file_record *record = &cache->header->files[i];
        mpiox_cache_left left = {.file = mpiox_cache_shown_name(record->path, file, sizeof file), .why = why};
        if (mpiox_cache_find_error(cache, i, 0, INT64_MAX, &error)) {
            explain(record, &error, why);
            left.sys_errno = error.sys_errno;
            left.changed = strcmp(error.what, MPIOX_CACHE_CHANGED) == 0;
            count++;
        } else if (atomic_load(&record->openers) > 0 && mpiox_cache_is_clash(atomic_load(&record->drain_errno))) {
            mpiox_cache_clash_text(record->path, atomic_load(&record->drain_errno), why, sizeof why);
            left.whole = true;
        } else {
            continue;
        }
        report(context, &left);
    }
    return count;
}

/* Files that had been closed. */
static uint64_t closed_files(const mpiox_cache *cache)
{
    char own[MPIOX_CACHE_PATH_BYTES];
    uint64_t closed = 0;
    for (int32_t i = 0; i < MPIOX_CACHE_MAX_FILES; i++) {
        const mpiox_file_record *record = &cache->header->files[i];
        const int32_t flags = atomic_load(&record->flags) & (MPIOX_FILE_DRAINING | MPIOX_FILE_REPLICA);
        if (atomic_load(&record->openers) > 0 && flags == MPIOX_FILE_DRAINING &&
            mpiox_cache_own_name(record->path, own, sizeof own))
            closed |= UINT64_C(1) << i;
    }
    return closed;
}
_Static_assert(MPIOX_CACHE_MAX_FILES <= 64, "a bit for each");

/* Of these, all that was here is in them, and they have not got their names. */
static void report_waiting(const mpiox_cache *cache, uint64_t closed, mpiox_cache_reporter report, void *context)
{
    char file[MPIOX_CACHE_PATH_BYTES], why[WHY_BYTES];
    for (int32_t i = 0; i < MPIOX_CACHE_MAX_FILES; i++) {
        const mpiox_file_record *record = &cache->header->files[i];
        mpiox_cache_left left = {.why = why, .whole = true, .waits = true};
        if (!(closed >> i & 1) || mpiox_cache_error_count(cache, i) > 0 ||
            mpiox_cache_is_clash(atomic_load(&record->drain_errno)) || !mpiox_cache_is_hidden(record))
            continue;
        left.file = mpiox_cache_shown_name(record->path, file, sizeof file);
        snprintf(why, sizeof why,
                 "is incomplete and keeps the name %s: another I/O delegate of its job has bytes of it; recover that "
                 "delegate's cache, too, on its node",
                 record->path);
        report(context, &left);
    }
}

/* Was the node restarted since? Processes that are killed leave marks in the cache, but not if the node fails with all
 * of them. */
static bool is_of_an_earlier_boot(const mpiox_cache_header *header)
{
    struct timespec now, up;
    clock_gettime(CLOCK_REALTIME, &now);
    clock_gettime(CLOCK_BOOTTIME, &up);
    return header->started < (double)(now.tv_sec - up.tv_sec - 1);
}

int64_t mpiox_cache_recover_kept(const char *path, const mpiox_cache_recovering *how, mpiox_cache_reporter report,
                                 void *context)
{
    mpiox_cache_family family;
    const int code = mpiox_cache_family_open(path, how->folders, &family);
    if (code != MPIOX_OK)
        return code;
    const mpiox_cache *cache = &family.members[0].cache;
    const uint64_t closed = how->all_are_gone ? closed_files(cache) : 0;
    int64_t bytes = mpiox_cache_recover(cache, how->all_are_gone, how->force, &family);
    if (bytes == -1)
        bytes = is_of_an_earlier_boot(cache->header) ? MPIOX_E_STOPPED : MPIOX_E_UNSUPPORTED;
    if (bytes >= 0 && report_failures(cache, report, context) == 0 && !mpiox_cache_has_copies(cache))
        unlink(path);
    if (bytes >= 0)
        report_waiting(cache, closed, report, context);
    mpiox_cache_family_close(&family);
    return bytes;
}

static void recover_folder(const char *name, const char *own, const char *folders, mpiox_cache_reporter report)
{
    static const char prefix[] = "mpiox.";
    const mpiox_cache_recovering how = {.folders = folders};
    DIR *folder = opendir(name);
    const struct dirent *entry;
    char path[MPIOX_CACHE_PATH_BYTES];
    while (folder != NULL && (entry = readdir(folder)) != NULL) {
        if (strncmp(entry->d_name, prefix, sizeof prefix - 1) == 0 &&
            (size_t)snprintf(path, sizeof path, "%s/%s", name, entry->d_name) < sizeof path && strcmp(path, own) != 0)
            (void)mpiox_cache_recover_kept(path, &how, report, path);
    }
    if (folder != NULL)
        closedir(folder);
}

static void report_nothing(void *context, const mpiox_cache_left *left)
{
    (void)context;
    (void)left;
}

/* Twice: the originals of a cache's copies may be in a later one. */
void mpiox_cache_recover_all(const char *folders, const char *own, mpiox_cache_reporter report)
{
    for (int round = 0; round < 2; round++) {
        char list[MPIOX_CACHE_PATH_BYTES], *rest = list;
        snprintf(list, sizeof list, "%s", folders);
        for (const char *name = strtok_r(rest, ",;", &rest); name != NULL; name = strtok_r(NULL, ",;", &rest))
            recover_folder(name, own, folders, round == 0 ? report : report_nothing);
    }
}
