/*
 * fuzz_darshan.c - what reads Darshan logs, given what no log should hold; run under the sanitizers.
 *
 * Without the library: Lustre records out of random words, records of random counters, texts of random bytes, each
 * with what must hold of the result. With `LIBRARY LOG...` as arguments: the logs, whole or damaged, in a child
 * process, alone and together.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "mpiox_darshan_files.h"
#include "mpiox_darshan_isolated.h"
#include "mpiox_darshan_summary.h"
#include "mpiox_error.h"

enum { ROUNDS = 3000, WORDS = 400 };

static uint64_t state = 88172645463325252ULL;

static uint64_t random_word(void)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state;
}

static int64_t random_below(int64_t limit)
{
    return (int64_t)(random_word() % (uint64_t)limit);
}

/* A number as counters are, or at an end of the range. */
static int64_t odd_number(void)
{
    static const int64_t ends[] = {INT64_MIN, INT64_MIN + 1, -1, 0, INT64_MAX, INT64_MAX - 1, 1LL << 40, -5};

    return random_below(8) == 0 ? ends[random_below(8)] : random_below(6);
}

/* ---- Lustre records ---------------------------------------------------------------------------------------------- */

static int64_t words[WORDS];
static int64_t words_at, words_end; /* bytes */

static int give_words(void *log, int module, void *to, int bytes)
{
    const int64_t left = words_end - words_at, given = bytes < left ? bytes : left;

    (void)log;
    (void)module;
    if (bytes < 0 || random_below(200) == 0)
        return -1;
    memcpy(to, (char *)words + words_at, (size_t)given);
    words_at += given;
    return (int)given;
}

static void check_osts(const mpiox_darshan_files *files)
{
    for (int64_t k = 0; k < files->count; k++) {
        const mpiox_darshan_file *file = &files->files[k];
        const int32_t *osts = files->osts + file->osts;

        CHECK(file->osts >= 0 && file->ost_count >= 0 && file->osts + file->ost_count <= files->ost_count);
        for (int32_t each = 0; each < file->ost_count; each++)
            CHECK(osts[each] >= 0 && (each == 0 || osts[each] > osts[each - 1]));
        CHECK(file->slots[MPIOX_DARSHAN_FILE_components].i >= 0);
    }
}

static void fuzz_layouts(void)
{
    const mpiox_darshan_library library = {.get_mod = give_words};
    mpiox_darshan_files files = {0};
    int whole = 0, damaged = 0;

    for (int round = 0; round < ROUNDS; round++) {
        int64_t beat = 0;
        const int version = (int)random_below(4);

        for (int k = 0; k < WORDS; k++)
            words[k] = odd_number();
        words_at = 0;
        words_end = random_below(8) == 0 ? random_below(WORDS * 8) : 8 * random_below(60);
        const int code = mpiox_darshan_layout_read(&files, &library, NULL, 8, version, round % 8 == 0, &beat);
        CHECK(code == MPIOX_OK || code == MPIOX_E_CORRUPT || code == MPIOX_E_UNSUPPORTED);
        CHECK((code == MPIOX_E_UNSUPPORTED) == (version < 1 || version > 2));
        whole += code == MPIOX_OK && files.count > 0;
        damaged += code == MPIOX_E_CORRUPT;
        check_osts(&files);
        mpiox_darshan_files_clear(&files);
    }
    CHECK(whole > ROUNDS / 100);
    CHECK(damaged > ROUNDS / 10);
    mpiox_darshan_files_release(&files);
}

/* ---- records ----------------------------------------------------------------------------------------------------- */

enum { COUNTERS = 6 };

static void make_kind(mpiox_darshan_kind *kind)
{
    static const int16_t columns[] = {MPIOX_DARSHAN_FILE_bytes_read, MPIOX_DARSHAN_FILE_alignment,
                                      MPIOX_DARSHAN_FILE_ranks,      MPIOX_DARSHAN_FILE_read_time,
                                      MPIOX_DARSHAN_FILE_read_start, MPIOX_DARSHAN_FILE_read_end};
    static const int8_t hows[] = {MPIOX_DARSHAN_SUM, MPIOX_DARSHAN_MAX,   MPIOX_DARSHAN_OPENS,
                                  MPIOX_DARSHAN_SUM, MPIOX_DARSHAN_FIRST, MPIOX_DARSHAN_LAST};

    kind->counters = kind->doubles = 3;
    kind->rules = COUNTERS;
    for (int k = 0; k < COUNTERS; k++)
        kind->rule[k] = (mpiox_darshan_rule){(int16_t)k, columns[k], hows[k], (int8_t)(k >= 3)};
    kind->fastest_time = 3;
    kind->slowest_time = -1;
    kind->fastest_bytes = kind->slowest_bytes = kind->slowest_rank = 0;
    kind->bytes_read = 0;
    kind->bytes_written = 1;
    for (int k = 0; k < MPIOX_DARSHAN_OBSERVED; k++)
        kind->observed[k] = k < MPIOX_DARSHAN_OBSERVED_INTEGERS ? k % 4 - 1 : k % 2 + 3;
}

static void check_file(const mpiox_darshan_file *file, int64_t processes)
{
    static const int numbers[] = {MPIOX_DARSHAN_FILE_bytes_read, MPIOX_DARSHAN_FILE_alignment,
                                  MPIOX_DARSHAN_FILE_root_bytes_written, MPIOX_DARSHAN_FILE_slowest_rank};
    static const int doubles[] = {MPIOX_DARSHAN_FILE_read_time, MPIOX_DARSHAN_FILE_read_start,
                                  MPIOX_DARSHAN_FILE_read_end, MPIOX_DARSHAN_FILE_fastest_rank_time};

    for (size_t k = 0; k < sizeof(numbers) / sizeof(numbers[0]); k++)
        CHECK(file->slots[numbers[k]].i >= 0 || file->slots[numbers[k]].i == MPIOX_DARSHAN_NONE);
    for (size_t k = 0; k < sizeof(doubles) / sizeof(doubles[0]); k++)
        CHECK(file->slots[doubles[k]].i == MPIOX_DARSHAN_NONE || file->slots[doubles[k]].f >= 0.0);
    CHECK(file->slots[MPIOX_DARSHAN_FILE_ranks].i >= 0 && file->slots[MPIOX_DARSHAN_FILE_ranks].i <= processes);
}

/* Four columns: sum, number, least, greatest. */
static void check_summary(const mpiox_darshan_summary *summary)
{
    const mpiox_darshan_slot *slots = summary->slots;

    for (int k = 0; k < MPIOX_DARSHAN_OBSERVED_INTEGERS; k++, slots += 4) {
        CHECK((slots[1].i == MPIOX_DARSHAN_NONE) == (slots[0].i == MPIOX_DARSHAN_NONE));
        CHECK(slots[1].i == MPIOX_DARSHAN_NONE ||
              (slots[1].i > 0 && slots[2].i >= 0 && slots[2].i <= slots[3].i && slots[3].i <= slots[0].i));
    }
    for (int k = MPIOX_DARSHAN_OBSERVED_INTEGERS; k < MPIOX_DARSHAN_OBSERVED; k++, slots += 4)
        CHECK(slots[1].i == MPIOX_DARSHAN_NONE || (slots[2].f >= 0.0 && slots[2].f <= slots[3].f));
    slots = &summary->slots[MPIOX_DARSHAN_SUMMARY_unique_time];
    CHECK(slots->i == MPIOX_DARSHAN_NONE || slots->f >= 0.0);
}

static void fuzz_records(void)
{
    static mpiox_darshan_library library;
    static const double odd_doubles[] = {-1.0, 0.0, -0.0, 1e-300, 1e308, INFINITY, NAN, 2.5};
    mpiox_darshan_record *record = malloc(sizeof(*record) + COUNTERS * sizeof(int64_t));
    mpiox_darshan_files files = {0};
    mpiox_darshan_summary summary = {0};

    for (int kind = 0; kind < MPIOX_DARSHAN_KINDS; kind++)
        make_kind(&library.kinds[kind]);
    for (int round = 0; round < ROUNDS / 10 && record != NULL; round++) {
        const int64_t records = random_below(300);

        mpiox_darshan_summary_clear(&summary);
        for (int64_t k = 0; k < records; k++) {
            record->id = (uint64_t)random_below(100) << random_below(2) * 40;
            record->rank = random_below(20) - 1;
            for (int each = 0; each < 3; each++)
                record->counters[each] = odd_number();
            for (int each = 3; each < COUNTERS; each++)
                memcpy(&record->counters[each], &odd_doubles[random_below(8)], sizeof(double));
            const int kind = (int)random_below(3);
            CHECK_EQUAL(mpiox_darshan_files_join(&files, &library, kind, record), MPIOX_OK);
            CHECK_EQUAL(mpiox_darshan_summary_add(&summary, &library, kind, record), MPIOX_OK);
        }
        mpiox_darshan_summary_finish(&summary, 1);
        check_summary(&summary);
        mpiox_darshan_files_finish(&files, 20, 1e9, 1e3);
        CHECK(files.count <= 200 && (files.count > 0) == (records > 0));
        for (int64_t k = 0; k < files.count; k++) {
            CHECK_EQUAL(mpiox_darshan_map_find(&files.map, files.files[k].id), k);
            check_file(&files.files[k], 20);
        }
        mpiox_darshan_files_clear(&files);
    }
    mpiox_darshan_files_release(&files);
    mpiox_darshan_summary_release(&summary);
    free(record);
}

/* ---- texts ------------------------------------------------------------------------------------------------------- */

/* Whether these bytes are UTF-8, by decoding every character and writing it again. */
static int is_utf8(const unsigned char *text, int64_t bytes)
{
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};

    for (int64_t at = 0; at < bytes;) {
        const int length = text[at] < 0x80 ? 1 : (text[at] >> 5) == 6 ? 2 : (text[at] >> 4) == 14 ? 3 : 4;
        uint32_t code = length == 1 ? text[at] : text[at] & (0x7Fu >> length);

        if (length == 4 && (text[at] >> 3) != 30)
            return 0;
        if (at + length > bytes)
            return 0;
        for (int k = 1; k < length; k++) {
            if ((text[at + k] >> 6) != 2)
                return 0;
            code = code << 6 | (text[at + k] & 0x3F);
        }
        if (code < least[length] || code > 0x10FFFF || (code >= 0xD800 && code < 0xE000))
            return 0;
        at += length;
    }
    return 1;
}

static void fuzz_texts(void)
{
    static const unsigned char heads[] = {'a', 0x80, 0xBF, 0xC0, 0xC3, 0xE0, 0xED, 0xEF, 0xF0, 0xF4, 0xF5, 0xFF, 0xA0};
    const int buffer = MPIOX_DARSHAN_BUFFER_file_file_lengths;
    mpiox_darshan_rows rows = {0};
    int64_t total = 0;
    int kept = 0;

    for (int round = 0; round < ROUNDS; round++) {
        char *text = malloc(8); /* of the heap and exact: reading beyond it is seen */
        const int64_t bytes = random_below(9);
        const int64_t before = rows.buffers[buffer + 1].used;

        if (text == NULL)
            return;
        for (int64_t k = 0; k < bytes; k++)
            text[k] = (char)heads[random_below((int64_t)sizeof(heads))];
        mpiox_darshan_rows_put_text(&rows, buffer, text, bytes);
        const unsigned char *result = (const unsigned char *)rows.buffers[buffer + 1].data + before;
        const int64_t stored = rows.buffers[buffer + 1].used - before;
        CHECK(is_utf8(result, stored));
        if (is_utf8((const unsigned char *)text, bytes)) {
            CHECK(stored == bytes && (bytes == 0 || memcmp(result, text, (size_t)bytes) == 0));
            kept += bytes > 0;
        }
        total += stored;
        free(text);
    }
    const int32_t *lengths = (const int32_t *)(const void *)rows.buffers[buffer].data;
    for (int round = 0; round < ROUNDS; round++)
        total -= lengths[round];
    CHECK_EQUAL(total, 0);
    CHECK(kept > 0);
    mpiox_darshan_rows_release(&rows);
}

/* ---- logs -------------------------------------------------------------------------------------------------------- */

static void read_files(char **logs, int count, const char *path)
{
    const mpiox_darshan_limits limits = {60.0, 0, 1 << 30};
    mpiox_darshan_library library;
    mpiox_darshan_rows together = {0}, alone = {0};
    char problem[512] = "";
    int64_t bytes = 0;

    CHECK_EQUAL(mpiox_darshan_library_open(path, &library, problem, sizeof(problem)), MPIOX_OK);
    for (int k = 0; k < count; k++)
        bytes += (int64_t)strlen(logs[k]) + 1;
    char *paths = malloc((size_t)bytes + 1), *end = paths;
    if (library.handle == NULL || paths == NULL)
        return;
    for (int k = 0; k < count; k++)
        end = stpcpy(end, logs[k]) + 1;
    CHECK_EQUAL(mpiox_darshan_isolated_read(&library, paths, count, &limits, &together), count);
    for (int k = 0; k < count; k++)
        CHECK_EQUAL(mpiox_darshan_isolated_read(&library, logs[k], 1, &limits, &alone), 1);
    for (int k = 0; k < MPIOX_DARSHAN_BUFFER_COUNT; k++) {
        CHECK_EQUAL(alone.buffers[k].used, together.buffers[k].used);
        CHECK(alone.buffers[k].used == 0 ||
              memcmp(alone.buffers[k].data, together.buffers[k].data, (size_t)alone.buffers[k].used) == 0);
    }
    mpiox_darshan_rows_release(&together);
    mpiox_darshan_rows_release(&alone);
    mpiox_darshan_library_close(&library);
    free(paths);
}

int main(int argc, char **argv)
{
    fuzz_layouts();
    fuzz_records();
    fuzz_texts();
    if (argc > 2)
        read_files(argv + 2, argc - 2, argv[1]);
    return check_exit();
}
