/*
 * mpiox_schedule_state.h - the state that the files of the request queue share. Private to csrc/iod/schedule.
 *
 * A request is READY (a policy may choose it), HELD (an older request that it overlaps is not done: no policy sees it)
 * or ACTIVE (being served). All three are in the tree. Only READY ones are in two lists, that of all and that of their
 * lane, both in order of arrival. A lane contains the requests that a policy keeps together.
 */
#ifndef MPIOX_SCHEDULE_STATE_H
#define MPIOX_SCHEDULE_STATE_H

#include "mpiox_schedule_request.h"
#include "mpiox_treap.h"

enum {
    MPIOX_SCHEDULE_LANES = 1024,     /* more keys than that share lanes */
    MPIOX_SCHEDULE_OVERDUE_EVERY = 8 /* of so many batches at most one is that of an overdue request */
};

enum mpiox_entry_state { MPIOX_ENTRY_FREE, MPIOX_ENTRY_READY, MPIOX_ENTRY_HELD, MPIOX_ENTRY_ACTIVE };

enum mpiox_entry_list { MPIOX_ENTRY_ALL, MPIOX_ENTRY_LANE, MPIOX_ENTRY_LISTS };

typedef struct mpiox_schedule_entry { /* a request */
    mpiox_schedule_request what;      /* as the caller has added it */
    int64_t arrival;                  /* ns */
    uint64_t number;                  /* in order of arrival */
    uint64_t passes;                  /* of its lane when it came: mlf, aioli */
    double finish;                    /* virtual time: wfq */
    int32_t lane;                     /* index */
    mpiox_treap_node node;            /* in the tree */
    uint32_t ready;                   /* READY ones in its subtree */
    uint32_t furthest;                /* of its subtree, the one with the last end of the last stream */
    enum mpiox_entry_state state; /* FREE: the entry has no request; HELD: waits for an older one that it overlaps */
    struct {
        uint32_t previous, next; /* entries; MPIOX_SCHEDULE_NONE: none */
    } links[MPIOX_ENTRY_LISTS];
} mpiox_schedule_entry;

typedef struct mpiox_entry_chain {
    uint32_t first, last; /* entries; MPIOX_SCHEDULE_NONE: it is empty */
    int64_t count;        /* entries */
} mpiox_entry_chain;

typedef struct mpiox_schedule_lane {
    int64_t key;             /* of the stream, flow or target whose requests it has */
    mpiox_entry_chain ready; /* its READY requests, by MPIOX_ENTRY_LANE */
    int64_t bytes;           /* of those */
    int64_t quantum;         /* aioli: bytes of a turn */
    int64_t used;            /* aioli, hbrr: bytes of the turn that are served */
    int64_t end;             /* aioli: where the last batch ended; -1: there was none */
    int64_t wait_until;      /* aioli: ns */
    uint64_t waited_for;     /* aioli: number + 1 of the request with which it waited last; 0: none */
    uint64_t passes;         /* mlf, aioli: number of visits */
    double finish;           /* wfq: of its last request */
} mpiox_schedule_lane;

enum mpiox_schedule_lanes { MPIOX_LANES_ONE, MPIOX_LANES_STREAM, MPIOX_LANES_FLOW, MPIOX_LANES_TARGET };

enum mpiox_schedule_join {                  /* which requests that continue another one may join its batch */
                           MPIOX_JOIN_NEXT, /* that which has waited longest of all */
                           MPIOX_JOIN_ANY,  /* any */
                           MPIOX_JOIN_LANE  /* those of its lane */
};

typedef struct mpiox_schedule_policy {
    const char *name, *source;       /* as in the hint; its publication. Static text */
    enum mpiox_schedule_lanes lanes; /* what has a lane of its own */
    enum mpiox_schedule_join join;   /* which requests may join a batch */
    bool fair; /* it bounds by itself how many others are served before a request: the patience does not act */
    /* A request has become READY and is in its lane, or NULL. */
    void (*added)(mpiox_schedule *schedule, mpiox_schedule_entry *entry);
    /* The READY request to be served next; schedule->allowance may be set to less: bytes of its batch. NONE: nothing
     * now, ask again at *until. At least one request is READY. With `hurry` never NONE. */
    uint32_t (*pick)(mpiox_schedule *schedule, int64_t now, bool hurry, int64_t *until);
    /* A batch of a lane, of so many bytes, was taken out, which ends there, or NULL. */
    void (*served)(mpiox_schedule *schedule, mpiox_schedule_lane *lane, int64_t end, int64_t bytes);
} mpiox_schedule_policy;

struct mpiox_schedule {
    mpiox_schedule_options options;      /* .policy is not used any more */
    const mpiox_schedule_policy *policy; /* static */
    mpiox_schedule_entry *entries;       /* [capacity] */
    uint32_t free_entry;                 /* linked by links[MPIOX_ENTRY_ALL].next */
    uint32_t fresh;                      /* entries from here on were never used */
    uint32_t tree;                       /* root of the tree of requests; MPIOX_SCHEDULE_NONE: it is empty */
    uint32_t random;                     /* state of the generator of the tree's priorities */
    uint64_t number;                     /* of the next request */
    mpiox_entry_chain ready;             /* READY requests, by MPIOX_ENTRY_ALL */
    int64_t waiting;                     /* READY and HELD ones */
    mpiox_schedule_lane lanes[MPIOX_SCHEDULE_LANES]; /* the first lane_count are in use */
    int32_t lane_of[2 * MPIOX_SCHEDULE_LANES];       /* by hash of the key: index + 1; 0: none */
    int32_t lane_count;                              /* only grows */
    bool lanes_changed;                              /* since the last call of the policy: twins */
    int32_t turn;                                    /* aioli, hbrr, mlf: lane whose turn it is, or was last */
    int32_t since_overdue;                           /* batches since an overdue request was served */
    int64_t allowance;                               /* bytes of the batch that is being made */
    int64_t window;                             /* twins: number of the last one in which something was to be served */
    int32_t known;                              /* twins: targets that have turns in it: */
    int32_t target_order[MPIOX_SCHEDULE_LANES]; /* their lanes, by rising key */
    double virtual_time;                        /* wfq */
    int64_t waits_since;                        /* the policy waits since; -1: it does not */
    mpiox_schedule_counters counters;           /* since the queue was made */
};

static inline int64_t mpiox_entry_end(const mpiox_schedule_entry *entry)
{
    return entry->what.offset + entry->what.length;
}

#endif
