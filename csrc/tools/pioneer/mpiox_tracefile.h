/*
 * mpiox_tracefile.h - the trace file of one process: the format that the tracer writes and the decoder reads.
 *
 * Problem.   A trace must be small, cost little to write, survive the death of its process at any moment, and show what
 *            is damaged.
 * Layout.    A header, then blocks of MPIOX_TRACEFILE_BLOCK_BYTES. A block has a head and items: definitions of texts
 *            and operations, beginnings of calls, and records. An item never crosses a block's end. All numbers are
 *            little-endian; those of an item are varints (7 bits a byte, low ones first).
 * Deltas.    A record contains the differences from a prediction. The prediction follows from the earlier records of
 *            the same block (mpiox_tracefile_state): so a reader needs no other block to read a block, except for
 *            texts.
 * Slots.     Slots behind the header's numbers have the current call of each thread: the call enters a slot when it
 *            begins, and leaves the slot when its record is committed. The slots show the unfinished calls of a killed
 *            process.
 * Guarantee. `committed` of the header is stored after the bytes below it, with release order: whatever kills the
 *            process, the bytes below it are whole. A finished block has a checksum.
 */
#ifndef MPIOX_TRACEFILE_H
#define MPIOX_TRACEFILE_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#define MPIOX_TRACEFILE_MAGIC "MPIOXTRC"
#define MPIOX_TRACEFILE_NONE INT64_MIN /* a number that is not known: null in the table */

enum {
    MPIOX_TRACEFILE_VERSION = 1,
    MPIOX_TRACEFILE_HEADER_BYTES = 65536, /* a page of any machine */
    MPIOX_TRACEFILE_BLOCK_BYTES = 65536,
    MPIOX_TRACEFILE_BLOCK_MAGIC = 0x4258504d,
    MPIOX_TRACEFILE_ITEM_MAX = 320, /* bytes of a record or beginning */
    MPIOX_TRACEFILE_TEXT_MAX = 8192,
    MPIOX_TRACEFILE_EXTRAS = 12,        /* of a record */
    MPIOX_TRACEFILE_SLOTS_AT = 4096,    /* in the file; slot `depth` of thread t is number t * LEVELS + depth */
    MPIOX_TRACEFILE_SLOT_THREADS = 128, /* threads and depths beyond have none */
    MPIOX_TRACEFILE_SLOT_LEVELS = 4,
    MPIOX_TRACEFILE_SLOTS = MPIOX_TRACEFILE_SLOT_THREADS * MPIOX_TRACEFILE_SLOT_LEVELS,
    MPIOX_TRACEFILE_LEFT_OUT_BYTES = 512,
    MPIOX_TRACEFILE_OPERATIONS = 256
};

/* How a trace ended. */
enum { MPIOX_TRACEFILE_RUNNING, MPIOX_TRACEFILE_CLOSED, MPIOX_TRACEFILE_EXECUTED, MPIOX_TRACEFILE_FULL };

enum {
    MPIOX_TRACEFILE_MPIIO,
    MPIOX_TRACEFILE_MPI,
    MPIOX_TRACEFILE_STDIO,
    MPIOX_TRACEFILE_POSIX,
    MPIOX_TRACEFILE_EXTENSION,
    MPIOX_TRACEFILE_LAYERS
};

/* Kinds of items; from MPIOX_TRACEFILE_FIRST on the number of the operation of a record.
 *   TEXT       number, length, bytes
 *   OPERATION  operation (1 byte), layer (1 byte), length, bytes: its name
 *   BEGIN      operation (1 byte), thread, depth, start (signed, from `time`): a call that others may be made inside of
 *   CANCEL     thread: the last begun call of that thread has no record */
enum {
    MPIOX_TRACEFILE_TEXT,
    MPIOX_TRACEFILE_OPERATION,
    MPIOX_TRACEFILE_BEGIN,
    MPIOX_TRACEFILE_CANCEL,
    MPIOX_TRACEFILE_FIRST = 8
};

/* The stated parts of a record: flags in its second byte, the numbers in this order. Then: extras, if any, as their
 * number and for each its key (1 byte) and signed value. */
enum {
    MPIOX_TRACEFILE_HAS_THREAD = 1,    /* thread, depth; else as of the record before */
    MPIOX_TRACEFILE_HAS_HANDLE = 2,    /* handle (signed, from the layer's last), text number of the file (0: none) */
    MPIOX_TRACEFILE_AS_PREDICTED = 4,  /* offset is the layer's last one plus its size */
    MPIOX_TRACEFILE_HAS_OFFSET = 8,    /* offset (signed, from the predicted one); neither: no offset */
    MPIOX_TRACEFILE_HAS_SIZE = 16,     /* size (nullable); else the layer's last one */
    MPIOX_TRACEFILE_HAS_RESULT = 32,   /* result (nullable); else the size, or the layer's last: what held last time */
    MPIOX_TRACEFILE_HAS_EXTRA = 64,    /* extras */
    MPIOX_TRACEFILE_CLOSES_BEGIN = 128 /* is the call that its thread has begun last */
};

/* Keys of extras; mpiox_tracefile_key() has their names. */
enum {
    MPIOX_KEY_ERRNO,
    MPIOX_KEY_FLAGS,
    MPIOX_KEY_MODE,
    MPIOX_KEY_WHENCE,
    MPIOX_KEY_AMODE,
    MPIOX_KEY_COUNT,
    MPIOX_KEY_TYPE_SIZE,
    MPIOX_KEY_COMM, /* MPIOX_COMM_OTHER, ... */
    MPIOX_KEY_COMM_SIZE,
    MPIOX_KEY_FILE2, /* text number */
    MPIOX_KEY_DISPLACEMENT,
    MPIOX_KEY_ETYPE_SIZE,
    MPIOX_KEY_FILETYPE_SIZE,
    MPIOX_KEY_FILETYPE_EXTENT,
    MPIOX_KEY_DATAREP, /* text number */
    MPIOX_KEY_REQUEST,
    MPIOX_KEY_REQUIRED,
    MPIOX_KEY_PROVIDED,
    MPIOX_KEY_PROTECTION,
    MPIOX_KEY_ADDRESS,
    MPIOX_KEY_COMMAND,
    MPIOX_KEY_HANDLE2,
    MPIOX_KEY_OFFSET2,
    MPIOX_KEY_PIECES,
    MPIOX_KEY_VALUE,
    MPIOX_KEY_COMPLETE,   /* 1: a nonblocking access was complete at once, and no call completes it */
    MPIOX_KEY_DETAILS,    /* text number; members of the JSON object as they stand */
    MPIOX_KEY_UNFINISHED, /* 1: the process has ended in this call; put by the reader */
    MPIOX_KEY_HINTS,      /* 1: the call was given an info object */
    MPIOX_KEYS
};

/* Values of MPIOX_KEY_COMM. */
enum { MPIOX_COMM_OTHER, MPIOX_COMM_WORLD, MPIOX_COMM_SELF, MPIOX_COMMS };

/* Calls of the program on files of the system, which have no records: how many, on how many files, their time, and the
 * number of the name of the one with the longest of them (no use in a trace, whose header has the name). */
typedef struct mpiox_tracefile_left_out {
    int64_t calls, ns;
    int32_t files, name;
} mpiox_tracefile_left_out;

typedef struct mpiox_tracefile_header {
    char magic[8]; /* of the format */
    /* of the format; bytes of this header; of a block; MPIOX_TRACEFILE_RUNNING until the process ends the file */
    uint32_t version, header_bytes, block_bytes, state;
    uint64_t committed;                    /* bytes of the file that hold something */
    int64_t unix_minus_monotonic, started; /* ns */
    int64_t pid, parent;                   /* process ids of the recorded process and of its parent */
    int32_t rank, ranks;                   /* -1, 0: not known */
    uint64_t lost;                         /* calls that are not recorded */
    char host[256], command[2048];         /* host name; command line */
    mpiox_tracefile_left_out left_out;     /* so far */
    uint32_t selected; /* the user has named the files that are recorded, and may have named files of the system */
    char left_out_name[MPIOX_TRACEFILE_LEFT_OUT_BYTES]; /* its end */
} mpiox_tracefile_header;

/* A call under way. */
typedef struct mpiox_tracefile_slot {
    uint64_t what;               /* MPIOX_TRACEFILE_SLOT of it, stored last; 0: none */
    int64_t start, handle, file; /* ns; as in mpiox_tracefile_record */
} mpiox_tracefile_slot;

#define MPIOX_TRACEFILE_SLOT(operation, layer) (1 | (uint64_t)(operation) << 8 | (uint64_t)(layer) << 16)

typedef struct mpiox_tracefile_block {
    uint32_t magic, used; /* bytes with this head; 0: not finished */
    uint64_t checksum;    /* of the bytes behind it */
    uint64_t first;       /* records before this block */
    int64_t time;         /* the origin of the first start, ns */
} mpiox_tracefile_block;

typedef struct mpiox_tracefile_extra {
    uint8_t key;   /* MPIOX_KEY_* */
    int64_t value; /* by key: a number, or the number of a text */
} mpiox_tracefile_extra;

typedef struct mpiox_tracefile_record {
    uint8_t operation;            /* its number, for which an item states the name */
    uint8_t layer;                /* MPIOX_TRACEFILE_MPIIO...: whose last record is referred to */
    bool closes;                  /* is the call that its thread has begun last */
    int32_t extras;               /* entries of extra[] */
    int64_t start, duration;      /* ns: of the trace's clock; until the call ended */
    int64_t thread, depth;        /* number of the thread; calls around this one */
    int64_t handle, file;         /* the call's handle; text number of the file, 0: none */
    int64_t offset, size, result; /* bytes; MPIOX_TRACEFILE_NONE: the call has none */
    mpiox_tracefile_extra extra[MPIOX_TRACEFILE_EXTRAS]; /* the first `extras` */
} mpiox_tracefile_record;

typedef struct mpiox_tracefile_last {
    int64_t handle, file; /* of the layer's last record */
    int64_t next;         /* the predicted offset: offset plus size of the layer's last record that has an offset */
    int64_t size, result; /* of the layer's last record; MPIOX_TRACEFILE_NONE: it has none */
    bool result_is_size;  /* its result is its size */
} mpiox_tracefile_last;

typedef struct mpiox_tracefile_state {
    int64_t time;                                      /* end of the last record, start of the last beginning */
    int64_t thread, depth;                             /* of the last record */
    mpiox_tracefile_last last[MPIOX_TRACEFILE_LAYERS]; /* by layer: of its last record */
} mpiox_tracefile_state;

/* The state at the beginning of a block. */
void mpiox_tracefile_reset(mpiox_tracefile_state *state, int64_t time);
/* Write a record; returns the byte behind it. There must be room for MPIOX_TRACEFILE_ITEM_MAX bytes. */
uint8_t *mpiox_tracefile_encode(mpiox_tracefile_state *state, const mpiox_tracefile_record *record, uint8_t *at);
/* Read a record, whose layer the caller has set; returns the byte behind it, or NULL: there is none. */
const uint8_t *mpiox_tracefile_decode(mpiox_tracefile_state *state, mpiox_tracefile_record *record, const uint8_t *at,
                                      const uint8_t *end);
/* Of a finished block: all bytes behind the checksum. */
uint64_t mpiox_tracefile_checksum(const mpiox_tracefile_block *block, uint32_t used);
/* Name of an extra in the JSON object; NULL when there is none. */
const char *mpiox_tracefile_key(int key);

/* Flags of open(2) as traces have them, in x86-64's numbers: O_DIRECT, O_LARGEFILE, O_DIRECTORY and O_NOFOLLOW are bits
 * 14 to 17 there; on Arm, whose O_DIRECTORY is bit 14, the last two come first. */
static inline int mpiox_tracefile_open_flags(int flags, int own_directory)
{
    if (own_directory != 1 << 14)
        return flags;
    return (flags & ~(15 << 14)) | (flags & 3 << 14) << 2 | (flags & 3 << 16) >> 2;
}

static inline uint64_t mpiox_zigzag(int64_t value)
{
    return (uint64_t)value << 1 ^ (uint64_t)(value >> 63);
}

static inline int64_t mpiox_unzigzag(uint64_t value)
{
    return (int64_t)(value >> 1 ^ -(value & 1));
}

static inline uint8_t *mpiox_put(uint8_t *at, uint64_t value)
{
    while (value >= 128) {
        *at++ = (uint8_t)(value | 128);
        value >>= 7;
    }
    *at++ = (uint8_t)value;
    return at;
}

/* NULL, now or before: the bytes end within the number, or it has more than 64 bits. */
static inline const uint8_t *mpiox_get(const uint8_t *at, const uint8_t *end, uint64_t *value)
{
    uint64_t sum = 0;

    for (int shift = 0; at != NULL && at < end && shift < 64; shift += 7) {
        sum |= (uint64_t)(*at & 127) << shift;
        if (*at++ < 128) {
            *value = sum;
            return at;
        }
    }
    *value = 0;
    return NULL;
}

#endif
