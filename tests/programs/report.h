/*
 * report.h - what several test programs share: named checks that all ranks agree on, and file content by position.
 *
 * Rank 0 prints "ok NAME" or "FAILED NAME (ranks: ...)"; `failures` is the program's exit status.
 */
#ifndef REPORT_H
#define REPORT_H

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

static int rank, ranks, failures;

/* One write for the whole line: what launchers pass on in pieces is cut by the lines of other ranks. */
static inline void print_check(const char *name, const int *all, int bad)
{
    char line[1024];
    int length = snprintf(line, sizeof line, "%s %s", bad ? "FAILED" : "ok", name);

    for (int i = 0; bad && i < ranks && length < (int)sizeof line - 16; i++) {
        if (!all[i])
            length += snprintf(line + length, sizeof line - (size_t)length, " %d", i);
    }
    if (length > (int)sizeof line - 2)
        length = (int)sizeof line - 2;
    line[length++] = '\n';
    fflush(stdout);
    for (int done = 0; done < length;) {
        const ssize_t now = write(STDOUT_FILENO, line + done, (size_t)(length - done));

        if (now <= 0)
            break;
        done += (int)now;
    }
}

static inline void check(const char *name, int fine)
{
    int *all = malloc((size_t)ranks * sizeof *all), bad = 0;

    MPI_Gather(&fine, 1, MPI_INT, all, 1, MPI_INT, 0, MPI_COMM_WORLD);
    for (int i = 0; rank == 0 && i < ranks; i++)
        bad += !all[i];
    if (rank == 0)
        print_check(name, all, bad);
    failures += bad > 0;
    free(all);
}

/* The byte that belongs to a position of a file; `seed` tells files and versions apart. Never 0. */
static inline unsigned char byte_at(long long position, int seed)
{
    unsigned long long mixed = ((unsigned long long)position + 1) * 0x9E3779B97F4A7C15ull + (unsigned)seed * 7919u;

    return (unsigned char)(1 + (mixed >> 40) % 255);
}

static inline void fill_from(unsigned char *buffer, long long position, int bytes, int seed)
{
    for (int i = 0; i < bytes; i++)
        buffer[i] = byte_at(position + i, seed);
}

static inline int equals_from(const unsigned char *buffer, long long position, int bytes, int seed)
{
    for (int i = 0; i < bytes; i++) {
        if (buffer[i] != byte_at(position + i, seed))
            return 0;
    }
    return 1;
}

/* Does the file, read without MPI, hold exactly `bytes` bytes of byte_at()? Call on one rank, after a barrier. */
static inline int file_is(const char *path, long long bytes, int seed)
{
    FILE *file = fopen(path, "rb");
    long long at = 0;
    int c, fine = file != NULL;

    while (fine && (c = getc(file)) != EOF)
        fine = at < bytes && c == byte_at(at, seed), at++;
    if (file != NULL)
        fclose(file);
    return fine && at == bytes;
}

/* After everybody has closed the file: rank 0 looks at it. */
static inline void check_file(const char *name, const char *path, long long bytes, int seed)
{
    MPI_Barrier(MPI_COMM_WORLD);
    check(name, rank != 0 || file_is(path, bytes, seed));
}

static inline int class_of(int code)
{
    int error_class = MPI_SUCCESS;

    if (code != MPI_SUCCESS)
        MPI_Error_class(code, &error_class);
    return error_class;
}

static inline const char *class_name(int error_class)
{
    static const struct {
        int error_class;
        const char *name;
    } names[] = {
        {MPI_SUCCESS, "SUCCESS"},
        {MPI_ERR_ACCESS, "ACCESS"},
        {MPI_ERR_AMODE, "AMODE"},
        {MPI_ERR_ARG, "ARG"},
        {MPI_ERR_BAD_FILE, "BAD_FILE"},
        {MPI_ERR_BUFFER, "BUFFER"},
        {MPI_ERR_COMM, "COMM"},
        {MPI_ERR_COUNT, "COUNT"},
        {MPI_ERR_FILE, "FILE"},
        {MPI_ERR_FILE_EXISTS, "FILE_EXISTS"},
        {MPI_ERR_FILE_IN_USE, "FILE_IN_USE"},
        {MPI_ERR_IO, "IO"},
        {MPI_ERR_NOT_SAME, "NOT_SAME"},
        {MPI_ERR_NO_MEM, "NO_MEM"},
        {MPI_ERR_NO_SPACE, "NO_SPACE"},
        {MPI_ERR_NO_SUCH_FILE, "NO_SUCH_FILE"},
        {MPI_ERR_OTHER, "OTHER"},
        {MPI_ERR_QUOTA, "QUOTA"},
        {MPI_ERR_READ_ONLY, "READ_ONLY"},
        {MPI_ERR_TYPE, "TYPE"},
        {MPI_ERR_UNSUPPORTED_DATAREP, "UNSUPPORTED_DATAREP"},
        {MPI_ERR_UNSUPPORTED_OPERATION, "UNSUPPORTED_OPERATION"},
    };

    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (names[i].error_class == error_class)
            return names[i].name;
    }
    return "UNNAMED";
}

#endif
