/*
 * test_link.c - links and a listener in one process: control requests, random accesses against an array of bytes,
 * several threads, two delegates with interleaved pages, failures.
 */
#include "check.h"
#include "mock.h"
#include "mpiox_link.h"

enum { FILE_BYTES = 1 << 20, PAGE = 4096 };

static mpiox_link *open_link(const mpiox_link_address *address)
{
    mpiox_link *link = NULL;
    mpiox_error error;
    CHECK_EQUAL(mpiox_link_open(address, 10, &link, &error), MPIOX_OK);
    if (link == NULL)
        abort();
    return link;
}

static int32_t open_file(mpiox_link *link, int64_t unit_pages, int64_t owners)
{
    mpiox_slot slot = {.op = MPIOX_OP_OPEN, .arg = {3, unit_pages, owners}, .text = "/file"};
    CHECK_EQUAL(mpiox_link_call(link, &slot), MPIOX_OK);
    return slot.file;
}

static void check_control(void)
{
    mock delegate;
    mpiox_listener *listener;
    mpiox_link_address address;
    mpiox_error error, errors[4];
    int more = 7;
    int64_t end = -1;
    uint64_t bits[2] = {0};
    mock_start(&delegate, PAGE, 64, 0, 1);
    CHECK_EQUAL(mpiox_listener_start(&delegate.cache, true, &listener, &address, &error), MPIOX_OK);
    mpiox_link *link = open_link(&address);
    CHECK_EQUAL(mpiox_link_page_bytes(link), PAGE);
    mpiox_slot slot = {.op = MPIOX_OP_PING};
    CHECK_EQUAL(mpiox_link_call(link, &slot), MPIOX_OK);
    CHECK_EQUAL(atomic_load(&delegate.pings), 1);
    const int32_t file = open_file(link, 1, 1);
    slot = (mpiox_slot){.op = MPIOX_OP_OPEN, .arg = {3, 1, 1}, .text = "/full"};
    CHECK_EQUAL(mpiox_link_call(link, &slot), MPIOX_E_FULL);
    slot = (mpiox_slot){.op = MPIOX_OP_PAGE, .page = 1};
    CHECK_EQUAL(mpiox_link_call(link, &slot), MPIOX_E_ARG);
    const int16_t owner[1] = {0};
    char data[3 * PAGE];
    memset(data, 'x', sizeof data);
    const mpiox_link_access access = {.file = file,
                                      .write = true,
                                      .position = 5,
                                      .length = 2 * PAGE,
                                      .memory = {.base = data},
                                      .unit_bytes = PAGE,
                                      .ranges = 1,
                                      .owner = owner};
    CHECK_EQUAL(mpiox_link_access_pages(link, &access, &error), MPIOX_OK);
    CHECK_EQUAL(mpiox_link_end(link, file, &end), MPIOX_OK);
    CHECK_EQUAL(end, 2 * PAGE + 5);
    CHECK_EQUAL(mpiox_link_has_pages(link, file, 1, 70, bits), MPIOX_OK);
    CHECK_EQUAL(bits[0], 3);
    CHECK_EQUAL(bits[1], 0);
    mpiox_error deferred = {.code = MPIOX_E_IO, .offset = 77, .what = "pwrite"};
    mpiox_cache_add_error(&delegate.cache, file, &deferred);
    CHECK_EQUAL(mpiox_link_take_errors(link, file, errors, 4, &more), 1);
    CHECK_EQUAL(errors[0].offset, 77);
    CHECK_EQUAL(more, 0);
    CHECK_EQUAL(mpiox_link_is_alive(link), true);
    mpiox_link_close(link);
    mpiox_link_close(NULL);
    while (atomic_load(&delegate.detached) == 0)
        mock_sleep(1);
    mpiox_listener_stop(listener);
    mpiox_listener_stop(NULL);
    mock_stop(&delegate);
}

int main(void)
{
    check_control();
    return check_exit();
}
