/*
 * fuzz_rawtrace.c - libFuzzer harness of the parsers of raw traces: no bytes make them read or write where they must
 * not, every line is a row, part of one, known to be no call, or a problem, and rows do not depend on how the bytes
 * were cut into pieces.
 *
 * Bytes are the text itself, or choose fragments of lines, which reaches deeper.
 */
#include "../typemap/random_trees.h"
#include "mpiox_rawtrace.h"

enum { MAX_TEXT = 60000 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

static const char *const fragments[] = {
    "\n",
    "\n",
    "\n",
    "17362 ",
    "[pid 4] ",
    "02:23:09.827168 ",
    "23:59:59.9 ",
    "00:00:00.1 ",
    "1159808385.170918 ",
    "0.5 ",
    "prog->MPI_File_open(",
    "SYS_open(",
    "openat(AT_FDCWD</a>, ",
    "write(3</x\\303\\251>, ",
    "pwritev(3, [{iov_base=\"\", ",
    "iov_len=5}, ",
    "...], ",
    "\"a\\n\\x41\\101\\\"b\"",
    "...",
    ", ",
    "0x4c000405",
    "64",
    "-1",
    "0600",
    "99999999999999999999",
    "O_RDWR",
    " <unfinished ...>",
    "<... MPI_File_open resumed>",
    "<... SYS_open resumed> ",
    "<... write resumed>",
    ")",
    " = ",
    "-1 ENOENT (No such file)",
    "3",
    "-2",
    "?",
    " <0.000012>",
    "+++ exited (status 0) +++",
    "--- SIGCHLD ---",
    "<no return ...>",
    "MPI_File_write_at(0x1, 8, 0x2, 4, 0x4c000405, 0)",
    "lseek(1, 2, 0)",
    "'",
    "(",
    "{",
    "[",
    "}",
    "/* x */",
    "<",
    "TCP:[1->2]>",
    "{\"id\":1,\"name\":\"",
    "write",
    "\",\"cat\":\"POSIX\"",
    ",\"pid\":1,\"tid\":2,\"ts\":5,\"dur\":6",
    ",\"ph\":\"X\"",
    ",\"ph\":4",
    ",\"args\":{",
    "\"fhash\":7",
    "\"fhash\":\"a9\"",
    ",\"ret\":-1",
    ",\"size\":4",
    ",\"mode\":\"r\\u00e9\\\"\"",
    "}}",
    "}",
    "{\"name\":\"FH\",\"ph\":\"M\",\"args\":{\"name\":\"/f\",\"value\":7}}",
    "[",
    "]",
    "\xff\xfe",
    "\\",
    "0.000010 0.0000205 open 0 0 ( /data/x 66 384 )\n",
    "0.000031 1e-5 pwrite 1 0 ( 5 0x7f 800 ",
    "-3.9999999999e9 4000000000 ",
    "1.5 2.25 MPI_File_write_at 0 1 ( ",
    "MPI_DOUBLE_C ",
    "MPI_NOTHING ",
    " )",
    " 9 9 9 9 9 9 9 9 9 9 9 9 9 9 9 9 9 9 9 9 9 9 9 9 ",
    "0.5 0.75 H5Dwrite 0 3 ( 1 2 )\n",
    "0.5 0.75 nobody 0 3 ( a \"b c )\n",
};

typedef struct text {
    int64_t used;
    char bytes[MAX_TEXT];
} text;

static void append(text *out, const char *bytes, int64_t count)
{
    if (out->used + count > MAX_TEXT)
        return;
    memcpy(out->bytes + out->used, bytes, (size_t)count);
    out->used += count;
}

static void make_text(text *out, choices *c)
{
    static const int count = (int)(sizeof fragments / sizeof fragments[0]);

    out->used = 0;
    if (choose(c, 0, 3) == 0) {
        append(out, (const char *)c->data, (int64_t)c->left);
        return;
    }
    while (c->left > 0) {
        const char *fragment = fragments[choose(c, 0, count - 1)];
        append(out, fragment, (int64_t)strlen(fragment));
    }
}

/* All rows, extras and counts as one number. */
static uint64_t mix(uint64_t sum, const void *bytes, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        sum = (sum ^ ((const unsigned char *)bytes)[i]) * UINT64_C(0x100000001b3);
    return sum;
}

static uint64_t take(mpiox_rawtrace *trace, uint64_t sum, int64_t *rows)
{
    int64_t count;

    while ((count = mpiox_rawtrace_rows_take(&trace->rows)) > 0) {
        const mpiox_rawtrace_rows *r = &trace->rows;
        for (int64_t i = 0; i < count; i++) {
            REQUIRE(r->out[i].timestamp != MPIOX_RAWTRACE_NULL && r->out[i].operation < r->operations.count);
            REQUIRE(r->out[i].file < r->files.count && r->out[i].line <= r->lines);
            uint64_t one = mix(1, &r->out[i], sizeof r->out[i]);
            if (r->out_extra != NULL)
                one = mix(one, r->out_extra + r->out_offsets[i], r->out_offsets[i + 1] - r->out_offsets[i]);
            /* What is sorted before it is handed out comes in another order when it comes in other pieces. */
            REQUIRE(!r->sorted || i == 0 || r->out[i - 1].timestamp <= r->out[i].timestamp);
            sum = r->sorted ? sum + one : mix(sum, &one, sizeof one);
        }
        *rows += count;
    }
    REQUIRE(count == 0);
    return sum;
}

static void describe(mpiox_rawtrace *trace)
{
    static const char *const functions[][2] = {
        {"open", "file,flags,mode=handle"},
        {"openat", "dir,file,flags,mode=handle"},
        {"write", "handle,-,size"},
        {"pwritev", "handle,iov,vectors,offset"},
        {"lseek", "handle,offset,whence"},
        {"MPI_File_write_at", "handle,offset,-,count,datatype,-"},
        {"MPI_File_open", "comm,file,amode,..."},
    };
    for (size_t i = 0; i < sizeof functions / sizeof functions[0]; i++)
        REQUIRE(mpiox_rawtrace_calls_describe(&trace->calls, &trace->rows.operations, functions[i][0], functions[i][0],
                                              functions[i][0][0] == 'M' ? MPIOX_LAYER_MPIIO : MPIOX_LAYER_POSIX,
                                              functions[i][1]) == MPIOX_OK);
    REQUIRE(mpiox_rawtrace_calls_constant(&trace->calls, "whence", 0, "SEEK_SET", 0) == MPIOX_OK &&
            mpiox_rawtrace_calls_constant(&trace->calls, "datatype", 1024, "MPI_INT", 4) == MPIOX_OK &&
            mpiox_rawtrace_calls_constant(&trace->calls, "datatype", INT64_MIN, "MPI_DOUBLE", 8) == MPIOX_OK);
}

/* Feed a text in pieces of `piece` bytes, each in memory of its own. */
static uint64_t parse(const char *form, const text *in, int64_t piece)
{
    mpiox_rawtrace *trace = mpiox_rawtrace_create();
    uint64_t sum = 1;
    int64_t rows = 0;

    REQUIRE(trace != NULL);
    describe(trace);
    REQUIRE(mpiox_rawtrace_begin(trace, form) == MPIOX_OK);
    for (int64_t from = 0; from < in->used; from += piece) {
        const int64_t count = in->used - from < piece ? in->used - from : piece;
        char *copy = malloc((size_t)count);
        REQUIRE(copy != NULL);
        memcpy(copy, in->bytes + from, (size_t)count);
        REQUIRE(mpiox_rawtrace_feed(trace, copy, count) == MPIOX_OK);
        free(copy);
        sum = take(trace, sum, &rows);
    }
    REQUIRE(mpiox_rawtrace_end(trace) == MPIOX_OK);
    sum = take(trace, sum, &rows);
    REQUIRE(rows == trace->rows.made && trace->rows.head == trace->rows.next && trace->rows.aside_count == 0);
    const int64_t counts[] = {trace->rows.lines, trace->rows.skipped, trace->rows.events, trace->rows.truncated};
    sum = mix(sum, counts, sizeof counts);
    mpiox_rawtrace_free(trace);
    return sum;
}

/* Columns of Recorder, of which every text has memory of its own: each record is a row, of another layer, or lost. */
static void parse_columns(const text *in, choices *c)
{
    enum { MOST = 40, TEXTS = 4 };
    static const double times[] = {0, -1.5, 4e9, 1e300, 0.25, 1e-9};
    static const int64_t numbers[] = {0, 1, 7, -1, INT32_MAX, (int64_t)INT32_MAX + 1, INT64_MIN, INT64_MAX};
    mpiox_rawtrace *trace = mpiox_rawtrace_create();
    const int64_t count = choose(c, 0, MOST);
    double start[MOST], end[MOST];
    int64_t whole[4][MOST], offsets[TEXTS][MOST + 1], rows = 0;
    const int64_t *places[TEXTS];
    char *bytes[TEXTS];

    REQUIRE(trace != NULL);
    describe(trace);
    for (int64_t i = 0; i < count; i++) {
        start[i] = times[choose(c, 0, 5)];
        end[i] = choose(c, 0, 9) == 0 ? __builtin_nan("") : times[choose(c, 0, 5)];
        for (int k = 0; k < 4; k++)
            whole[k][i] = numbers[choose(c, 0, 7)];
    }
    for (int k = 0; k < TEXTS; k++) {
        int64_t used = 0;
        for (int64_t i = 0; i < count; i++) {
            offsets[k][i] = used;
            used += choose(c, 0, 20) < 20 ? choose(c, 0, 9) : 0;
            used = used < in->used ? used : in->used;
        }
        offsets[k][count] = used;
        places[k] = offsets[k];
        bytes[k] = malloc((size_t)used + 1);
        REQUIRE(bytes[k] != NULL);
        memcpy(bytes[k], in->bytes, (size_t)used);
    }
    const mpiox_rawtrace_columns columns = {.count = count,
                                            .start = start,
                                            .end = end,
                                            .rank = whole[0],
                                            .thread = whole[1],
                                            .level = whole[2],
                                            .numbers = whole[3],
                                            .texts = TEXTS,
                                            .bytes = (const char *const *)bytes,
                                            .offsets = places};
    REQUIRE(mpiox_rawtrace_begin(trace, "recorder") == MPIOX_OK);
    REQUIRE(mpiox_rawtrace_records(trace, &columns) == MPIOX_OK && mpiox_rawtrace_end(trace) == MPIOX_OK);
    (void)take(trace, 1, &rows);
    REQUIRE(trace->rows.lines == count && rows == trace->rows.made);
    REQUIRE(rows + trace->rows.skipped + trace->rows.events == count);
    for (int k = 0; k < TEXTS; k++)
        free(bytes[k]);
    mpiox_rawtrace_free(trace);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    static const char *const forms[] = {"text", "text", "dftracer", "dftracer tables", "recorder"};
    static text in;
    choices c = {data, bytes};
    const char *form = forms[choose(&c, 0, 4)];
    const int64_t piece = choose(&c, 1, 100);

    choices again = c;
    make_text(&in, &c);
    REQUIRE(parse(form, &in, MAX_TEXT) == parse(form, &in, piece));
    if (form == forms[4])
        parse_columns(&in, &again);
    return 0;
}

#include "../typemap/fuzz_main.h"
