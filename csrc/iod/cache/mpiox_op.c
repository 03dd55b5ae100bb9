/* mpiox_op.c - see mpiox_op.h. */
#include "mpiox_op.h"

#include <stddef.h>

#include "mpiox_cache.h"
#include "mpiox_integer.h"

_Static_assert(sizeof(mpiox_op_question) == 12 * 8 && sizeof(mpiox_op_answer) == 4 * 8, "no holes");
_Static_assert(offsetof(mpiox_op_question, migrate.range) == 0 && offsetof(mpiox_op_question, commit.range) == 0 &&
                   offsetof(mpiox_op_question, owner.range) == 0,
               "the range is the first field");

typedef struct form {
    bool from_afar, names_file;
    enum mpiox_op_text text;
} form;

static const form forms[] = {
    [MPIOX_OP_OPEN] = {true, false, MPIOX_OP_PATH},           [MPIOX_OP_CLOSE] = {true, true, MPIOX_OP_NO_TEXT},
    [MPIOX_OP_PAGE] = {false, true, MPIOX_OP_NO_TEXT},        [MPIOX_OP_FLUSH] = {true, true, MPIOX_OP_NO_TEXT},
    [MPIOX_OP_DISCARD] = {true, true, MPIOX_OP_NO_TEXT},      [MPIOX_OP_REPLICA_MARK] = {true, true, MPIOX_OP_NO_TEXT},
    [MPIOX_OP_REPLICA_TRIM] = {true, true, MPIOX_OP_NO_TEXT}, [MPIOX_OP_AHEAD_ONLY] = {true, true, MPIOX_OP_NO_TEXT},
    [MPIOX_OP_PING] = {true, false, MPIOX_OP_NO_TEXT},        [MPIOX_OP_MIGRATE] = {true, true, MPIOX_OP_NO_TEXT},
    [MPIOX_OP_COMMIT] = {true, true, MPIOX_OP_NO_TEXT},       [MPIOX_OP_OWNER] = {true, true, MPIOX_OP_NO_TEXT},
    [MPIOX_OP_HOLD] = {true, false, MPIOX_OP_PATH},           [MPIOX_OP_PEER] = {true, false, MPIOX_OP_SOME_TEXT},
    [MPIOX_OP_DETACH] = {false, false, MPIOX_OP_NO_TEXT},
};

static const form none = {false, false, MPIOX_OP_NO_TEXT};

static const form *form_of(int32_t op)
{
    return op >= 0 && (size_t)op < sizeof forms / sizeof forms[0] ? &forms[op] : &none;
}

#define FIELD(name) offsetof(mpiox_op_question, name)

/* The limits of fields, both included. */
static const struct {
    int32_t op;
    size_t at;
    int64_t least, most;
} limits[] = {
    {MPIOX_OP_OPEN, FIELD(open.flags), 0, 2 * MPIOX_FILE_PAST - 1},
    {MPIOX_OP_OPEN, FIELD(open.unit_pages), 1, INT32_MAX},
    {MPIOX_OP_OPEN, FIELD(open.owners), 1, MPIOX_FILE_RANGES},
    {MPIOX_OP_OPEN, FIELD(open.shift), 0, MPIOX_FILE_RANGES - 1},
    {MPIOX_OP_OPEN, FIELD(open.servers), 0, INT32_MAX},
    {MPIOX_OP_OPEN, FIELD(open.weight), 0, INT32_MAX},
    {MPIOX_OP_OPEN, FIELD(open.drain_rate), 0, INT64_MAX},
    {MPIOX_OP_OPEN, FIELD(open.drain_patience), 0, INT64_MAX},
    {MPIOX_OP_OPEN, FIELD(open.drain_even), 0, 1},
    {MPIOX_OP_CLOSE, FIELD(close.of_hold), 0, 1},
    {MPIOX_OP_CLOSE, FIELD(close.how), MPIOX_CLOSING_FLUSHES, MPIOX_CLOSING_BEHIND},
    {MPIOX_OP_FLUSH, FIELD(flush.first), 0, INT64_MAX},
    {MPIOX_OP_FLUSH, FIELD(flush.stable), 0, 1},
    {MPIOX_OP_FLUSH, FIELD(flush.then), MPIOX_FLUSH_CACHES, MPIOX_FLUSH_KEEPS},
    {MPIOX_OP_DISCARD, FIELD(discard.byte), 0, INT64_MAX},
    {MPIOX_OP_AHEAD_ONLY, FIELD(ahead_only.count), 0, MPIOX_OP_AHEAD},
    {MPIOX_OP_MIGRATE, FIELD(migrate.range), 0, MPIOX_FILE_RANGES - 1},
    {MPIOX_OP_MIGRATE, FIELD(migrate.to), 0, MPIOX_FILE_RANGES - 1},
    {MPIOX_OP_MIGRATE, FIELD(migrate.step), MPIOX_MIGRATE_BEGIN, MPIOX_MIGRATE_REPAIR},
    {MPIOX_OP_MIGRATE, FIELD(migrate.least_version), 0, MPIOX_VERSION_NEVER},
    {MPIOX_OP_COMMIT, FIELD(commit.range), 0, MPIOX_FILE_RANGES - 1},
    {MPIOX_OP_COMMIT, FIELD(commit.version), 1, MPIOX_VERSION_NEVER},
    {MPIOX_OP_OWNER, FIELD(owner.range), 0, MPIOX_FILE_RANGES - 1},
    {MPIOX_OP_OWNER, FIELD(owner.never), 0, 1},
    {MPIOX_OP_HOLD, FIELD(hold.how), MPIOX_HOLD_TO_OPEN, MPIOX_HOLD_TO_DELETE},
    {MPIOX_OP_HOLD, FIELD(hold.copies_of), 0, INT32_MAX},
    {MPIOX_OP_PEER, FIELD(peer.delegate), 0, INT64_MAX},
    {MPIOX_OP_PEER, FIELD(peer.port), 1, UINT16_MAX},
};

/* The checks that need more than the limit of one field. */
static bool is_in_itself_legal(int32_t op, const mpiox_op_question *question)
{
    if (op == MPIOX_OP_OPEN)
        return (question->open.flags & MPIOX_FILE_DRAINING) == 0;
    if (op == MPIOX_OP_FLUSH)
        return question->flush.end >= question->flush.first;
    for (int64_t i = 0; op == MPIOX_OP_AHEAD_ONLY && i < question->ahead_only.count; i++) {
        if (!mpiox_is_within(question->ahead_only.page[i], 0, MPIOX_OP_MAX_PAGE))
            return false;
    }
    return true;
}

bool mpiox_op_is_legal(int32_t op, const mpiox_op_question *question)
{
    if (!form_of(op)->from_afar)
        return false;
    for (size_t i = 0; i < sizeof limits / sizeof limits[0]; i++) {
        const int64_t *field = (const int64_t *)((const char *)question + limits[i].at);
        if (limits[i].op == op && !mpiox_is_within(*field, limits[i].least, limits[i].most))
            return false;
    }
    return is_in_itself_legal(op, question);
}

enum mpiox_op_text mpiox_op_text_of(int32_t op)
{
    return form_of(op)->text;
}

bool mpiox_op_names_file(int32_t op)
{
    return form_of(op)->names_file;
}
