/*
 * stress.c - a request queue with thousands of requests, under sanitizers: what must hold whatever the policy.
 *
 *   stress POLICY STEPS SEED
 *
 * Requests of many files and flows come, are cancelled, and are served by several at once, so that lanes are taken over
 * and shared. Every request comes out once; one that overlaps an older one comes out after that is done.
 */
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "mpiox_schedule.h"

enum { CAPACITY = 6000, BATCH = 32, FILES = 1500 };

enum { ABSENT, WAITS, SERVED };

typedef struct known { /* by id */
    int state;
    uint64_t number;
    mpiox_schedule_request what;
} known;

static known all[CAPACITY];
static uint64_t came;
static int64_t waiting, being_served;

static uint32_t next_random(uint32_t *state)
{
    *state = *state * 1664525 + 1013904223;
    return *state >> 8;
}

static bool conflict(const mpiox_schedule_request *a, const mpiox_schedule_request *b)
{
    return a->file == b->file && (a->write || b->write) && a->offset < b->offset + b->length &&
           b->offset < a->offset + a->length;
}

/* Has everything older that it overlaps been done? */
static bool is_first(const known *mine)
{
    for (int k = 0; k < CAPACITY; k++) {
        if (all[k].state != ABSENT && all[k].number < mine->number && conflict(&all[k].what, &mine->what))
            return false;
    }
    return true;
}

static void add(mpiox_schedule *schedule, int64_t now, uint32_t *random)
{
    const uint32_t file = next_random(random) % 4 == 0 ? next_random(random) % FILES : next_random(random) % 3;
    const mpiox_schedule_request request = {.file = file,
                                            .offset = next_random(random) % 600 * 8,
                                            .length = 8 << next_random(random) % 4,
                                            .flow = next_random(random) % FILES,
                                            .weight = 1 + (int32_t)(next_random(random) % 4),
                                            .target = (int32_t)(next_random(random) % 7) - 1,
                                            .write = next_random(random) % 2 == 0,
                                            .tag = came};
    uint32_t id;
    const int code = mpiox_schedule_add(schedule, &request, now, &id);
    if (waiting + being_served == CAPACITY) {
        CHECK_EQUAL(code, MPIOX_E_FULL);
        return;
    }
    CHECK_EQUAL(code, MPIOX_OK);
    CHECK(id < CAPACITY && all[id].state == ABSENT);
    all[id] = (known){WAITS, came++, request};
    waiting++;
}

static void serve(mpiox_schedule *schedule, int64_t now, bool hurry)
{
    uint32_t ids[BATCH];
    int64_t until;
    const int32_t count = mpiox_schedule_next(schedule, now, hurry, ids, &until);
    CHECK(count >= 0 && count <= BATCH);
    CHECK(count > 0 || until > now);
    CHECK(count > 0 || !hurry || waiting == 0 || being_served > 0);
    for (int32_t i = 0; i < count; i++) {
        const known *mine = &all[ids[i]];
        CHECK_EQUAL(mine->state, WAITS);
        CHECK_EQUAL(mpiox_schedule_get(schedule, ids[i])->tag, mine->number);
        CHECK(i == 0 || all[ids[i - 1]].what.offset + all[ids[i - 1]].what.length == mine->what.offset);
        CHECK(is_first(mine));
    }
    for (int32_t i = 0; i < count; i++)
        all[ids[i]].state = SERVED;
    waiting -= count;
    being_served += count;
}

/* End one that is in this state, from somewhere on. */
static void end_one(mpiox_schedule *schedule, int state, uint32_t from)
{
    for (uint32_t i = 0; i < CAPACITY; i++) {
        const uint32_t id = (from + i) % CAPACITY;
        if (all[id].state != state)
            continue;
        CHECK_EQUAL(state == WAITS ? mpiox_schedule_done(schedule, id) : mpiox_schedule_cancel(schedule, id),
                    MPIOX_E_ARG);
        CHECK_EQUAL(state == WAITS ? mpiox_schedule_cancel(schedule, id) : mpiox_schedule_done(schedule, id), MPIOX_OK);
        *(state == WAITS ? &waiting : &being_served) -= 1;
        all[id].state = ABSENT;
        CHECK(mpiox_schedule_get(schedule, id) == NULL);
        return;
    }
}

int main(int argc, char **argv)
{
    mpiox_schedule *schedule;
    const mpiox_schedule_options options = {.policy = argc > 3 ? argv[1] : "",
                                            .capacity = CAPACITY,
                                            .quantum = 24,
                                            .window_ns = 20,
                                            .patience_ns = 5000,
                                            .batch_bytes = 200,
                                            .batch_requests = BATCH};
    if (argc <= 3 || mpiox_schedule_create(&options, &schedule) != MPIOX_OK)
        return 2;
    const int steps = atoi(argv[2]);
    uint32_t random = (uint32_t)atoi(argv[3]);
    int64_t now = 0;
    for (int step = 0; step < steps; step++) {
        const uint32_t what = next_random(&random) % 16, adds = step % 10000 < 5000 ? 13 : 5;
        now += next_random(&random) % 5;
        if (what < adds)
            add(schedule, now, &random);
        else if (what < adds + 1)
            end_one(schedule, WAITS, next_random(&random));
        else if (what % 2 == 0)
            serve(schedule, now, what == 14);
        else
            for (int i = 0; i < 8; i++)
                end_one(schedule, SERVED, next_random(&random));
        CHECK_EQUAL(mpiox_schedule_depth(schedule), waiting);
    }
    while (waiting + being_served > 0) {
        while (being_served > 0)
            end_one(schedule, SERVED, 0);
        serve(schedule, ++now, true);
    }
    mpiox_schedule_free(schedule);
    mpiox_schedule_free(NULL);
    return check_exit();
}
