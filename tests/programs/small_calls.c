/*
 * small_calls.c - writes and reads of one size, in order, at random, or of several files in turn.
 *
 * small_calls FILE BYTES CALLS ORDER: CALLS writes and as many reads; ORDER is o (in order), r (random), f (four files
 * in turn). With -DNOTHING a library to be preloaded, whose functions return at once.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#ifdef NOTHING

ssize_t pwrite(int fd, const void *data, size_t bytes, off_t at)
{
    return fd >= 0 && data && at >= 0 ? (ssize_t)bytes : -1;
}

ssize_t pread(int fd, void *data, size_t bytes, off_t at)
{
    return fd >= 0 && data && at >= 0 ? (ssize_t)bytes : -1;
}

#else

enum { FILES = 4, PLACES = 1024 };

int main(int argc, char **argv)
{
    if (argc != 5)
        return 2;
    const long bytes = atol(argv[2]), calls = atol(argv[3]);
    const int random = argv[4][0] == 'r', files = argv[4][0] == 'f' ? FILES : 1;
    char *buffer = calloc(1, (size_t)bytes), name[4096];
    int fd[FILES];
    unsigned drawn = 1;

    for (int i = 0; i < files; i++) {
        snprintf(name, sizeof name, "%s.%d", argv[1], i);
        fd[i] = open(name, O_CREAT | O_RDWR | O_TRUNC, 0600);
        for (long k = 0; k < PLACES; k++)
            if (pwrite(fd[i], buffer, (size_t)bytes, k * bytes) != bytes)
                return 1;
    }
    for (int reads = 0; reads < 2; reads++)
        for (long i = 0; i < calls; i++) {
            drawn = drawn * 1664525 + 1013904223;
            const off_t at = (random ? (drawn >> 8) % PLACES : i % PLACES) * bytes;
            const ssize_t n = reads ? pread(fd[i % files], buffer, (size_t)bytes, at)
                                    : pwrite(fd[i % files], buffer, (size_t)bytes, at);
            if (n != bytes)
                return 1;
        }
    return 0;
}

#endif
