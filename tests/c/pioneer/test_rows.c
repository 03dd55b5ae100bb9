/*
 * test_rows.c - rows that wait: a call that goes on for longer than MPIOX_RAWTRACE_HELD others is set aside and comes
 * late; all come, each once. Names: a million different ones keep their numbers. Flags of Arm become x86-64's.
 */
#include "../typemap/random_trees.h"
#include "mpiox_rawtrace.h"
#include "mpiox_tracefile.h"

static void check_late_rows(void)
{
    enum { OTHERS = MPIOX_RAWTRACE_HELD + 1000 };
    mpiox_rawtrace_rows rows = {0};
    int64_t seen = 0, late_at = -1;
    const int64_t late = mpiox_rawtrace_rows_push(&rows);

    for (int64_t i = 0; i < OTHERS; i++) {
        const int64_t number = mpiox_rawtrace_rows_push(&rows);
        REQUIRE(number == i + 1);
        mpiox_rawtrace_rows_get(&rows, number)->row.offset = i;
        REQUIRE(mpiox_rawtrace_rows_done(&rows, number, NULL) == MPIOX_OK);
    }
    REQUIRE(rows.aside_count == 1);
    mpiox_rawtrace_rows_get(&rows, late)->row.offset = -5;
    REQUIRE(mpiox_rawtrace_rows_done(&rows, late, strdup("{}")) == MPIOX_OK);
    REQUIRE(mpiox_rawtrace_rows_done(&rows, 99999999, NULL) == MPIOX_E_ARG);
    for (int64_t count; (count = mpiox_rawtrace_rows_take(&rows)) > 0;) {
        for (int64_t i = 0; i < count; i++, seen++) {
            if (rows.out[i].offset == -5)
                late_at = seen;
            else
                REQUIRE(rows.out[i].offset == seen);
        }
    }
    REQUIRE(seen == OTHERS + 1 && late_at == OTHERS);
    mpiox_rawtrace_rows_free(&rows);
}

static void check_names(void)
{
    mpiox_rawtrace_names names = {0};
    char text[32];

    REQUIRE(mpiox_rawtrace_names_find(&names, "x", 1) == -1);
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < 200000; i++) {
            const int bytes = snprintf(text, sizeof text, "%d", i);
            REQUIRE(mpiox_rawtrace_names_add(&names, text, bytes) == i);
        }
    }
    REQUIRE(names.count == 200000 && mpiox_rawtrace_names_find(&names, "", 0) == -1);
    REQUIRE(mpiox_rawtrace_names_add(&names, NULL, 0) == 200000);
    mpiox_rawtrace_names_free(&names);
}

static void check_flags(void)
{
    enum { DIRECT = 1 << 14, LARGEFILE = 1 << 15, DIRECTORY = 1 << 16, NOFOLLOW = 1 << 17, REST = 02000102 };
    const int arm[] = {1 << 16, 1 << 17, 1 << 14, 1 << 15}, traced[] = {DIRECT, LARGEFILE, DIRECTORY, NOFOLLOW};

    for (int i = 0; i < 4; i++) {
        REQUIRE(mpiox_tracefile_open_flags(arm[i] | REST, arm[2]) == (traced[i] | REST));
        REQUIRE(mpiox_tracefile_open_flags(traced[i] | REST, DIRECTORY) == (traced[i] | REST));
    }
}

int main(void)
{
    check_flags();
    check_late_rows();
    check_names();
    printf("rows and names passed\n");
    return 0;
}
