/* mpiox_link_message.c - see mpiox_link_message.h. */
#include "mpiox_link_message.h"
#include "mpiox_integer.h"

#include <string.h>

_Static_assert(sizeof(mpiox_link_message) == 64, "the head has no holes");
_Static_assert(sizeof(mpiox_link_record) == 40, "nor the record");
_Static_assert(sizeof(mpiox_link_call_body) ==
                   16 + 8 * (5 + MPIOX_OP_AHEAD) + sizeof(mpiox_error) + MPIOX_SLOT_TEXT + 32,
               "nor the call");

static const int64_t max_bytes = INT64_C(1) << 30; /* of the data of one message; ours are far smaller */

int mpiox_link_check_head(const mpiox_link_message *head)
{
    static const int64_t record_bytes = sizeof(mpiox_link_record);
    bool fine = head->magic == MPIOX_LINK_MAGIC && head->version == MPIOX_LINK_VERSION;
    const int64_t bytes = head->bytes;
    switch (head->op) {
    case MPIOX_LINK_CALL:
        fine = fine && bytes == sizeof(mpiox_link_call_body);
        break;
    case MPIOX_LINK_VIEW:
        fine = fine && mpiox_is_within(head->arg[0], 0, MPIOX_LINK_VIEWS - 1) &&
               mpiox_is_within(bytes, 8, MPIOX_LINK_BLOB_BYTES) && bytes % 8 == 0;
        break;
    case MPIOX_LINK_FILTER:
        fine = fine && mpiox_is_within(head->arg[0], 0, MPIOX_LINK_FILTERS - 1) && bytes == sizeof(mpiox_link_filter);
        break;
    case MPIOX_LINK_WRITE:
        fine = fine && mpiox_is_within(bytes, record_bytes, max_bytes) && bytes % 8 == 0;
        break;
    case MPIOX_LINK_READ:
        fine = fine && mpiox_is_within(bytes, record_bytes, record_bytes + 8 * MPIOX_OP_AHEAD) && bytes % 8 == 0;
        break;
    case MPIOX_LINK_CACHED:
        fine = fine && bytes == 0 && mpiox_is_within(head->arg[1], 0, MPIOX_LINK_MAX_OFFSET) &&
               mpiox_is_within(head->arg[2], 1, MPIOX_LINK_PAGES);
        break;
    case MPIOX_LINK_BEAT:
    case MPIOX_LINK_ERRORS:
    case MPIOX_LINK_END:
    case MPIOX_LINK_OWNERS:
        fine = fine && bytes == 0;
        break;
    default:
        fine = false;
    }
    return fine ? MPIOX_OK : MPIOX_E_CORRUPT;
}

/* Pages that are expected to be read. */
static bool is_ahead_fine(const mpiox_link_call_body *call)
{
    bool fine = mpiox_is_within(call->arg[1], 0, MPIOX_OP_AHEAD);
    for (int64_t i = 0; fine && i < call->arg[1]; i++)
        fine = mpiox_is_within(call->ahead[i], 0, MPIOX_LINK_MAX_OFFSET / 4096);
    return fine;
}

int mpiox_link_check_call(const mpiox_link_call_body *call)
{
    const int64_t *arg = call->arg;
    bool fine = call->text_bytes >= 0 && call->text_bytes < MPIOX_SLOT_TEXT;
    if (call->op != MPIOX_OP_OPEN && call->op != MPIOX_OP_PING)
        fine = fine && mpiox_is_within(call->file, 0, MPIOX_CACHE_MAX_FILES - 1);
    switch (call->op) {
    case MPIOX_OP_OPEN:
        fine = fine && call->text_bytes > 0 && call->text[0] == '/' && mpiox_is_within(arg[1], 1, INT32_MAX) &&
               mpiox_is_within(arg[2], 1, MPIOX_FILE_RANGES);
        break;
    case MPIOX_OP_FLUSH:
        fine = fine && arg[0] >= 0 && arg[1] >= arg[0];
        break;
    case MPIOX_OP_DISCARD:
        fine = fine && arg[0] >= 0;
        break;
    case MPIOX_OP_AHEAD_ONLY:
        fine = fine && is_ahead_fine(call);
        break;
    case MPIOX_OP_MIGRATE:
        fine = fine && mpiox_is_within(arg[0], 0, MPIOX_FILE_RANGES - 1) &&
               mpiox_is_within(arg[1], 0, MPIOX_FILE_RANGES - 1) &&
               mpiox_is_within(arg[2], MPIOX_MIGRATE_BEGIN, MPIOX_MIGRATE_CLAIM) &&
               mpiox_is_within(call->page, 0, INT32_MAX) && mpiox_is_within(arg[3], 0, MPIOX_VERSION_NEVER);
        break;
    case MPIOX_OP_COMMIT:
        fine = fine && mpiox_is_within(arg[0], 0, MPIOX_FILE_RANGES - 1) &&
               mpiox_is_within(arg[1], 1, MPIOX_VERSION_NEVER);
        break;
    case MPIOX_OP_OWNER:
        fine = fine && mpiox_is_within(arg[0], 0, MPIOX_FILE_RANGES - 1) && mpiox_is_within(arg[2], 0, 1);
        break;
    case MPIOX_OP_HOLD:
        fine = fine && call->text_bytes > 0 && call->text[0] == '/';
        break;
    case MPIOX_OP_PEER:
        fine = fine && call->text_bytes > 0 && call->page >= 0 && mpiox_is_within(arg[2], 1, UINT16_MAX);
        break;
    case MPIOX_OP_REPLICA_MARK:
    case MPIOX_OP_REPLICA_TRIM:
    case MPIOX_OP_CLOSE:
    case MPIOX_OP_PING:
        break;
    default: /* PAGE leaves a frame pinned, DETACH is the connection's own */
        fine = false;
    }
    return fine ? MPIOX_OK : MPIOX_E_CORRUPT;
}

int mpiox_link_check_record(const mpiox_link_record *record, const mpiox_typemap *view, const mpiox_link_filter *filter)
{
    if (!mpiox_is_within(record->file, 0, MPIOX_CACHE_MAX_FILES - 1) ||
        !mpiox_is_within(record->bytes, 1, record->length) || record->bytes > max_bytes ||
        mpiox_link_check_filter(filter) != MPIOX_OK)
        return MPIOX_E_CORRUPT;
    return mpiox_link_check_range(view, record->origin, record->position, record->length);
}

/* ---- seals ------------------------------------------------------------------------------------------------------- */

static void make_seal(const uint8_t session[MPIOX_HANDSHAKE_KEY], uint64_t number, const mpiox_link_call_body *call,
                      uint8_t seal[32])
{
    mpiox_link_call_body bare = *call;
    memset(bare.seal, 0, sizeof bare.seal);
    mpiox_handshake_seal(session, number, &bare, sizeof bare, seal);
}

void mpiox_link_seal_call(const uint8_t session[MPIOX_HANDSHAKE_KEY], uint64_t number, mpiox_link_call_body *call)
{
    make_seal(session, number, call, call->seal);
}

bool mpiox_link_is_sealed(const uint8_t session[MPIOX_HANDSHAKE_KEY], uint64_t number, const mpiox_link_call_body *call)
{
    uint8_t expected[32];
    make_seal(session, number, call, expected);
    return mpiox_handshake_same(expected, call->seal);
}

bool mpiox_link_is_sealed_op(int32_t op)
{
    return op == MPIOX_OP_OPEN || op == MPIOX_OP_PEER;
}

void mpiox_link_mask_call(const uint8_t session[MPIOX_HANDSHAKE_KEY], uint64_t number, mpiox_link_call_body *call)
{
    static const char label[] = "secret";
    uint8_t mask[32];
    int64_t words[2];
    if (call->op != MPIOX_OP_PEER)
        return;
    mpiox_handshake_seal(session, number, label, sizeof label, mask);
    memcpy(words, mask, sizeof words);
    call->arg[0] ^= words[0];
    call->arg[1] ^= words[1];
}

/* ---- calls ------------------------------------------------------------------------------------------------------- */

void mpiox_link_pack_call(const mpiox_slot *slot, mpiox_link_call_body *call)
{
    *call = (mpiox_link_call_body){
        .op = slot->op, .file = slot->file, .result = slot->result, .page = slot->page, .error = slot->error};
    memcpy(call->arg, slot->arg, sizeof call->arg);
    memcpy(call->ahead, slot->ahead, sizeof call->ahead);
    call->text_bytes = (int32_t)strnlen(slot->text, MPIOX_SLOT_TEXT - 1);
    memcpy(call->text, slot->text, (size_t)call->text_bytes);
}

void mpiox_link_unpack_call(const mpiox_link_call_body *call, mpiox_slot *slot)
{
    slot->op = call->op;
    slot->file = call->file;
    slot->result = call->result;
    slot->page = call->page;
    slot->error = call->error;
    memcpy(slot->arg, call->arg, sizeof slot->arg);
    memcpy(slot->ahead, call->ahead, sizeof slot->ahead);
    memcpy(slot->text, call->text, sizeof slot->text);
    slot->text[MPIOX_SLOT_TEXT - 1] = '\0';
}
