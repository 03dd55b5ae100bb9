/*
 * strangers.h - what the files of this folder share. They are one program of many cases, each of which does something
 * that MPI or POSIX allows and that hardly anybody who writes an MPI library thinks of.
 *
 * A case is run by all ranks and judges itself: whatever is not as it should be is said with differs(), and rank 0
 * prints one line, "NAME: ok" or "NAME: rank R: WHAT".
 */
#ifndef STRANGERS_H
#define STRANGERS_H

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct stranger {
    const char *name;
    int least_ranks;
    void (*run)(void);
} stranger;

enum { PATH_BYTES = 512 };

extern int rank, ranks;
extern const stranger types_cases[], files_cases[], handlers_cases[], requests_cases[], process_cases[];
extern char folder[PATH_BYTES]; /* absolute; the files of the cases lie in it */

/* The first of a case's differences on this rank is kept. */
__attribute__((format(printf, 1, 2))) void differs(const char *format, ...);
#define EXPECT(condition)                                                                                              \
    do {                                                                                                               \
        if (!(condition))                                                                                              \
            differs("%s:%d: not so: %s", __FILE_NAME__, __LINE__, #condition);                                         \
    } while (0)
#define FINE(call) EXPECT((call) == MPI_SUCCESS)

#ifndef __FILE_NAME__
#define __FILE_NAME__ "strangers"
#endif

/* The path of a file of this case. */
const char *path_of(const char *name, char path[PATH_BYTES]);
/* Rank 0 deletes the file without MPI; collective. */
void start_anew(const char *path);
/* Errors of files are returned, not fatal: MPI's default, set again where a case has changed it. */
MPI_File open_file(MPI_Comm comm, const char *path, int amode);
enum { AMODE_NEW = MPI_MODE_RDWR | MPI_MODE_CREATE };

/* The byte that belongs to a position of a file; `seed` tells files and versions apart. Never 0. */
unsigned char byte_at(long long position, int seed);
void fill_from(unsigned char *buffer, long long position, int bytes, int seed);
/* Does the file, read without MPI, hold `bytes` bytes of byte_at() from position `from` on? */
int file_holds(const char *path, long long from, long long bytes, int seed);
long long file_bytes(const char *path); /* -1: it is not there */
/* Collective: after a barrier rank 0 looks at the file from its start, and at its size. */
void expect_file(const char *path, long long bytes, int seed);
/* The status says `bytes`. */
int moved(const MPI_Status *status, int bytes);

/* A view of blocks that the ranks of the file have in turns; all the same to write or read `turns` blocks a rank. */
MPI_Datatype turns_type(int block, int in_turn);
void fill_turns(unsigned char *buffer, int block, int turns, int place, int in_turn, int seed);
/* Write by `turns` blocks through the view that is in force and check nothing but the call. */
void write_turns(MPI_File file, int block, int turns, int place, int in_turn, int seed);
int class_of(int code);
/* Lines of this process's memory map that name anonymous shared memory. */
long shared_mappings(void);

#endif
