/*
 * wheel_smoke.c - a collective round trip by a program that knows nothing of the library (scripts/test_mpis.py); with
 * an argument also an open that must fail, and what is told of it.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { COUNT = 64 };

/* The class must be right. The text is the library's own, or, where MPI cannot tell that, the class's and no other. */
static int wrong_error(void)
{
    char text[MPI_MAX_ERROR_STRING], general[MPI_MAX_ERROR_STRING];
    int error_class = MPI_SUCCESS, length;
    MPI_File file;
    const int code = MPI_File_open(MPI_COMM_WORLD, "/nowhere/x", MPI_MODE_RDONLY, MPI_INFO_NULL, &file);

    MPI_Error_class(code, &error_class);
    MPI_Error_string(code, text, &length);
    MPI_Error_string(error_class, general, &length);
    printf("error: %s\n", text);
    return error_class != MPI_ERR_NO_SUCH_FILE ||
           (strstr(text, "of /nowhere/x failed") == NULL && strcmp(text, general) != 0);
}

int main(int argc, char **argv)
{
    const char *const path = "wheel_smoke.out";
    int rank, size, written[COUNT], read[COUNT], wrong = 0, all_wrong = 0;
    MPI_Datatype vector, view;
    MPI_File file;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Type_vector(COUNT, 1, size, MPI_INT, &vector);
    MPI_Type_create_resized(vector, 0, COUNT * size * (int)sizeof(int), &view);
    MPI_Type_commit(&view);
    for (int i = 0; i < COUNT; i++) {
        written[i] = i * size + rank;
        read[i] = -1;
    }
    if (MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file) != MPI_SUCCESS)
        MPI_Abort(MPI_COMM_WORLD, EXIT_FAILURE);
    MPI_File_set_view(file, rank * (int)sizeof(int), MPI_INT, view, "native", MPI_INFO_NULL);
    MPI_File_write_all(file, written, COUNT, MPI_INT, MPI_STATUS_IGNORE);
    MPI_File_seek(file, 0, MPI_SEEK_SET);
    MPI_File_read_all(file, read, COUNT, MPI_INT, MPI_STATUS_IGNORE);
    MPI_File_close(&file);
    for (int i = 0; i < COUNT; i++)
        wrong += read[i] != written[i];
    if (argc > 1)
        wrong += wrong_error();
    MPI_Allreduce(&wrong, &all_wrong, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (rank == 0) {
        MPI_File_delete(path, MPI_INFO_NULL);
        printf("smoke: %s\n", all_wrong == 0 ? "ok" : "WRONG");
    }
    MPI_Type_free(&vector);
    MPI_Type_free(&view);
    MPI_Finalize();
    return all_wrong == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
