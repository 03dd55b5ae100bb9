/*
 * kernel.h - what the programs of the diagnosis corpus have in common.
 */
#ifndef DIAGNOSIS_KERNEL_H
#define DIAGNOSIS_KERNEL_H

#include <fcntl.h>
#include <mpi.h>
#include <sys/types.h>

enum { KIB = 1 << 10, MIB = 1 << 20, PATH_BYTES = 1024, NAME_BYTES = PATH_BYTES + 64, DATA_BYTES = 16 * MIB };
enum { CREATE = MPI_MODE_CREATE | MPI_MODE_RDWR };
enum { INPUT_MIB = 64 };

/* A program: its name, and what each rank does. */
struct kind {
    const char *name;
    void (*run)(void);
};

/* Each up to the one without a name. */
extern const struct kind known_kinds[], held_kinds[], later_kinds[], last_kinds[], fresh_kinds[], second_kinds[],
    third_kinds[];

extern int rank, ranks, size;
extern char folder[PATH_BYTES - 64]; /* of all files */
extern char path[PATH_BYTES];        /* of the file that the program writes */
extern char input[PATH_BYTES];       /* of a file of INPUT_MIB that is there before */
extern char *data;                   /* DATA_BYTES */

/* End the job where `failed`. */
void check(int failed, const char *what);

/* Write `bytes` at `offset`. */
void put(int file, size_t bytes, off_t offset);

/* Read `bytes` at `offset`. */
void get(int file, size_t bytes, off_t offset);

/* Open a file by POSIX. */
int open_posix(const char *name, int flags);

/* Open `path` with hints: "key value" pairs up to NULL. */
MPI_File open_shared(int mode, const char *const *hints);

/* Open a file with hints, by all ranks. */
MPI_File open_together(const char *name, int mode, const char *const *hints);

/* See pieces of `bytes`, one of `stride` bytes, from the rank's first one on. */
void view_pieces(MPI_File file, int bytes, int stride, int count);

#endif
