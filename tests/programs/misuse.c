/*
 * misuse.c - a program with one error in it, each of which a tool must find: the control of the sanitizer tests.
 *
 * usage: misuse FILE none | overrun | race | uninitialised | leak
 *   overrun        writes more than its buffer holds
 *   race           two threads read into one buffer, by handles of their own
 *   uninitialised  writes bytes that were never set
 *   leak           forgets a datatype's worth of memory
 */
#include <pthread.h>

#include "report.h"

enum { BYTES = 10000 };

static MPI_File file;
static unsigned char *buffer;

static void *read_all_of_it(void *argument)
{
    MPI_File *own = argument;

    for (int i = 0; i < 1000; i++)
        MPI_File_read_at(*own, 0, buffer, BYTES, MPI_BYTE, MPI_STATUS_IGNORE);
    return NULL;
}

static void race(const char *path)
{
    pthread_t threads[2];
    MPI_File own[2];

    for (int i = 0; i < 2; i++)
        MPI_File_open(MPI_COMM_SELF, path, MPI_MODE_RDONLY, MPI_INFO_NULL, &own[i]);
    for (int i = 0; i < 2; i++) {
        if (pthread_create(&threads[i], NULL, read_all_of_it, &own[i]) != 0)
            MPI_Abort(MPI_COMM_WORLD, 4);
    }
    for (int i = 0; i < 2; i++) {
        pthread_join(threads[i], NULL);
        MPI_File_close(&own[i]);
    }
}

int main(int argc, char **argv)
{
    const char *what = argv[2];
    int threads;

    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &threads);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (argc != 3 || MPI_File_open(MPI_COMM_WORLD, argv[1], MPI_MODE_RDWR | MPI_MODE_CREATE, MPI_INFO_NULL, &file))
        MPI_Abort(MPI_COMM_WORLD, 3);
    buffer = malloc(BYTES);
    if (strcmp(what, "uninitialised") != 0)
        memset(buffer, 1, BYTES);
    if (strcmp(what, "uninitialised") == 0) /* alone: in a collective another process may do the writing */
        MPI_File_write_at(file, (MPI_Offset)rank * 2 * BYTES, buffer, BYTES, MPI_BYTE, MPI_STATUS_IGNORE);
    else
        MPI_File_write_at_all(file, (MPI_Offset)rank * 2 * BYTES, buffer,
                              strcmp(what, "overrun") == 0 ? 2 * BYTES : BYTES, MPI_BYTE, MPI_STATUS_IGNORE);
    if (strcmp(what, "race") == 0)
        race(argv[1]);
    free(buffer);
    buffer = strcmp(what, "leak") == 0 ? malloc(BYTES) : NULL;
    check("written", buffer == NULL || buffer != (unsigned char *)argv);
    buffer = NULL;
    MPI_File_close(&file);
    MPI_Finalize();
    return 0;
}
