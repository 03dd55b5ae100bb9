/* mpiox_cache_kept.c - see mpiox_cache_kept.h. */
#include "mpiox_cache_kept.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "mpiox_cache.h"
#include "mpiox_segment_guard.h"

static bool is_own(int fd, struct stat *status)
{
    return fstat(fd, status) == 0 && S_ISREG(status->st_mode) && status->st_uid == geteuid() && status->st_nlink == 1 &&
           (status->st_mode & (S_IRWXG | S_IRWXO)) == 0 && status->st_size >= (off_t)sizeof(mpiox_cache_header);
}

/* Files of which it still holds bytes. */
static int tell_failures(const mpiox_cache *cache, mpiox_cache_tell tell, void *context)
{
    mpiox_error error;
    int count = 0;
    for (int32_t i = 0; i < MPIOX_CACHE_MAX_FILES; i++) {
        if (!mpiox_cache_find_error(cache, i, 0, INT64_MAX, &error))
            continue;
        tell(context, cache->header->files[i].path, error.sys_errno);
        count++;
    }
    return count;
}

/* Who is killed leaves marks of it in the cache, but for a node that goes down with all of them. */
static bool is_of_an_earlier_boot(const mpiox_cache_header *header)
{
    struct timespec now, up;
    clock_gettime(CLOCK_REALTIME, &now);
    clock_gettime(CLOCK_BOOTTIME, &up);
    return header->started < (double)(now.tv_sec - up.tv_sec - 1);
}

int64_t mpiox_cache_recover_kept(const char *path, bool all_are_gone, mpiox_cache_tell tell, void *context)
{
    const int fd = open(path, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    struct stat status;
    mpiox_cache cache;
    int64_t bytes = MPIOX_E_CORRUPT;
    if (fd < 0)
        return MPIOX_E_IO;
    void *base = is_own(fd, &status) ? mmap(NULL, (size_t)status.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0)
                                     : MAP_FAILED;
    if (base == MAP_FAILED) {
        close(fd);
        return MPIOX_E_IO;
    }
    if (mpiox_cache_attach(base, (int64_t)status.st_size, &cache) == MPIOX_OK) {
        mpiox_cache_guard(&cache, fd);
        bytes = mpiox_cache_recover(&cache, all_are_gone);
    }
    if (bytes == -1)
        bytes = is_of_an_earlier_boot(cache.header) ? MPIOX_E_STOPPED : MPIOX_E_UNSUPPORTED;
    if (bytes >= 0 && tell_failures(&cache, tell, context) == 0 && !mpiox_cache_has_copies(&cache))
        unlink(path);
    mpiox_segment_unguard(base);
    munmap(base, (size_t)status.st_size);
    close(fd);
    return bytes;
}

static void recover_folder(const char *name, const char *own, mpiox_cache_tell tell)
{
    static const char prefix[] = "mpiox.";
    DIR *folder = opendir(name);
    const struct dirent *entry;
    char path[MPIOX_CACHE_PATH_BYTES];
    while (folder != NULL && (entry = readdir(folder)) != NULL) {
        if (strncmp(entry->d_name, prefix, sizeof prefix - 1) == 0 &&
            (size_t)snprintf(path, sizeof path, "%s/%s", name, entry->d_name) < sizeof path && strcmp(path, own) != 0)
            (void)mpiox_cache_recover_kept(path, false, tell, path);
    }
    if (folder != NULL)
        closedir(folder);
}

static void tell_nothing(void *context, const char *file, int sys_errno)
{
    (void)context;
    (void)file;
    (void)sys_errno;
}

/* Twice: what a cache has copies of may be in a later one. */
void mpiox_cache_recover_all(const char *folders, const char *own, mpiox_cache_tell tell)
{
    for (int round = 0; round < 2; round++) {
        char list[MPIOX_CACHE_PATH_BYTES], *rest = list;
        snprintf(list, sizeof list, "%s", folders);
        for (const char *name = strtok_r(rest, ",;", &rest); name != NULL; name = strtok_r(NULL, ",;", &rest))
            recover_folder(name, own, round == 0 ? tell : tell_nothing);
    }
}
