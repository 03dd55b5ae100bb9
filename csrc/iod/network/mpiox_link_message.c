/* mpiox_link_message.c - see mpiox_link_message.h. */
#include "mpiox_link_message.h"
#include "mpiox_integer.h"

#include <string.h>

_Static_assert(sizeof(mpiox_link_message) == 64, "the head has no holes");
_Static_assert(sizeof(mpiox_link_record) == 40, "nor the record");
_Static_assert(sizeof(mpiox_link_call_body) == 16 + sizeof(mpiox_op_question) + sizeof(mpiox_op_answer) +
                                                   sizeof(mpiox_error) + MPIOX_SLOT_TEXT + 32,
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
        fine = fine && mpiox_is_within(head->view.number, 0, MPIOX_LINK_VIEWS - 1) &&
               mpiox_is_within(bytes, 8, MPIOX_LINK_BLOB_BYTES) && bytes % 8 == 0;
        break;
    case MPIOX_LINK_FILTER:
        fine = fine && mpiox_is_within(head->filter.number, 0, MPIOX_LINK_FILTERS - 1) &&
               bytes == sizeof(mpiox_link_filter);
        break;
    case MPIOX_LINK_WRITE:
        fine = fine && mpiox_is_within(bytes, record_bytes, max_bytes) && bytes % 8 == 0;
        break;
    case MPIOX_LINK_READ:
        fine = fine && mpiox_is_within(bytes, record_bytes, record_bytes + 8 * MPIOX_OP_AHEAD) && bytes % 8 == 0;
        break;
    case MPIOX_LINK_CACHED:
        fine = fine && bytes == 0 && mpiox_is_within(head->cached.first, 0, MPIOX_LINK_MAX_OFFSET) &&
               mpiox_is_within(head->cached.count, 1, MPIOX_LINK_PAGES);
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

int mpiox_link_check_call(const mpiox_link_call_body *call)
{
    const enum mpiox_op_text text = mpiox_op_text_of(call->op);
    bool fine = mpiox_op_is_legal(call->op, &call->question) &&
                mpiox_is_within(call->text_bytes, text == MPIOX_OP_NO_TEXT ? 0 : 1, MPIOX_SLOT_TEXT - 1);
    if (mpiox_op_names_file(call->op))
        fine = fine && mpiox_is_within(call->file, 0, MPIOX_CACHE_MAX_FILES - 1);
    if (text == MPIOX_OP_PATH)
        fine = fine && call->text[0] == '/';
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
    for (int i = 0; i < 2; i++)
        call->question.peer.secret[i] ^= words[i];
}

/* ---- calls ------------------------------------------------------------------------------------------------------- */

void mpiox_link_pack_call(const mpiox_slot *slot, mpiox_link_call_body *call)
{
    *call = (mpiox_link_call_body){.op = slot->op, .file = slot->file, .result = slot->result, .error = slot->error};
    call->question = slot->question;
    call->answer = slot->answer;
    call->text_bytes = (int32_t)strnlen(slot->text, MPIOX_SLOT_TEXT - 1);
    memcpy(call->text, slot->text, (size_t)call->text_bytes);
}

void mpiox_link_unpack_call(const mpiox_link_call_body *call, mpiox_slot *slot)
{
    slot->op = call->op;
    slot->file = call->file;
    slot->result = call->result;
    slot->question = call->question;
    slot->answer = call->answer;
    slot->error = call->error;
    memcpy(slot->text, call->text, sizeof slot->text);
    slot->text[MPIOX_SLOT_TEXT - 1] = '\0';
}
