/*
 * error_codes.c - codes of errors under an MPI library that does not store the texts of added codes (as MPICH 4.0).
 *
 * The two calls of PMPI here take the place of the MPI library's, whatever library that is: in turn they do as it does,
 * return another text for an added code, and return another class, as MPICH 4.0 for a code with the bit of added ones.
 */
#include <errno.h>
#include <mpi.h>
#include <string.h>

#include "check.h"
#include "mpiox_handle.h"
#include "mpiox_mpi_error.h"

enum { LAST_CLASS = 92 }; /* every predefined class of Open MPI and of MPICH is at most this, added codes are more */

static enum { AS_IT_IS, OTHER_TEXT, OTHER_CLASS } library = AS_IT_IS;

int PMPI_Error_string(int code, char *text, int *length)
{
    const int result = MPI_Error_string(code, text, length);
    if (library == OTHER_TEXT && code > LAST_CLASS)
        *length = snprintf(text, MPI_MAX_ERROR_STRING, "Network type AF_INET invalid in call to inet_pton");
    return result;
}

int PMPI_Error_class(int code, int *error_class)
{
    const int result = MPI_Error_class(code, error_class);
    if (library == OTHER_CLASS && code > LAST_CLASS)
        *error_class |= 0x40000000;
    return result;
}

mpiox_handle *mpiox_handle_find(MPI_File fh) /* no file is open here */
{
    (void)fh;
    return NULL;
}

static int code_of(int sys_errno)
{
    mpiox_error error;
    mpiox_error_set(&error, MPIOX_E_IO, sys_errno, -1, -1, "open");
    return mpiox_mpi_error_code("/nowhere/x", &error);
}

int main(int argc, char **argv)
{
    static const int errnos[] = {ENOENT, EACCES, ENOSPC, EIO};
    static const int expected[] = {MPI_ERR_NO_SUCH_FILE, MPI_ERR_ACCESS, MPI_ERR_NO_SPACE, MPI_ERR_IO};
    char text[MPI_MAX_ERROR_STRING];
    int error_class, length;

    MPI_Init(&argc, &argv);
    for (int turn = 0; turn < 6; turn++) /* more than there are codes of a class */
        for (int i = 0; i < 4; i++) {
            library = turn % 3 == 0 ? AS_IT_IS : turn % 3 == 1 ? OTHER_TEXT : OTHER_CLASS;
            const int code = code_of(errnos[i]);
            CHECK((code == expected[i]) == (library != AS_IT_IS));
            library = AS_IT_IS;
            MPI_Error_class(code, &error_class);
            CHECK_EQUAL(error_class, expected[i]);
            MPI_Error_string(code, text, &length);
            CHECK((strstr(text, "open of /nowhere/x failed") != NULL) == (code != expected[i]));
        }
    MPI_Finalize();
    return check_exit();
}
