/*
 * errors.c - one erroneous call, and what every rank is told.
 *
 * usage: errors CASE FILE      prints "RANK CLASS TEXT" for every rank on rank 0, then "end": the file could be closed.
 * Cases in which one rank alone is wrong end with "_one": the others must get the error too, and nobody may hang.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TEXT_BYTES 1100

static int rank, ranks;
static char block[1 << 20];

static const char *class_name(int code)
{
    static const struct {
        int error_class;
        const char *name;
    } names[] = {
        {MPI_SUCCESS, "SUCCESS"},
        {MPI_ERR_COUNT, "COUNT"},
        {MPI_ERR_TYPE, "TYPE"},
        {MPI_ERR_ARG, "ARG"},
        {MPI_ERR_BUFFER, "BUFFER"},
        {MPI_ERR_IO, "IO"},
        {MPI_ERR_OTHER, "OTHER"},
        {MPI_ERR_ACCESS, "ACCESS"},
        {MPI_ERR_READ_ONLY, "READ_ONLY"},
        {MPI_ERR_NO_SPACE, "NO_SPACE"},
        {MPI_ERR_QUOTA, "QUOTA"},
        {MPI_ERR_NO_SUCH_FILE, "NO_SUCH_FILE"},
        {MPI_ERR_BAD_FILE, "BAD_FILE"},
        {MPI_ERR_FILE, "FILE"},
        {MPI_ERR_NO_MEM, "NO_MEM"},
        {MPI_ERR_AMODE, "AMODE"},
        {MPI_ERR_UNSUPPORTED_OPERATION, "UNSUPPORTED_OPERATION"},
    };
    int error_class = MPI_SUCCESS;

    if (code != MPI_SUCCESS)
        MPI_Error_class(code, &error_class);
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (names[i].error_class == error_class)
            return names[i].name;
    }
    return "UNNAMED";
}

/* Rank 0 prints what every rank got. */
static void report(int code)
{
    char line[TEXT_BYTES] = "", text[MPI_MAX_ERROR_STRING] = "", *all = NULL;
    int length = 0;

    if (code != MPI_SUCCESS)
        MPI_Error_string(code, text, &length);
    for (char *p = text; *p != '\0'; p++) {
        if (*p == '\n')
            *p = ' ';
    }
    snprintf(line, sizeof line, "%d %s %s", rank, class_name(code), text);
    all = malloc((size_t)ranks * TEXT_BYTES);
    MPI_Gather(line, TEXT_BYTES, MPI_CHAR, all, TEXT_BYTES, MPI_CHAR, 0, MPI_COMM_WORLD);
    for (int i = 0; rank == 0 && i < ranks; i++)
        puts(all + (size_t)i * TEXT_BYTES);
    free(all);
}

static int fill(MPI_File file)
{
    int code = MPI_SUCCESS;

    for (int i = 0; i < 32 && code == MPI_SUCCESS; i++)
        code = MPI_File_write_at_all(file, ((MPI_Offset)i * ranks + rank) * (MPI_Offset)sizeof block, block,
                                     (int)sizeof block, MPI_BYTE, MPI_STATUS_IGNORE);
    return code;
}

static int provoke(const char *name, MPI_File file)
{
    int mine = strstr(name, "_one") == NULL || rank == ranks - 1;

    if (strncmp(name, "count", 5) == 0)
        return MPI_File_write_at_all(file, 0, block, mine ? -1 : 1, MPI_BYTE, MPI_STATUS_IGNORE);
    if (strncmp(name, "offset", 6) == 0)
        return MPI_File_write_at_all(file, mine ? -1 : 0, block, 1, MPI_BYTE, MPI_STATUS_IGNORE);
    if (strncmp(name, "type", 4) == 0)
        return MPI_File_read_at_all(file, 0, block, 1, mine ? MPI_DATATYPE_NULL : MPI_BYTE, MPI_STATUS_IGNORE);
    if (strncmp(name, "uncommitted", 11) == 0) {
        MPI_Datatype raw;
        int code;

        MPI_Type_vector(2, 1, 2, MPI_BYTE, &raw);
        if (!mine)
            MPI_Type_commit(&raw);
        code = MPI_File_write_at_all(file, 0, block, 1, raw, MPI_STATUS_IGNORE);
        MPI_Type_free(&raw);
        return code;
    }
    if (strcmp(name, "split") == 0) {
        int code = MPI_File_write_at_all_begin(file, 0, block, 1, MPI_BYTE);

        if (code == MPI_SUCCESS)
            code = MPI_File_write_at_all_begin(file, 0, block, 1, MPI_BYTE);
        MPI_File_write_at_all_end(file, block, MPI_STATUS_IGNORE);
        return code;
    }
    if (strcmp(name, "rdonly") == 0)
        return MPI_File_write_at_all(file, 0, block, 1, MPI_BYTE, MPI_STATUS_IGNORE);
    if (strcmp(name, "wronly") == 0)
        return MPI_File_read_at_all(file, 0, block, 1, MPI_BYTE, MPI_STATUS_IGNORE);
    if (strcmp(name, "full") == 0)
        return fill(file);
    return MPI_SUCCESS;
}

int main(int argc, char **argv)
{
    MPI_File file;
    int amode = MPI_MODE_RDWR | MPI_MODE_CREATE, code;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (argc != 3)
        MPI_Abort(MPI_COMM_WORLD, 2);
    if (strcmp(argv[1], "rdonly") == 0)
        amode = MPI_MODE_RDONLY;
    else if (strcmp(argv[1], "wronly") == 0)
        amode = MPI_MODE_WRONLY;
    else if (strcmp(argv[1], "missing") == 0)
        amode = MPI_MODE_RDWR;
    code = MPI_File_open(MPI_COMM_WORLD, argv[2], amode, MPI_INFO_NULL, &file);
    if (code != MPI_SUCCESS) {
        report(code);
    } else {
        report(provoke(argv[1], file));
        code = MPI_File_write_at_all(file, 0, block, 1, MPI_BYTE, MPI_STATUS_IGNORE); /* still usable? */
        if (amode & MPI_MODE_RDWR && strcmp(argv[1], "full") != 0 && rank == 0)
            puts(code == MPI_SUCCESS ? "usable" : "broken");
        MPI_File_close(&file);
    }
    if (rank == 0)
        puts("end");
    MPI_Finalize();
    return 0;
}
