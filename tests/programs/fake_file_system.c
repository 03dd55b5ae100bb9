/*
 * fake_file_system.c - a preloaded library that makes a folder look like Lustre, CephFS or BeeGFS.
 *
 * Below FAKE_FS_ROOT, FAKE_FS=lustre|ceph|beegfs answers fstatfs, fgetxattr, fsetxattr and ioctl as that file system
 * does; all else is the real one's. A layout is kept in the user attribute user.fake_layout of the real file, so that
 * all processes see it. FAKE_FS_SERVERS: how many there are (4): more stripes than that are not given.
 * FAKE_FS_REFUSE=1: asking for a striping fails. FAKE_FS_HIDE=1: lustre.lov cannot be read. FAKE_FS=gpfs, nfs, fuse:
 * what statfs says alone. FAKE_PROC: a folder whose mountinfo and mountstats stand for those of /proc/self.
 * Libraries of the names that liblustreapi and libgpfs have are made of the same file with -DFAKE_LIBRARY.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/xattr.h>
#include <unistd.h>

#define KEPT "user.fake_layout"
#define SETSTRIPE _IOW('f', 154, long)

typedef struct stripes {
    unsigned pattern, chunk;
    uint16_t targets;
} stripes;
typedef struct target2 {
    uint32_t index, id, primary, secondary, primary_node, secondary_node;
    char alias[256], second[256];
} target2;
typedef struct made {
    const char *name;
    unsigned mode, targets, chunk;
} made;

static int number(const char *name, int otherwise)
{
    const char *text = getenv(name);
    return text != NULL ? atoi(text) : otherwise;
}

static int is(const char *kind)
{
    const char *fs = getenv("FAKE_FS");
    return fs != NULL && strcmp(fs, kind) == 0;
}

static int is_inside(int fd)
{
    const char *root = getenv("FAKE_FS_ROOT");
    char link[64], path[4096];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t bytes = readlink(link, path, sizeof path - 1);
    if (root == NULL || bytes <= 0)
        return 0;
    path[bytes] = '\0';
    return strncmp(path, root, strlen(root)) == 0;
}

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

/* ---- Lustre: a plain v1 layout; objects round robin over the servers ---- */

static long lustre_layout(unsigned size, int count, int first, unsigned char *out)
{
    int servers = number("FAKE_FS_SERVERS", 4);
    memset(out, 0, 65536);
    size = size == 0 ? 1 << 20 : size;
    count = count == 0 ? 1 : count == 0xFFFF || count > servers ? servers : count;
    first = first == 0xFFFF ? 0 : first % servers;
    memcpy(out, "\xd0\x0b\xd1\x0b\x01", 5);
    memcpy(out + 24, &size, 4);
    memcpy(out + 28, &count, 2);
    for (int i = 0; i < count; i++)
        out[32 + 24 * i + 20] = (unsigned char)((first + i) % servers);
    return 32 + 24L * count;
}

static int set_lustre(int fd, const unsigned char *wish)
{
    static unsigned char value[65536];
    unsigned size;
    uint16_t count, first;
    if (memcmp(wish, "\xd0\x0b\xd1\x0b", 4) != 0 || number("FAKE_FS_REFUSE", 0)) {
        errno = EINVAL;
        return -1;
    }
    memcpy(&size, wish + 24, 4);
    memcpy(&count, wish + 28, 2);
    memcpy(&first, wish + 30, 2);
    long bytes = lustre_layout(size, count, first, value);
    if (REAL(fsetxattr)(fd, KEPT, value, (size_t)bytes, XATTR_CREATE) != 0)
        errno = errno == EEXIST ? EEXIST : EIO;
    else
        return 0;
    return -1;
}

static ssize_t get_lustre(int fd, void *value, size_t size)
{
    static unsigned char made_up[65536];
    struct stat status;
    ssize_t bytes = REAL(fgetxattr)(fd, KEPT, value, size);
    if (bytes >= 0)
        return bytes;
    if (fstat(fd, &status) != 0 || S_ISDIR(status.st_mode)) {
        errno = ENODATA;
        return -1;
    }
    bytes = lustre_layout(0, 0, 0xFFFF, made_up);
    memcpy(value, made_up, (size_t)bytes <= size ? (size_t)bytes : size);
    return bytes;
}

/* ---- the calls ---- */

static long magic(long real)
{
    static const struct {
        const char *kind;
        long magic;
    } kinds[] = {{"lustre", 0x0BD00BD0}, {"ceph", 0x00C36400}, {"beegfs", 0x19830326},
                 {"gpfs", 0x47504653},   {"nfs", 0x6969},      {"fuse", 0x65735546}};
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        if (is(kinds[i].kind))
            return kinds[i].magic;
    }
    return real;
}

int open(const char *path, int flags, ...)
{
    const char *folder = getenv("FAKE_PROC");
    char other[4096];
    va_list arguments;
    va_start(arguments, flags);
    mode_t mode = (flags & (O_CREAT | O_TMPFILE)) != 0 ? va_arg(arguments, mode_t) : 0;
    va_end(arguments);
    if (folder != NULL && strncmp(path, "/proc/self/mount", 16) == 0) {
        snprintf(other, sizeof other, "%s/%s", folder, path + 11);
        path = other;
    }
    return REAL(open)(path, flags, mode);
}

int fstatfs(int fd, struct statfs *status)
{
    int rc = REAL(fstatfs)(fd, status);
    if (rc == 0 && is_inside(fd))
        status->f_type = magic(status->f_type);
    return rc;
}

ssize_t fgetxattr(int fd, const char *name, void *value, size_t size)
{
    static const char usual[] = "stripe_unit=4194304 stripe_count=1 object_size=4194304 pool=cephfs_data";
    if (!is_inside(fd) || strncmp(name, "user.", 5) == 0)
        return REAL(fgetxattr)(fd, name, value, size);
    if (is("lustre") && strcmp(name, "lustre.lov") == 0 && !number("FAKE_FS_HIDE", 0))
        return get_lustre(fd, value, size);
    if (is("ceph") && strcmp(name, "ceph.file.layout") == 0) {
        ssize_t bytes = REAL(fgetxattr)(fd, KEPT, value, size);
        if (bytes >= 0 || size < sizeof usual)
            return bytes;
        memcpy(value, usual, sizeof usual - 1);
        return sizeof usual - 1;
    }
    errno = ENODATA;
    return -1;
}

int fsetxattr(int fd, const char *name, const void *value, size_t size, int flags)
{
    struct stat status;
    if (!is_inside(fd) || !is("ceph") || strcmp(name, "ceph.file.layout") != 0)
        return REAL(fsetxattr)(fd, name, value, size, flags);
    if (number("FAKE_FS_REFUSE", 0) || fstat(fd, &status) != 0 || status.st_size != 0) {
        errno = EPERM;
        return -1;
    }
    return REAL(fsetxattr)(fd, KEPT, value, size, 0);
}

static int make_beegfs(int folder, const made *wish)
{
    int servers = number("FAKE_FS_SERVERS", 4);
    stripes found = {1, wish->chunk, (uint16_t)((int)wish->targets > servers ? servers : (int)wish->targets)};
    found.targets = found.targets == 0 ? 1 : found.targets; /* as its folder says */
    found.chunk = found.chunk == 0 ? 524288 : found.chunk;
    if (number("FAKE_FS_REFUSE", 0) || (wish->chunk & (wish->chunk - 1)) != 0) {
        errno = EINVAL;
        return -1;
    }
    int fd = openat(folder, wish->name, O_CREAT | O_EXCL | O_RDWR, wish->mode);
    if (fd < 0)
        return -1;
    int rc = REAL(fsetxattr)(fd, KEPT, &found, sizeof found, 0);
    close(fd);
    return rc;
}

static int ask_beegfs(int fd, unsigned long request, void *argument)
{
    if (request == _IOW('f', 27, made))
        return make_beegfs(fd, argument);
    if (request == _IOR('f', 25, stripes)) {
        if (REAL(fgetxattr)(fd, KEPT, argument, sizeof(stripes)) != (ssize_t)sizeof(stripes))
            *(stripes *)argument = (stripes){1, 524288, 1};
        return 0;
    }
    if (request == _IOR('f', 26, target2)) {
        target2 *target = argument;
        target->id = 101 + target->index;
        strcpy(target->alias, "storage01");
        return 0;
    }
    errno = ENOTTY;
    return -1;
}

/* dfuse, replies of version 7: an object of the class FAKE_DAOS_CLASS (upper half of its id, hexadecimal), chunks of
 * 1 MiB; FAKE_DAOS_BYTES: how long its global form is. */
static int ask_dfuse(unsigned number_of, unsigned long bytes, unsigned char *reply)
{
    const char *class = getenv("FAKE_DAOS_CLASS");
    const uint64_t id[2] = {4711, strtoull(class != NULL ? class : "0", NULL, 16)}, chunk = 1 << 20;
    const size_t global = (size_t)number("FAKE_DAOS_BYTES", 344);
    memset(reply, 0, bytes);
    if (number_of == 0xC6 && bytes == global) {
        memcpy(reply + 16, id, sizeof id);
        memcpy(reply + (global == 344 ? 48 : 64), &chunk, sizeof chunk);
        return 0;
    }
    reply[0] = 7;
    if (number_of == 0xC8) {
        memcpy(reply + 8, &global, sizeof global);
    } else {
        memcpy(reply + 8, id, sizeof id);
        memset(reply + 24, 0x11, 16);
        memset(reply + 40, 0x22, 16);
    }
    return 0;
}

int ioctl(int fd, unsigned long request, ...)
{
    va_list arguments;
    va_start(arguments, request);
    void *argument = va_arg(arguments, void *);
    va_end(arguments);
    if (is("fuse") && (request >> 8 & 0xff) == 0xA3 && is_inside(fd))
        return ask_dfuse(request & 0xff, request >> 16 & 0x3fff, argument);
    if (is("lustre") && request == SETSTRIPE && is_inside(fd))
        return set_lustre(fd, argument);
    if (is("beegfs") && (request >> 8 & 0xff) == 'f' && (request & 0xff) >= 25 && (request & 0xff) <= 27 &&
        is_inside(fd))
        return ask_beegfs(fd, request, argument);
    return REAL(ioctl)(fd, request, argument);
}

#ifdef FAKE_LIBRARY
/* Replication has ten numbers behind the head of four, a pool two and a name. */
int gpfs_fcntl(int fd, void *argument);
int gpfs_fcntl(int fd, void *argument)
{
    int *words = argument;
    if (!is_inside(fd) || words[1] != 1 || words[4] + 16 != words[0])
        return -1;
    if (words[5] == 3002)
        strcpy((char *)(words + 6), "fastpool");
    else if (words[5] == 3001)
        words[8] = 2;
    return 0;
}

int llapi_file_get_stripe(const char *path, void *layout);
int llapi_file_get_stripe(const char *path, void *layout)
{
    strcpy(layout, strrchr(path, '/') + 1); /* as the real one does */
    return getxattr(path, KEPT, layout, 65536) > 0 ? 0 : -errno;
}
#endif
