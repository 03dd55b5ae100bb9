/*
 * leaving.c - programs that end in a way of their own. usage: leaving FOLDER HOW
 *
 *   atexit     MPI_Finalize is called by an exit handler, after main() has returned with a request under way
 *   destructor the same by a destructor of the program
 *   exit       a rank calls exit() with files open, without MPI_Finalize, in a job of one rank
 *   handler    an error handler ends the job in order: closes the file, calls MPI_Finalize and exit()
 *   thread     a thread that is not the main one calls MPI_Finalize and exit()
 */
#include <mpi.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BYTES = 200 * 1024 };

static int rank, late;
static char path[600];
static unsigned char *buffer;
static MPI_File file = MPI_FILE_NULL;
static MPI_Request request = MPI_REQUEST_NULL;

static void end(void)
{
    int flag = 0;

    MPI_Finalized(&flag);
    if (flag)
        return;
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    if (file != MPI_FILE_NULL)
        MPI_File_close(&file);
    MPI_Finalize();
}

__attribute__((destructor)) static void destroy(void)
{
    if (late)
        end();
}

static void end_in_handler(MPI_File *failed, int *code, ...)
{
    (void)code;
    MPI_File_write_at_all(*failed, (MPI_Offset)rank * BYTES, buffer, BYTES, MPI_BYTE, MPI_STATUS_IGNORE);
    file = *failed;
    end();
    exit(0);
}

static void *end_in_thread(void *unused)
{
    (void)unused;
    end();
    exit(0);
}

int main(int argc, char **argv)
{
    const char *how = argc == 3 ? argv[2] : "";
    MPI_Errhandler handler;
    pthread_t thread;
    int level;

    MPI_Init_thread(&argc, &argv, MPI_THREAD_SERIALIZED, &level);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    snprintf(path, sizeof path, "%s/leaving", argv[1]);
    buffer = malloc(BYTES);
    memset(buffer, 'a' + rank, BYTES);
    if (MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file))
        MPI_Abort(MPI_COMM_WORLD, 3);
    if (strcmp(how, "exit") == 0) {
        MPI_File_write_at_all(file, (MPI_Offset)rank * BYTES, buffer, BYTES, MPI_BYTE, MPI_STATUS_IGNORE);
        exit(0);
    }
    if (strcmp(how, "handler") == 0) {
        MPI_File_create_errhandler(end_in_handler, &handler);
        MPI_File_set_errhandler(file, handler);
        MPI_File_write_at_all(file, 0, buffer, -1, MPI_BYTE, MPI_STATUS_IGNORE);
        return 4;
    }
    MPI_File_iwrite_at(file, (MPI_Offset)rank * BYTES, buffer, BYTES, MPI_BYTE, &request);
    if (strcmp(how, "atexit") == 0)
        atexit(end);
    else if (strcmp(how, "destructor") == 0)
        late = 1;
    else if (pthread_create(&thread, NULL, end_in_thread, NULL) == 0)
        pthread_join(thread, NULL);
    return 0;
}
