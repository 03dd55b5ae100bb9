/*
 * test_ranges.c - page ranges change hands: steps that come twice, late, from another client, or between records of
 *                 which one is older; ranges that are asked for.
 *
 *   test_ranges FOLDER
 */
#include "harness.h"

enum { PAGE = 4096 };

static char folder[512];

static const char *path_of(const char *name)
{
    static char path[600];

    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

typedef struct pair { /* two delegates that have the file open, of which each client is one of both */
    running delegates[2];
    const mpiox_cache *cache[2];
    int file[2];
} pair;

typedef struct client {
    int id[2];
} client;

static client join(const pair *p)
{
    client joined;
    for (int i = 0; i < 2; i++)
        joined.id[i] = mpiox_ring_join(p->cache[i]);
    return joined;
}

static void gone(const pair *p, client *who)
{
    for (int i = 0; i < 2; i++)
        mpiox_ring_leave(p->cache[i], who->id[i]);
}

/* Range 0. *back, or NULL: the answer. */
static int ask(const pair *p, const client *who, int at, int op, mpiox_op_question question, mpiox_op_answer *back)
{
    mpiox_slot *slot = mpiox_ring_take(p->cache[at]);
    slot->op = op;
    slot->client = who->id[at];
    slot->file = p->file[at];
    slot->question = question;
    const int code = mpiox_ring_call(p->cache[at], slot, NULL);
    if (back != NULL)
        *back = slot->answer;
    mpiox_ring_give_back(slot);
    return code;
}

/* One step of a move to delegate `to`. */
static int step_to(const pair *p, const client *who, int from, int to, int64_t step, int64_t least,
                   mpiox_op_answer *back)
{
    const mpiox_op_question question = {.migrate = {.to = to, .step = step, .least_version = least}};
    return ask(p, who, from, MPIOX_OP_MIGRATE, question, back);
}

static int take_over(const pair *p, const client *who, int from, mpiox_op_answer *back)
{
    return step_to(p, who, from, 0, MPIOX_MIGRATE_TAKE_OVER, 0, back);
}

static int ask_owner(const pair *p, const client *who, int at, bool never, int64_t *version)
{
    mpiox_op_answer answer;
    const int code = ask(p, who, at, MPIOX_OP_OWNER, (mpiox_op_question){.owner.never = never}, &answer);
    *version = answer.range.version;
    return code;
}

static int begin(const pair *p, const client *who, int from, int64_t least, int64_t *version)
{
    mpiox_op_answer answer;
    const int code = step_to(p, who, from, 1 - from, MPIOX_MIGRATE_BEGIN, least, &answer);
    if (version != NULL)
        *version = answer.range.version;
    return code;
}

static int commit(const pair *p, const client *who, int at, int64_t version)
{
    return ask(p, who, at, MPIOX_OP_COMMIT, (mpiox_op_question){.commit.version = version}, NULL);
}

static int end(const pair *p, const client *who, int from, int owner)
{
    return step_to(p, who, from, owner, MPIOX_MIGRATE_END, 0, NULL);
}

static int owner_at(const pair *p, int at)
{
    return atomic_load(&p->cache[at]->header->files[p->file[at]].owner_of[0]);
}

static int64_t moved_in(const pair *p, int at)
{
    mpiox_cache_counters sums;
    mpiox_cache_sum(p->cache[at], &sums);
    return counter(&sums.moved_in);
}

static void start(pair *p, const char *name)
{
    mpiox_server_options options = options_for(PAGE, 16);
    make_file(path_of(name), NULL, 0);
    options.delegates = 2;
    for (int i = 0; i < 2; i++) {
        options.delegate = i;
        p->cache[i] = start_server(&p->delegates[i], &options);
    }
}

static void open_both(pair *p, const char *name)
{
    for (int i = 0; i < 2; i++)
        p->file[i] = open_shared(p->cache[i], path_of(name), MPIOX_FILE_READABLE | MPIOX_FILE_WRITABLE, 1, 2);
}

static void finish(pair *p, const client *last)
{
    for (int i = 0; i < 2; i++) {
        CHECK_EQUAL(close_shared(p->cache[i], p->file[i]), MPIOX_OK);
        leave(p->cache[i], last->id[i]);
        CHECK_EQUAL(end_server(&p->delegates[i]), MPIOX_OK);
    }
}

/* Steps that come again, or too late, change nothing. */
static void again_and_late(void)
{
    pair p;
    int64_t version = 0;
    start(&p, "late.dat");
    const client one = join(&p);
    open_both(&p, "late.dat");
    CHECK_EQUAL(begin(&p, &one, 0, 0, &version), MPIOX_OK);
    CHECK_EQUAL(version, 1);
    CHECK_EQUAL(begin(&p, &one, 0, 0, NULL), MPIOX_E_ARG); /* it is moving */
    CHECK_EQUAL(commit(&p, &one, 0, 7), MPIOX_E_ARG);
    CHECK_EQUAL(commit(&p, &one, 1, 1), MPIOX_OK);
    CHECK_EQUAL(commit(&p, &one, 1, 1), MPIOX_OK);
    CHECK_EQUAL(moved_in(&p, 1), 1);
    CHECK_EQUAL(end(&p, &one, 0, 1), MPIOX_OK);
    CHECK_EQUAL(end(&p, &one, 0, 0), MPIOX_E_ARG);
    CHECK_EQUAL(owner_at(&p, 0), 1);
    CHECK_EQUAL(begin(&p, &one, 1, 0, &version), MPIOX_OK);
    CHECK_EQUAL(version, 2);
    CHECK_EQUAL(commit(&p, &one, 0, version), MPIOX_E_ARG); /* 7 was refused: nothing up to it is taken any more */
    CHECK_EQUAL(end(&p, &one, 1, 1), MPIOX_OK);
    CHECK_EQUAL(begin(&p, &one, 1, 8, &version), MPIOX_OK);
    CHECK_EQUAL(version, 8);
    CHECK_EQUAL(commit(&p, &one, 0, version), MPIOX_OK);
    CHECK_EQUAL(end(&p, &one, 1, 0), MPIOX_OK);
    CHECK_EQUAL(commit(&p, &one, 1, 1), MPIOX_OK); /* of the first move */
    CHECK_EQUAL(commit(&p, &one, 1, 2), MPIOX_E_ARG);
    CHECK_EQUAL(owner_at(&p, 0), 0);
    CHECK_EQUAL(owner_at(&p, 1), 0);
    CHECK_EQUAL(moved_in(&p, 1), 1);
    finish(&p, &one);
}

/* Who moves goes in the middle; another client goes on, before the new owner has the range or after that. */
static void taken_over(bool committed)
{
    pair p;
    mpiox_op_answer back;
    const char *name = committed ? "taken1.dat" : "taken0.dat";
    start(&p, name);
    client one = join(&p);
    const client other = join(&p);
    open_both(&p, name);
    CHECK_EQUAL(begin(&p, &one, 0, 0, NULL), MPIOX_OK);
    if (committed)
        CHECK_EQUAL(commit(&p, &one, 1, 1), MPIOX_OK);
    CHECK_EQUAL(end(&p, &other, 0, 0), MPIOX_E_ARG);
    CHECK_EQUAL(take_over(&p, &other, 0, NULL), MPIOX_E_ARG); /* it lives */
    gone(&p, &one);
    CHECK_EQUAL(take_over(&p, &other, 0, &back), MPIOX_OK);
    CHECK_EQUAL(back.range.owner, 1);
    CHECK_EQUAL(back.range.version, 1);
    CHECK_EQUAL(end(&p, &one, 0, 0), MPIOX_E_ARG);
    CHECK_EQUAL(commit(&p, &other, 1, 1), MPIOX_OK);
    CHECK_EQUAL(end(&p, &other, 0, 1), MPIOX_OK);
    CHECK_EQUAL(commit(&p, &one, 1, 1), MPIOX_OK); /* its last message */
    CHECK_EQUAL(moved_in(&p, 1), 1);
    CHECK_EQUAL(owner_at(&p, 0), 1);
    CHECK_EQUAL(owner_at(&p, 1), 1);
    const client reborn = join(&p); /* may have the id of the one that has gone */
    CHECK_EQUAL(begin(&p, &other, 1, 0, NULL), MPIOX_OK);
    CHECK_EQUAL(take_over(&p, &reborn, 1, NULL), MPIOX_E_ARG);
    CHECK_EQUAL(commit(&p, &other, 0, 2), MPIOX_OK);
    CHECK_EQUAL(end(&p, &other, 1, 0), MPIOX_OK);
    for (int i = 0; i < 2; i++)
        mpiox_ring_leave(p.cache[i], reborn.id[i]);
    finish(&p, &other);
}

/* A delegate has promised that it will never have the range. */
static void never(void)
{
    pair p;
    int64_t version = 0;
    start(&p, "never.dat");
    const client one = join(&p);
    open_both(&p, "never.dat");
    CHECK_EQUAL(ask_owner(&p, &one, 0, true, &version), MPIOX_OK); /* it has it: no promise */
    CHECK_EQUAL(version, 0);
    CHECK_EQUAL(ask_owner(&p, &one, 1, true, &version), MPIOX_OK);
    CHECK_EQUAL(version, MPIOX_VERSION_NEVER);
    CHECK_EQUAL(begin(&p, &one, 0, 0, &version), MPIOX_OK);
    CHECK_EQUAL(commit(&p, &one, 1, version), MPIOX_E_ARG);
    CHECK_EQUAL(commit(&p, &one, 1, (int64_t)MPIOX_VERSION_NEVER - 1), MPIOX_E_ARG);
    CHECK_EQUAL(end(&p, &one, 0, 0), MPIOX_OK);
    CHECK_EQUAL(owner_at(&p, 0), 0);
    CHECK_EQUAL(ask_owner(&p, &one, 0, false, &version), MPIOX_OK);
    CHECK_EQUAL(version, 1);
    finish(&p, &one);
}

/* As move() of a rank: all three steps. Returns what the new owner says. */
static int move(const pair *p, const client *who, int from, int64_t step, int64_t least)
{
    mpiox_op_answer begun;
    CHECK_EQUAL(step_to(p, who, from, 1 - from, step, least, &begun), MPIOX_OK);
    const mpiox_op_question commits = {.commit = {.version = begun.range.version, .stamp = begun.range.stamp}};
    const int code = ask(p, who, 1 - from, MPIOX_OP_COMMIT, commits, NULL);
    CHECK_EQUAL(end(p, who, from, code == MPIOX_OK ? 1 - from : from), MPIOX_OK);
    return code;
}

/* Delegate 0's record is made anew, delegate 1's is the one of before, which has taken over version 1 and given it
 * back: the new record's first move has version 1, too, and is another one. */
static void new_record(void)
{
    pair p;
    int64_t version = 0;
    start(&p, "new.dat");
    const client one = join(&p);
    open_both(&p, "new.dat");
    CHECK_EQUAL(move(&p, &one, 0, MPIOX_MIGRATE_BEGIN, 0), MPIOX_OK);
    CHECK_EQUAL(move(&p, &one, 1, MPIOX_MIGRATE_BEGIN, 0), MPIOX_OK);
    CHECK_EQUAL(close_shared(p.cache[0], p.file[0]), MPIOX_OK);
    p.file[0] = open_shared(p.cache[0], path_of("new.dat"), MPIOX_FILE_READABLE | MPIOX_FILE_WRITABLE, 1, 2);
    CHECK_EQUAL(owner_at(&p, 0), 0);
    CHECK_EQUAL(owner_at(&p, 1), 0);
    CHECK_EQUAL(move(&p, &one, 0, MPIOX_MIGRATE_BEGIN, 0), MPIOX_E_ARG);
    CHECK_EQUAL(owner_at(&p, 0), 0); /* not with one that sends on to 0 */
    CHECK_EQUAL(ask_owner(&p, &one, 1, false, &version), MPIOX_OK);
    CHECK_EQUAL(move(&p, &one, 0, MPIOX_MIGRATE_BEGIN, version + 1), MPIOX_OK);
    CHECK_EQUAL(owner_at(&p, 0), 1);
    CHECK_EQUAL(owner_at(&p, 1), 1);
    finish(&p, &one);
}

/* Both have it, delegate 1 of before and delegate 0's new record. Who gives it from 1 to 0 is slow: 0 has given it
 * on. */
static void repair(void)
{
    pair p;
    mpiox_op_answer answer;
    start(&p, "both.dat");
    const client one = join(&p);
    open_both(&p, "both.dat");
    CHECK_EQUAL(move(&p, &one, 0, MPIOX_MIGRATE_BEGIN, 0), MPIOX_OK);
    CHECK_EQUAL(close_shared(p.cache[0], p.file[0]), MPIOX_OK);
    p.file[0] = open_shared(p.cache[0], path_of("both.dat"), MPIOX_FILE_READABLE | MPIOX_FILE_WRITABLE, 1, 2);
    CHECK_EQUAL(owner_at(&p, 0), 0);
    CHECK_EQUAL(owner_at(&p, 1), 1);
    CHECK_EQUAL(move(&p, &one, 1, MPIOX_MIGRATE_REPAIR, 2), MPIOX_OK); /* it has it still */
    CHECK_EQUAL(moved_in(&p, 0), 0);
    CHECK_EQUAL(owner_at(&p, 1), 0);
    CHECK_EQUAL(move(&p, &one, 0, MPIOX_MIGRATE_BEGIN, 0), MPIOX_OK);
    const mpiox_op_question late = {.commit = {.version = 9, .stamp = -5}};
    CHECK_EQUAL(ask(&p, &one, 0, MPIOX_OP_COMMIT, late, &answer), MPIOX_E_ARG); /* it has it no more */
    CHECK_EQUAL(answer.range.version, 3);
    CHECK_EQUAL(owner_at(&p, 0), 1);
    CHECK_EQUAL(owner_at(&p, 1), 1);
    finish(&p, &one);
}

int main(int argc, char **argv)
{
    if (argc != 2)
        return 2;
    snprintf(folder, sizeof folder, "%s", argv[1]);
    again_and_late();
    taken_over(false);
    taken_over(true);
    never();
    new_record();
    repair();
    return check_exit();
}
