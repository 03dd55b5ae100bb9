/* mpiox_trace_error_classes.h - the error classes of MPI by name: their numbers differ between MPI libraries. */
#ifndef MPIOX_TRACE_ERROR_CLASSES_H
#define MPIOX_TRACE_ERROR_CLASSES_H

#define MPIOX_TRACE_ERROR_CLASSES(X)                                                                                   \
    X(MPI_ERR_ACCESS)                                                                                                  \
    X(MPI_ERR_AMODE)                                                                                                   \
    X(MPI_ERR_ARG)                                                                                                     \
    X(MPI_ERR_BAD_FILE)                                                                                                \
    X(MPI_ERR_BUFFER)                                                                                                  \
    X(MPI_ERR_COMM)                                                                                                    \
    X(MPI_ERR_CONVERSION)                                                                                              \
    X(MPI_ERR_COUNT)                                                                                                   \
    X(MPI_ERR_DUP_DATAREP)                                                                                             \
    X(MPI_ERR_FILE)                                                                                                    \
    X(MPI_ERR_FILE_EXISTS)                                                                                             \
    X(MPI_ERR_FILE_IN_USE)                                                                                             \
    X(MPI_ERR_IN_STATUS)                                                                                               \
    X(MPI_ERR_INFO)                                                                                                    \
    X(MPI_ERR_INTERN)                                                                                                  \
    X(MPI_ERR_IO)                                                                                                      \
    X(MPI_ERR_NO_MEM)                                                                                                  \
    X(MPI_ERR_NO_SPACE)                                                                                                \
    X(MPI_ERR_NO_SUCH_FILE)                                                                                            \
    X(MPI_ERR_NOT_SAME)                                                                                                \
    X(MPI_ERR_OTHER)                                                                                                   \
    X(MPI_ERR_QUOTA)                                                                                                   \
    X(MPI_ERR_READ_ONLY)                                                                                               \
    X(MPI_ERR_REQUEST)                                                                                                 \
    X(MPI_ERR_TRUNCATE)                                                                                                \
    X(MPI_ERR_TYPE)                                                                                                    \
    X(MPI_ERR_UNKNOWN)                                                                                                 \
    X(MPI_ERR_UNSUPPORTED_DATAREP)                                                                                     \
    X(MPI_ERR_UNSUPPORTED_OPERATION)

/* How a record names them; 0 is none of these. */
enum {
    MPIOX_TRACE_CLASS_NONE,
#define MPIOX_TRACE_CLASS_NUMBER(name) MPIOX_TRACE_CLASS_##name,
    MPIOX_TRACE_ERROR_CLASSES(MPIOX_TRACE_CLASS_NUMBER) MPIOX_TRACE_CLASSES
};

#endif
