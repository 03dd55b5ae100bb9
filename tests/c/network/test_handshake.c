/*
 * test_handshake.c - the messages of a handshake, changed, exchanged, sent again and sent back; random bytes.
 *
 * usage: test_handshake [CASES [SEED]]
 */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "mpiox_handshake.h"
#include "mpiox_link_message.h"

enum { ADMITTED = MPIOX_PURPOSE_DATA | MPIOX_PURPOSE_HEARTBEAT };

typedef struct exchange { /* of a connector and a listener */
    mpiox_handshake connector, listener;
    uint8_t hello[MPIOX_HANDSHAKE_HELLO], challenge[MPIOX_HANDSHAKE_CHALLENGE], answer[MPIOX_HANDSHAKE_ANSWER];
    int64_t found;
} exchange;

static const uint64_t secret[2] = {0x0123456789abcdef, 0xfedcba9876543210};
static const int64_t token = 77;

static struct sockaddr_storage end_at(const char *host, int port)
{
    struct sockaddr_storage out;
    struct sockaddr_in *v4 = (struct sockaddr_in *)&out;
    struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)&out;
    memset(&out, 0, sizeof out);
    if (inet_pton(AF_INET, host, &v4->sin_addr) == 1) {
        v4->sin_family = AF_INET;
        v4->sin_port = htons((uint16_t)port);
    } else if (inet_pton(AF_INET6, host, &v6->sin6_addr) == 1) {
        v6->sin6_family = AF_INET6;
        v6->sin6_port = htons((uint16_t)port);
    }
    return out;
}

static void prepare(exchange *e)
{
    const struct sockaddr_storage end = end_at("10.1.2.3", 4000);
    CHECK_EQUAL(mpiox_handshake_start(secret, MPIOX_PURPOSE_DATA, &end, &e->connector), MPIOX_OK);
    CHECK_EQUAL(mpiox_handshake_start(secret, 0, &end, &e->listener), MPIOX_OK);
}

/* The whole of it. 0 or where it ended: 1 challenge, 2 answer, 3 admission. */
static int shake(exchange *e)
{
    CHECK_EQUAL(mpiox_handshake_hello(&e->connector, e->hello), MPIOX_OK);
    if (mpiox_handshake_challenge(&e->listener, ADMITTED, e->hello, e->challenge) != MPIOX_OK)
        return 1;
    if (mpiox_handshake_answer(&e->connector, e->challenge, token, e->answer) != MPIOX_OK)
        return 2;
    return mpiox_handshake_admit(&e->listener, e->answer, &e->found) == MPIOX_OK ? 0 : 3;
}

static bool holds(const void *bytes, size_t count, const void *needle, size_t length)
{
    return memmem(bytes, count, needle, length) != NULL;
}

static void check_right(void)
{
    exchange e;
    uint8_t keys[2][MPIOX_HANDSHAKE_KEY];
    uint64_t derived[2][2];
    prepare(&e);
    CHECK_EQUAL(shake(&e), 0);
    CHECK_EQUAL(e.found, token);
    CHECK_EQUAL(e.listener.purpose, MPIOX_PURPOSE_DATA);
    mpiox_handshake_session(&e.connector, keys[0]);
    mpiox_handshake_session(&e.listener, keys[1]);
    CHECK_EQUAL(memcmp(keys[0], keys[1], sizeof keys[0]), 0);
    mpiox_handshake_derive(keys[0], derived[0]);
    mpiox_handshake_derive(keys[1], derived[1]);
    CHECK_EQUAL(memcmp(derived[0], derived[1], sizeof derived[0]), 0);
    for (int half = 0; half < 2; half++) {
        CHECK(!holds(e.hello, sizeof e.hello, &secret[half], 8));
        CHECK(!holds(e.challenge, sizeof e.challenge, &secret[half], 8));
        CHECK(!holds(e.answer, sizeof e.answer, &secret[half], 8));
        CHECK(!holds(e.answer, sizeof e.answer, &derived[0][half], 8));
    }
    mpiox_handshake_wipe(&e.connector);
    CHECK_EQUAL(e.connector.key[0] | e.connector.key[31] | e.connector.nonces[1][5], 0);
}

/* Either side with another secret, address or port. */
static void check_others(void)
{
    static const struct {
        uint64_t change;
        const char *host;
        int port, where;
    } each[] = {{1, "10.1.2.3", 4000, 2}, {UINT64_C(1) << 63, "10.1.2.3", 4000, 2}, {0, "10.1.2.4", 4000, 2},
                {0, "10.1.2.3", 4001, 2}, {0, "::ffff:10.1.2.3", 4000, 0},          {0, "fd00::1", 4000, 2}};
    for (size_t i = 0; i < sizeof each / sizeof each[0]; i++) {
        exchange e;
        const uint64_t other[2] = {secret[0], secret[1] ^ each[i].change};
        const struct sockaddr_storage end = end_at(each[i].host, each[i].port);
        prepare(&e);
        CHECK_EQUAL(mpiox_handshake_start(other, 0, &end, &e.listener), MPIOX_OK);
        CHECK_EQUAL(shake(&e), each[i].where);
        prepare(&e);
        CHECK_EQUAL(mpiox_handshake_start(other, MPIOX_PURPOSE_DATA, &end, &e.connector), MPIOX_OK);
        CHECK_EQUAL(shake(&e), each[i].where);
    }
    mpiox_handshake none;
    const struct sockaddr_storage local = {.ss_family = AF_UNIX};
    CHECK_EQUAL(mpiox_handshake_start(secret, MPIOX_PURPOSE_DATA, &local, &none), MPIOX_E_ARG);
}

/* What a listener does not admit ends at the hello; a purpose that it does is the one that was proven. */
static void check_purposes(void)
{
    for (unsigned purpose = 0; purpose <= UINT16_MAX; purpose++) {
        const bool admitted = purpose == MPIOX_PURPOSE_DATA || purpose == MPIOX_PURPOSE_HEARTBEAT;
        exchange e;
        prepare(&e);
        e.connector.purpose = (uint16_t)purpose;
        CHECK_EQUAL(shake(&e), admitted ? 0 : 1);
        CHECK_EQUAL(e.listener.purpose, admitted ? purpose : 0);
    }
    exchange e;
    prepare(&e);
    CHECK_EQUAL(mpiox_handshake_hello(&e.connector, e.hello), MPIOX_OK);
    e.hello[6] = MPIOX_PURPOSE_HEARTBEAT; /* changed on its way */
    CHECK_EQUAL(mpiox_handshake_challenge(&e.listener, ADMITTED, e.hello, e.challenge), MPIOX_OK);
    CHECK_EQUAL(mpiox_handshake_answer(&e.connector, e.challenge, token, e.answer), MPIOX_E_CORRUPT);
}

/* What was recorded does not serve again, and not in the other direction. */
static void check_recorded(void)
{
    exchange e, again;
    uint8_t sent_back[MPIOX_HANDSHAKE_CHALLENGE], answer[MPIOX_HANDSHAKE_ANSWER];
    prepare(&e);
    CHECK_EQUAL(shake(&e), 0);
    prepare(&again);
    CHECK_EQUAL(mpiox_handshake_challenge(&again.listener, ADMITTED, e.hello, again.challenge), MPIOX_OK);
    CHECK(memcmp(again.challenge, e.challenge, 32) != 0);
    CHECK_EQUAL(mpiox_handshake_admit(&again.listener, e.answer, &again.found), MPIOX_E_CORRUPT);
    CHECK_EQUAL(mpiox_handshake_hello(&again.connector, again.hello), MPIOX_OK);
    CHECK_EQUAL(mpiox_handshake_answer(&again.connector, e.challenge, token, answer), MPIOX_E_CORRUPT);
    /* The listener's proof as the connector's; the connector's hello as a challenge. */
    memcpy(answer, e.challenge + 32, 32);
    memset(answer + 32, 0, sizeof answer - 32);
    CHECK_EQUAL(mpiox_handshake_admit(&e.listener, answer, &e.found), MPIOX_E_CORRUPT);
    memcpy(sent_back, again.hello + MPIOX_HANDSHAKE_HELLO - 32, 32);
    memcpy(sent_back + 32, e.answer, 32);
    CHECK_EQUAL(mpiox_handshake_answer(&again.connector, sent_back, token, answer), MPIOX_E_CORRUPT);
}

/* A proof that the listener gave to somebody between the two, for a nonce of his own, does not fit. */
static void check_every_bit(void)
{
    exchange e;
    int64_t found;
    uint8_t answer[MPIOX_HANDSHAKE_ANSWER];
    prepare(&e);
    CHECK_EQUAL(shake(&e), 0);
    for (size_t bit = 0; bit < 8 * sizeof e.answer; bit++) {
        e.answer[bit / 8] ^= (uint8_t)(1 << bit % 8);
        CHECK_EQUAL(mpiox_handshake_admit(&e.listener, e.answer, &found), MPIOX_E_CORRUPT);
        e.answer[bit / 8] ^= (uint8_t)(1 << bit % 8);
    }
    for (size_t bit = 0; bit < 8 * sizeof e.challenge; bit++) {
        e.challenge[bit / 8] ^= (uint8_t)(1 << bit % 8);
        CHECK_EQUAL(mpiox_handshake_answer(&e.connector, e.challenge, token, answer), MPIOX_E_CORRUPT);
        e.challenge[bit / 8] ^= (uint8_t)(1 << bit % 8);
    }
    CHECK_EQUAL(mpiox_handshake_admit(&e.listener, e.answer, &found), MPIOX_OK);
}

/* Seals: of this session, of this number, on these bytes. */
/* The secret of a peer is another one on the wire, each time, and comes back; other calls are not changed. */
static void check_masks(void)
{
    static const uint8_t key[MPIOX_HANDSHAKE_KEY] = {7};
    mpiox_link_call_body call = {.op = MPIOX_OP_PEER, .question.peer = {.secret = {11, 12}, .port = 13}}, first = call,
                         second = call;
    mpiox_link_mask_call(key, 1, &first);
    mpiox_link_mask_call(key, 2, &second);
    const int64_t *once = first.question.peer.secret, *twice = second.question.peer.secret;
    CHECK(once[0] != 11 && once[1] != 12 && once[0] != twice[0] && once[1] != twice[1]);
    CHECK_EQUAL(first.question.peer.port, 13);
    mpiox_link_mask_call(key, 1, &first);
    CHECK(memcmp(&first, &call, sizeof call) == 0);
    call.op = MPIOX_OP_OPEN;
    second = call;
    mpiox_link_mask_call(key, 1, &second);
    CHECK(memcmp(&second, &call, sizeof call) == 0);
}

static void check_seals(void)
{
    uint8_t keys[2][MPIOX_HANDSHAKE_KEY];
    mpiox_link_call_body call = {.op = MPIOX_OP_OPEN, .text_bytes = 5, .text = "/file", .question.open = {3, 1, 1}};
    exchange e;
    for (int i = 0; i < 2; i++) {
        prepare(&e);
        CHECK_EQUAL(shake(&e), 0);
        mpiox_handshake_session(&e.connector, keys[i]);
    }
    CHECK_EQUAL(mpiox_link_is_sealed(keys[0], 0, &call), false);
    mpiox_link_seal_call(keys[0], 4, &call);
    CHECK_EQUAL(mpiox_link_is_sealed(keys[0], 4, &call), true);
    CHECK_EQUAL(mpiox_link_is_sealed(keys[0], 5, &call), false);
    CHECK_EQUAL(mpiox_link_is_sealed(keys[1], 4, &call), false);
    call.question.open.flags = 1;
    CHECK_EQUAL(mpiox_link_is_sealed(keys[0], 4, &call), false);
    call.question.open.flags = 3;
    call.text[1] = 'F';
    CHECK_EQUAL(mpiox_link_is_sealed(keys[0], 4, &call), false);
}

/* Any bytes at any point: nothing is admitted, nothing is read too far. */
static void check_random(long cases, unsigned seed)
{
    for (srandom(seed); cases > 0; cases--) {
        exchange e;
        uint8_t bytes[64];
        prepare(&e);
        for (size_t i = 0; i < sizeof bytes; i++)
            bytes[i] = (uint8_t)random();
        CHECK_EQUAL(mpiox_handshake_hello(&e.connector, e.hello), MPIOX_OK);
        for (int n = random() % 3; n > 0; n--) /* mostly a hello that passes */
            e.hello[random() % MPIOX_HANDSHAKE_HELLO] = (uint8_t)random();
        if (mpiox_handshake_challenge(&e.listener, ADMITTED, e.hello, e.challenge) == MPIOX_OK)
            CHECK_EQUAL(mpiox_handshake_admit(&e.listener, bytes, &e.found), MPIOX_E_CORRUPT);
        CHECK_EQUAL(mpiox_handshake_answer(&e.connector, bytes, token, e.answer), MPIOX_E_CORRUPT);
    }
}

int main(int argc, char **argv)
{
    check_right();
    check_others();
    check_purposes();
    check_recorded();
    check_every_bit();
    check_seals();
    check_masks();
    check_random(argc > 1 ? atol(argv[1]) : 1000, argc > 2 ? (unsigned)atol(argv[2]) : 1);
    return check_exit();
}
