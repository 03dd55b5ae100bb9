/*
 * vanish.c - the two sides of a connection between hosts, one of which vanishes.
 *
 *   vanish serve        a delegate; prints its address, port and secret, serves until it is killed
 *   vanish watch ADDRESS PORT SECRET SECRET
 *                       connects, prints "connected", writes without end; prints what happened when the delegate is
 *                       gone
 */
#include <inttypes.h>

#include "links.h"

enum { PAGE = 4096 };

static int serve(void)
{
    static mock delegate;
    mpiox_remote *listener;
    mpiox_rendezvous_address address;
    mpiox_error error;
    const mpiox_rendezvous_place place = {.interfaces = "vb"};
    uint64_t secret[2];
    mock_start(&delegate, PAGE, 50, 0, 1);
    if (mpiox_handshake_secret(secret) != MPIOX_OK ||
        mpiox_remote_start(&delegate.cache, &place, secret, &listener, &address, &error) != MPIOX_OK)
        return 1;
    printf("%s %d %" PRIu64 " %" PRIu64 "\n", address.host[0], address.port, address.secret[0], address.secret[1]);
    fflush(stdout);
    for (;;)
        pause();
}

static int watch(char **argv)
{
    station s;
    char data[PAGE] = {0};
    s.address = (mpiox_rendezvous_address){.count = 1, .port = atoi(argv[1])};
    snprintf(s.address.host[0], sizeof s.address.host[0], "%s", argv[0]);
    s.address.secret[0] = strtoull(argv[2], NULL, 10);
    s.address.secret[1] = strtoull(argv[3], NULL, 10);
    s.link = link_to(&s.address);
    s.file = open_over(s.link, 1, 1);
    const int16_t owner[] = {0};
    const mpiox_link_access access = {.file = s.file,
                                      .write = true,
                                      .length = sizeof data,
                                      .memory.base = data,
                                      .unit_bytes = PAGE,
                                      .ranges = 1,
                                      .owner = owner};
    printf("connected\n");
    fflush(stdout);
    double last = mpiox_now();
    int code;
    while ((code = mpiox_link_access_pages(s.link, &access, NULL)) == MPIOX_OK) {
        last = mpiox_now();
        mock_sleep(1);
    }
    CHECK_EQUAL(code, MPIOX_E_UNSUPPORTED);
    CHECK_EQUAL(mpiox_link_is_alive(s.link), false);
    printf("noticed after %.1f s\n", mpiox_now() - last);
    mpiox_link_close(s.link);
    return check_exit();
}

int main(int argc, char **argv)
{
    if (argc == 2 && strcmp(argv[1], "serve") == 0)
        return serve();
    if (argc == 6 && strcmp(argv[1], "watch") == 0)
        return watch(argv + 2);
    fprintf(stderr, "usage: vanish serve | watch ADDRESS PORT SECRET SECRET\n");
    return 2;
}
