/*
 * mpiox_link_message.h - the wire format between a client and a delegate of another node.
 *
 * Form.  Every message is a head of 64 bytes and `bytes` bytes of body. Unless stated otherwise a request is answered
 *        by one message with its number, in order; a READ by one or more. Numbers are in the byte order of the machine:
 *        the magic refuses a peer of another order.
 * Views. A client's views, and the filters of the pages that belong to the delegate, are sent once under a small number
 *        that the client chooses, before the first request that names it.
 * Trust. mpiox_link_check_*() accept only requests that the receiver can carry out without reading, writing or
 *        computing out of bounds. A refused one ends the connection.
 */
#ifndef MPIOX_LINK_MESSAGE_H
#define MPIOX_LINK_MESSAGE_H

#include "mpiox_handshake.h"
#include "mpiox_integer.h"
#include "mpiox_link_extent.h"
#include "mpiox_ring.h"

#define MPIOX_LINK_MAGIC UINT32_C(0x4b4c584d) /* "MXLK" */

enum {
    MPIOX_LINK_VERSION = 8,
    MPIOX_LINK_VIEWS = 8,              /* that a connection remembers */
    MPIOX_LINK_FILTERS = 16,           /* likewise */
    MPIOX_LINK_BLOB_BYTES = 64 * 1024, /* of a view at most */
    MPIOX_LINK_PART_BYTES = 8 << 20,   /* of data that a request reads or carries, about */
    MPIOX_LINK_PAGES = 8192            /* that one question is about */
};

enum mpiox_link_op {
    MPIOX_LINK_HELLO = 1, /* the delegate's first message, after mpiox_handshake.h */
    MPIOX_LINK_BEAT,      /* no body. Not answered */
    MPIOX_LINK_CALL,      /* body: mpiox_link_call_body. Answered by the same; MPIOX_OP_AHEAD_ONLY is not answered */
    MPIOX_LINK_VIEW,      /* body: the blob. Not answered */
    MPIOX_LINK_FILTER,    /* body: mpiox_link_filter. Not answered */
    /* Body: records, each followed by its bytes and zeros up to a multiple of 8. The answer's value is the number of
     * the first record that was not carried out, and its result is the reason, with a mpiox_error as body if that is
     * negative. After a failure all writes of that epoch and older ones fail with MPIOX_LINK_REFUSED */
    MPIOX_LINK_WRITE,
    /* Body: one record, and up to MPIOX_OP_AHEAD page numbers. Answered by messages, the last one of value 1; body: the
     * next bytes, or a mpiox_error if the result is negative */
    MPIOX_LINK_READ,
    MPIOX_LINK_ERRORS, /* answered by the number of errors that are left, body: errors */
    MPIOX_LINK_END,    /* answered by the end of the file, bytes */
    MPIOX_LINK_CACHED, /* answered by a body of bits */
    MPIOX_LINK_OWNERS, /* answered by the bytes of a unit, body: owner_of of all ranges */
    MPIOX_LINK_OPS
};

enum { MPIOX_LINK_REFUSED = 100 }; /* a result */

typedef struct mpiox_link_message {
    uint32_t magic;       /* MPIOX_LINK_MAGIC */
    uint16_t version, op; /* MPIOX_LINK_VERSION; the operation, MPIOX_LINK_* */
    uint32_t number;      /* of the request; an answer has that of its request */
    int32_t result;       /* answers */
    int64_t bytes;        /* of the body */
    union {               /* by operation; an answer has a value */
        struct {
            int64_t token, page_bytes; /* of this connection, for that of the heartbeats; of the delegate */
        } hello;
        struct {
            int64_t number; /* that the client chose; below MPIOX_LINK_VIEWS, MPIOX_LINK_FILTERS */
        } view, filter;
        struct {
            int64_t epoch;   /* of the client: after a failed write the delegate refuses the rest of its epoch */
            int64_t reports; /* 1: if all records were carried out, the result is an error of the file that no call has
                              * taken yet, if there is one */
        } write;
        struct {
            int64_t beyond; /* 1: also bytes behind the end of the file */
        } read;
        struct {
            int64_t file, most; /* index of the file record; errors to return at most */
        } errors;
        struct {
            int64_t file; /* index of the file record */
        } end, owners;
        struct {
            int64_t file, first, count; /* pages; first 0 .. MPIOX_LINK_MAX_OFFSET, count 1 .. MPIOX_LINK_PAGES */
        } cached;
        int64_t value;    /* of an answer */
        int64_t words[5]; /* reserves 40 bytes for every operation */
    };
} mpiox_link_message;

typedef struct mpiox_link_record {    /* an access, or a part of one */
    int32_t file;                     /* index of the file record at the delegate */
    int16_t view, filter;             /* numbers; view -1: contiguous */
    int64_t origin, position, length; /* as in mpiox_page_access */
    int64_t bytes;                    /* those that belong to the delegate; in a write they follow */
} mpiox_link_record;

typedef struct mpiox_link_call_body {     /* the fields of a mpiox_slot that travel */
    int32_t op, file, result, text_bytes; /* as in the slot; bytes of `text` that are in use */
    mpiox_op_question question;
    mpiox_op_answer answer;
    mpiox_error error;
    char text[MPIOX_SLOT_TEXT];
    uint8_t seal[32]; /* see mpiox_link_is_sealed_op(); otherwise zeros */
} mpiox_link_call_body;

/* Check the head of a request before its body. 0 or MPIOX_E_CORRUPT. */
int mpiox_link_check_head(const mpiox_link_message *head);
/* A control request that a client may make from afar. 0 or MPIOX_E_CORRUPT. */
int mpiox_link_check_call(const mpiox_link_call_body *call);
/* With the view (NULL: contiguous) and the filter that it names. 0 or MPIOX_E_CORRUPT. */
int mpiox_link_check_record(const mpiox_link_record *record, const mpiox_typemap *view,
                            const mpiox_link_filter *filter);
/* An opening, or naming a peer, is carried out only with the seal of the requesting rank: over its path, its flags and
 * the number of such calls of this connection before it, by the session's key. The first function returns whether a
 * call is of this kind, the second adds the seal. */
bool mpiox_link_is_sealed_op(int32_t op);
void mpiox_link_seal_call(const uint8_t session[MPIOX_HANDSHAKE_KEY], uint64_t number, mpiox_link_call_body *call);
/* Does the call have a valid seal? Compared in constant time. */
bool mpiox_link_is_sealed(const uint8_t session[MPIOX_HANDSHAKE_KEY], uint64_t number,
                          const mpiox_link_call_body *call);

/* Mask the secret of a peer before the seal, so that it is not readable on the wire, or unmask it. Other calls stay. */
void mpiox_link_mask_call(const uint8_t session[MPIOX_HANDSHAKE_KEY], uint64_t number, mpiox_link_call_body *call);

/* Between slots and their form on the wire. A text that is not terminated is cut. */
void mpiox_link_pack_call(const mpiox_slot *slot, mpiox_link_call_body *call);
void mpiox_link_unpack_call(const mpiox_link_call_body *call, mpiox_slot *slot);

/* Bytes that records and their data occupy: a multiple of 8. */
static inline int64_t mpiox_link_padded(int64_t bytes)
{
    return mpiox_round_up(bytes, 8);
}

#endif
