/*
 * around_limits_calls.h - every data access of MPI-IO behind one function, once for each form of the count.
 *
 * Included by around_limits.c with FORM(name), the name of a function in that form, and NUMBER, the type of its count.
 */
#define PICK(WRITE, READ, ...) (a->write ? FORM(MPI_File_##WRITE)(__VA_ARGS__) : FORM(MPI_File_##READ)(__VA_ARGS__))
#define END(WRITE, READ)                                                                                               \
    (code != MPI_SUCCESS ? code                                                                                        \
     : a->write          ? MPI_File_##WRITE(a->file, a->data, a->status)                                               \
                         : MPI_File_##READ(a->file, a->data, a->status))

static int FORM(access_by)(const call *a)
{
    const NUMBER n = (NUMBER)a->count;
    MPI_Request request;
    int code;

    switch (a->way) {
    case AT:
        return PICK(write_at, read_at, a->file, a->at, a->data, n, a->type, a->status);
    case AT_ALL:
        return PICK(write_at_all, read_at_all, a->file, a->at, a->data, n, a->type, a->status);
    case POINTER:
        return PICK(write, read, a->file, a->data, n, a->type, a->status);
    case POINTER_ALL:
        return PICK(write_all, read_all, a->file, a->data, n, a->type, a->status);
    case SHARED:
        return PICK(write_shared, read_shared, a->file, a->data, n, a->type, a->status);
    case ORDERED:
        return PICK(write_ordered, read_ordered, a->file, a->data, n, a->type, a->status);
    case AT_ALL_SPLIT:
        code = PICK(write_at_all_begin, read_at_all_begin, a->file, a->at, a->data, n, a->type);
        return END(write_at_all_end, read_at_all_end);
    case POINTER_SPLIT:
        code = PICK(write_all_begin, read_all_begin, a->file, a->data, n, a->type);
        return END(write_all_end, read_all_end);
    case ORDERED_SPLIT:
        code = PICK(write_ordered_begin, read_ordered_begin, a->file, a->data, n, a->type);
        return END(write_ordered_end, read_ordered_end);
    case LATER_AT:
        code = PICK(iwrite_at, iread_at, a->file, a->at, a->data, n, a->type, &request);
        break;
    case LATER_AT_ALL:
        code = PICK(iwrite_at_all, iread_at_all, a->file, a->at, a->data, n, a->type, &request);
        break;
    case LATER:
        code = PICK(iwrite, iread, a->file, a->data, n, a->type, &request);
        break;
    case LATER_ALL:
        code = PICK(iwrite_all, iread_all, a->file, a->data, n, a->type, &request);
        break;
    default:
        code = PICK(iwrite_shared, iread_shared, a->file, a->data, n, a->type, &request);
        break;
    }
    return code != MPI_SUCCESS ? code : MPI_Wait(&request, a->status);
}

#undef PICK
#undef END
#undef FORM
#undef NUMBER
