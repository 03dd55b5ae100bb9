/*
 * mpiox_file_path.c - see mpiox_file_path.h. Only known prefixes are cut off: a ':' is legal in file names.
 */
#include "mpiox_file_path.h"

#include <stddef.h>
#include <string.h>
#include <strings.h>

static const struct {
    const char *prefix;
    bool posix;
} prefixes[] = {
    {"ufs:", true},    {"nfs:", true},     {"xfs:", true},      {"lustre:", true},  {"gpfs:", true},
    {"panfs:", true},  {"quobyte:", true}, {"ime:", false},     {"pvfs:", false},   {"pvfs2:", false},
    {"daos:", false},  {"testfs:", false}, {"gridftp:", false}, {"gsiftp:", false}, {"ftp:", false},
};

static int find(const char *filename)
{
    for (int i = 0; i < (int)(sizeof prefixes / sizeof prefixes[0]); i++) {
        if (strncasecmp(filename, prefixes[i].prefix, strlen(prefixes[i].prefix)) == 0)
            return i;
    }
    return -1;
}

const char *mpiox_file_path(const char *filename)
{
    int index = find(filename);

    return index < 0 ? filename : filename + strlen(prefixes[index].prefix);
}

bool mpiox_file_path_is_posix(const char *filename)
{
    int index = find(filename);

    return index < 0 || prefixes[index].posix;
}
