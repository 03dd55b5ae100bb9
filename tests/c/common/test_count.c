/*
 * test_count.c - additions are not locked while one thread at a time can make them, and none is lost once a worker has
 * been started, whatever is asked for later.
 */
#include "check.h"
#include "mpiox_count.h"
#include "mpiox_worker.h"

enum { ADDITIONS = 200000 };

static _Atomic int64_t counter;

static void add(mpiox_task *task)
{
    (void)task;
    for (int i = 0; i < ADDITIONS; i++)
        mpiox_count(&counter, 1);
}

int main(void)
{
    mpiox_worker *worker = mpiox_worker_create(false);
    mpiox_task task = {.run = add};

    CHECK(!mpiox_count_is_plain); /* nobody has said that there is one thread */
    mpiox_count_one_thread();
    CHECK(mpiox_count_is_plain);
    add(NULL);
    CHECK_EQUAL(counter, ADDITIONS);

    CHECK(worker != NULL && mpiox_worker_submit(worker, &task));
    add(NULL);
    mpiox_worker_free(worker);
    CHECK_EQUAL(counter, 3 * ADDITIONS);
    CHECK(!mpiox_count_is_plain);
    mpiox_count_one_thread();
    CHECK(!mpiox_count_is_plain);
    return check_exit();
}
