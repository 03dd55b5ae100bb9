/*
 * mpiox_rawtrace_call.h - the meaning of the arguments of a call: from their text to the columns of a row.
 *
 * Problem.   Tracers print arguments by position or by name; which one is the offset depends on the function.
 * Algorithm. The reader describes functions by signatures, one word an argument ("handle,-,size,offset"). Words that
 *            are columns fill them, "-" is left out, every other word is a key of the JSON object `extra`. For
 *            functions without signature `extra` has the text of their arguments.
 * Guarantee. Nothing is guessed: an argument that is no number leaves its column null and is stored in `extra`.
 *
 * Names.     A relative name is joined to its directory: that of openat, else the working folder of the call's thread.
 *            strace -y prints the latter beside AT_FDCWD and for a new descriptor, and chdir changes it. So one file
 *            has one name, whatever call it is an argument of. Before the folder is known names stay relative.
 *
 * Words: file, file2 (the other name of a call with two, a key of `extra`), to_dir (the folder of that one), handle,
 * handle_address (the variable of a handle), size, offset, unit (size is a product). count (as unit, and stored),
 * datatype (as unit if the handle has it, and stored), etype (stored, with its size), iov (size is the sum of iov_len),
 * dir (of openat), "..." (all further arguments). "=handle" at the end: the function returns a new handle.
 */
#ifndef MPIOX_RAWTRACE_CALL_H
#define MPIOX_RAWTRACE_CALL_H

#include "mpiox_rawtrace_json.h"
#include "mpiox_rawtrace_rows.h"

enum { MPIOX_RAWTRACE_WORDS = 16 };

enum mpiox_rawtrace_word_kind {
    MPIOX_RAWTRACE_KEY, /* of extra */
    MPIOX_RAWTRACE_LEFT_OUT,
    MPIOX_RAWTRACE_FILE,
    MPIOX_RAWTRACE_SECOND,
    MPIOX_RAWTRACE_HANDLE,
    MPIOX_RAWTRACE_VARIABLE,
    MPIOX_RAWTRACE_DIRECTORY,
    MPIOX_RAWTRACE_SIZE,
    MPIOX_RAWTRACE_OFFSET,
    MPIOX_RAWTRACE_UNIT,
    MPIOX_RAWTRACE_IOV,
    MPIOX_RAWTRACE_DATATYPE,
    MPIOX_RAWTRACE_ETYPE,
    MPIOX_RAWTRACE_COUNT,
    MPIOX_RAWTRACE_REST
};

typedef struct mpiox_rawtrace_word {
    char *text; /* the word as described; owned */
    int kind;   /* MPIOX_RAWTRACE_* */
} mpiox_rawtrace_word;

/* A function: what it is called in the table, who offers it, and its words. */
typedef struct mpiox_rawtrace_function {
    int32_t operation, layer;                       /* number of its name in rows; MPIOX_LAYER_* */
    int words;                                      /* -1: no signature */
    bool returns_handle;                            /* its result is a handle */
    bool raw;                                       /* a system call as the kernel returns: -errno */
    bool makes;                                     /* a thread or a process */
    bool moves;                                     /* chdir: its file is the working folder from now on */
    mpiox_rawtrace_word word[MPIOX_RAWTRACE_WORDS]; /* the first `words` */
} mpiox_rawtrace_function;

typedef struct mpiox_rawtrace_constant {
    char *key, *text; /* its key in `extra`; its name; owned */
    int64_t value;    /* the number */
    int64_t bytes;    /* of an element of a datatype; 0: not known */
} mpiox_rawtrace_constant;

typedef struct mpiox_rawtrace_calls {
    mpiox_rawtrace_names described, seen;            /* names as described; names as they stand in the trace */
    mpiox_rawtrace_function *by_described, *by_seen; /* by number in `described`; in `seen` */
    int64_t described_capacity, seen_capacity;       /* room in these arrays */
    mpiox_rawtrace_constant *constants;              /* [constant_count]; owned */
    int64_t constant_count;                          /* constants */
    mpiox_rawtrace_buffer extra, text, joined;       /* scratch */
    bool any_case;                                   /* names are those of calls, whatever their case: "Fread" */
    int32_t folder; /* working folder of the present thread: number of its name + 1, 0: not known; a call may show it */
} mpiox_rawtrace_calls;

/* An argument, or a result. */
typedef struct mpiox_rawtrace_span {
    const char *start, *end;
} mpiox_rawtrace_span;

void mpiox_rawtrace_calls_free(mpiox_rawtrace_calls *calls);

/* Describe a function; layer: MPIOX_LAYER_*. MPIOX_E_ARG: too many words. */
int mpiox_rawtrace_calls_describe(mpiox_rawtrace_calls *calls, mpiox_rawtrace_names *operations, const char *name,
                                  const char *operation, int layer, const char *signature);
/* A number that `extra` has by name, of one key; of a datatype with the bytes of an element, 0: not known. */
int mpiox_rawtrace_calls_constant(mpiox_rawtrace_calls *calls, const char *key, int64_t value, const char *text,
                                  int64_t element_bytes);

/* The function of a name as it stands in the trace, with SYS_, @SYS or 64; NULL: memory is exhausted. */
const mpiox_rawtrace_function *mpiox_rawtrace_calls_find(mpiox_rawtrace_calls *calls, mpiox_rawtrace_names *operations,
                                                         const char *name, int64_t bytes);

/* Fill a row from the arguments [p, end) of strace or ltrace. `extra` of calls grows. MPIOX_E_NOMEM. */
int mpiox_rawtrace_calls_fill(mpiox_rawtrace_calls *calls, const mpiox_rawtrace_function *function,
                              mpiox_rawtrace_names *files, mpiox_rawtrace_row *row, const char *p, const char *end);

/* The row's call has ended without an error, and its new descriptor belongs to the file [p, end): its name if the row's
 * is relative or cut; it shows the working folder, too. MPIOX_E_NOMEM. */
int mpiox_rawtrace_calls_opened(mpiox_rawtrace_calls *calls, mpiox_rawtrace_names *files, mpiox_rawtrace_row *row,
                                const char *p, const char *end);

/* A key of `extra` with a number of the trace, by its name if it has one. */
void mpiox_rawtrace_calls_extra(mpiox_rawtrace_calls *calls, const char *key, const char *p, const char *end);

/* Whether a byte of a list of arguments begins nothing: most do, and are passed over quickly. */
static inline bool mpiox_rawtrace_is_plain(char byte)
{
    static const bool special[256] = {['"'] = true, ['\''] = true, ['/'] = true, ['<'] = true,
                                      [','] = true, ['('] = true,  [')'] = true, ['['] = true,
                                      [']'] = true, ['{'] = true,  ['}'] = true};
    return !special[(unsigned char)byte];
}

/* Behind the part at p of a list of arguments: a string, a comment, what stands in <> or a single byte; NULL: the line
 * ends inside. */
const char *mpiox_rawtrace_skip_part(const char *start, const char *p, const char *end);

static inline const char *mpiox_rawtrace_skip_blanks(const char *p, const char *end)
{
    while (p < end && (*p == ' ' || *p == '\t'))
        p++;
    return p;
}

#endif
