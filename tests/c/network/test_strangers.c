/*
 * test_strangers.c - others at the doors of a delegate: one who listens first and records, one who sends again what he
 * has recorded, openings without a seal, floods, a process without descriptors.
 *
 * Counts accepted connections and calls of accept(), never times.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/resource.h>

#include "links.h"
#include "mpiox_link_message.h"

enum { PAGE = 4096, ROOM = 64 /* of unauthenticated peers, with the limit of descriptors set below */ };

static struct sockaddr_in at(const char *host, int port)
{
    struct sockaddr_in out = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    inet_pton(AF_INET, host, &out.sin_addr);
    return out;
}

static int connect_to(int port)
{
    const struct sockaddr_in to = at("127.0.0.1", port);
    const int fd = socket(AF_INET, SOCK_STREAM, 0);
    if (fd < 0 || connect(fd, (const struct sockaddr *)&to, sizeof to) != 0)
        abort();
    return fd;
}

/* ---- somebody else listens where a client looks ------------------------------------------------------------------ */

typedef struct stranger { /* listens at 127.0.0.2 with the delegate's port, answers, keeps what he hears */
    int fd, victim;       /* victim: a port to which all is relayed, or 0 */
    int answers;          /* bytes of garbage that he answers with; -1: hangs up */
    pthread_t thread;
    size_t received;
    char record[4096];
} stranger;

/* Both ways, until one side ends. */
static void relay(stranger *s, int client)
{
    struct pollfd ends[2] = {{.fd = client, .events = POLLIN}, {.fd = connect_to(s->victim), .events = POLLIN}};
    for (bool over = false; !over && poll(ends, 2, 5000) > 0;) {
        for (int i = 0; i < 2 && !over; i++) {
            char bytes[1024];
            const ssize_t got = ends[i].revents != 0 ? recv(ends[i].fd, bytes, sizeof bytes, 0) : 0;
            over = ends[i].revents != 0 && got <= 0;
            if (got > 0 && i == 0 && s->received + (size_t)got <= sizeof s->record) {
                memcpy(s->record + s->received, bytes, (size_t)got);
                s->received += (size_t)got;
            }
            if (got > 0)
                (void)!send(ends[1 - i].fd, bytes, (size_t)got, MSG_NOSIGNAL);
        }
    }
    close(ends[1].fd);
}

static void *answer_all(void *context)
{
    stranger *s = context;
    char garbage[256];
    memset(garbage, 'g', sizeof garbage);
    for (;;) {
        const int client = accept(s->fd, NULL, NULL);
        if (client < 0)
            return NULL;
        if (s->victim != 0)
            relay(s, client);
        else if (s->answers > 0)
            (void)!send(client, garbage, (size_t)s->answers, MSG_NOSIGNAL);
        for (ssize_t got = 1; s->victim == 0 && s->answers >= 0 && got > 0 && s->received < sizeof s->record;) {
            got = recv(client, s->record + s->received, sizeof s->record - s->received, 0);
            s->received += got > 0 ? (size_t)got : 0;
        }
        close(client);
    }
}

static void stranger_start(stranger *s, int port, int answers, int victim)
{
    const struct sockaddr_in here = at("127.0.0.2", port);
    *s = (stranger){.fd = socket(AF_INET, SOCK_STREAM, 0), .answers = answers, .victim = victim};
    if (s->fd < 0 || bind(s->fd, (const struct sockaddr *)&here, sizeof here) != 0 || listen(s->fd, 16) != 0 ||
        pthread_create(&s->thread, NULL, answer_all, s) != 0)
        abort();
}

static void stranger_stop(stranger *s)
{
    shutdown(s->fd, SHUT_RDWR);
    pthread_join(s->thread, NULL);
    close(s->fd);
}

/* The impostor's address comes first. Whatever it does, the client reaches the delegate, and it learns nothing. */
static void check_listens_first(int answers, bool relays)
{
    station s;
    stranger other;
    station_start(&s, PAGE, 8, 0, 1, 1);
    stranger_start(&other, s.address.port, answers, relays ? s.address.port : 0);
    mpiox_rendezvous_address both = s.address;
    both.count = 2;
    snprintf(both.host[0], sizeof both.host[0], "127.0.0.2");
    snprintf(both.host[1], sizeof both.host[1], "127.0.0.1");
    mpiox_link *link = link_to(&both);
    mpiox_slot slot = {.op = MPIOX_OP_PING};
    CHECK_EQUAL(mpiox_link_call(link, &slot), MPIOX_OK);
    CHECK_EQUAL(atomic_load(&s.delegate.pings), 1);
    mpiox_link_close(link);
    station_stop(&s);
    stranger_stop(&other);
    CHECK(answers < 0 || other.received >= MPIOX_HANDSHAKE_HELLO);
    CHECK(other.received % MPIOX_HANDSHAKE_HELLO == 0); /* hellos, and nothing else */
    for (int half = 0; half < 2; half++)
        CHECK(memmem(other.record, other.received, &s.address.secret[half], 8) == NULL);
}

static void check_only_a_stranger(void)
{
    station s;
    stranger other;
    mpiox_link *link = NULL;
    mpiox_error error = {.code = 0};
    station_start(&s, PAGE, 8, 0, 1, 1);
    stranger_start(&other, s.address.port, MPIOX_HANDSHAKE_CHALLENGE, 0);
    mpiox_rendezvous_address elsewhere = s.address;
    snprintf(elsewhere.host[0], sizeof elsewhere.host[0], "127.0.0.2");
    CHECK_EQUAL(mpiox_link_open(&elsewhere, 20, &link, &error), MPIOX_E_IO);
    CHECK_EQUAL(error.sys_errno, EACCES);
    station_stop(&s);
    stranger_stop(&other);
}

/* ---- what was recorded, sent again ------------------------------------------------------------------------------- */

/* A client's bytes, from a connection of its own that really was admitted. */
static void check_replayed(void)
{
    station s;
    uint8_t hello[MPIOX_HANDSHAKE_HELLO], challenge[MPIOX_HANDSHAKE_CHALLENGE], answer[MPIOX_HANDSHAKE_ANSWER];
    char byte;
    station_start(&s, PAGE, 8, 0, 1, 1);
    for (int again = 0; again < 2; again++) {
        const int fd = connect_to(s.address.port);
        if (again == 0) {
            struct sockaddr_storage end;
            socklen_t bytes = sizeof end;
            mpiox_handshake h;
            CHECK_EQUAL(getpeername(fd, (struct sockaddr *)&end, &bytes), 0);
            CHECK_EQUAL(mpiox_handshake_start(s.address.secret, MPIOX_PURPOSE_DATA, &end, &h), MPIOX_OK);
            CHECK_EQUAL(mpiox_handshake_hello(&h, hello), MPIOX_OK);
            CHECK_EQUAL(send(fd, hello, sizeof hello, 0), sizeof hello);
            CHECK_EQUAL(recv(fd, challenge, sizeof challenge, MSG_WAITALL), sizeof challenge);
            CHECK_EQUAL(mpiox_handshake_answer(&h, challenge, 0, answer), MPIOX_OK);
        } else {
            CHECK_EQUAL(send(fd, hello, sizeof hello, 0), sizeof hello);
            CHECK_EQUAL(recv(fd, challenge, sizeof challenge, MSG_WAITALL), sizeof challenge);
        }
        CHECK_EQUAL(send(fd, answer, sizeof answer, MSG_NOSIGNAL), sizeof answer);
        CHECK_EQUAL(recv(fd, &byte, 1, MSG_WAITALL), again == 0 ? 1 : 0); /* welcome, or the end */
        close(fd);
    }
    station_stop(&s);
}

/* One who has taken over an admitted connection opens nothing. */
static void check_unsealed(void)
{
    station s;
    mpiox_link_message welcome;
    mpiox_link_call_body call = {
        .op = MPIOX_OP_OPEN, .text_bytes = 11, .text = "/etc/shadow", .question.open = {3, 1, 1}};
    mpiox_rendezvous_wish wish = {.purpose = MPIOX_PURPOSE_DATA, .welcome = &welcome, .welcome_bytes = sizeof welcome};
    station_start(&s, PAGE, 8, 0, 1, 1);
    const int fd = mpiox_rendezvous_connect(&s.address, 20, &wish, NULL);
    const int32_t openers = atomic_load(&s.delegate.cache.header->files[0].openers);
    for (int i = 0; i < 4; i++) { /* none; a random one; the right one; the right one again */
        mpiox_link_message head = {.magic = MPIOX_LINK_MAGIC,
                                   .version = MPIOX_LINK_VERSION,
                                   .op = MPIOX_LINK_CALL,
                                   .number = (uint32_t)i,
                                   .bytes = sizeof call};
        mpiox_link_call_body answer;
        if (i == 1)
            memset(call.seal, 'r', sizeof call.seal);
        if (i == 2)
            mpiox_link_seal_call(wish.session, 2, &call);
        CHECK_EQUAL(send(fd, &head, sizeof head, 0), sizeof head);
        CHECK_EQUAL(send(fd, &call, sizeof call, 0), sizeof call);
        CHECK_EQUAL(recv(fd, &head, sizeof head, MSG_WAITALL), sizeof head);
        CHECK_EQUAL(recv(fd, &answer, sizeof answer, MSG_WAITALL), sizeof answer);
        CHECK_EQUAL(answer.result, i == 2 ? MPIOX_OK : MPIOX_E_ARG);
        CHECK_EQUAL(answer.error.sys_errno, i == 2 ? 0 : EACCES);
    }
    CHECK_EQUAL(atomic_load(&s.delegate.cache.header->files[0].openers), openers + 1);
    close(fd);
    station_stop(&s);
}

/* ---- too many ---------------------------------------------------------------------------------------------------- */

typedef struct door { /* a listener that a thread attends to */
    mpiox_rendezvous_place place;
    mpiox_rendezvous_address address;
    mpiox_rendezvous *rendezvous;
    pthread_t thread;
    atomic_bool over;
    bool full; /* at first */
} door;

static int listening_at(int port)
{
    for (int fd = 0; fd < 1024; fd++) {
        struct sockaddr_in here = {.sin_port = 0};
        socklen_t bytes = sizeof here, size = sizeof(int);
        int listens = 0;
        if (getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &size) == 0 && listens &&
            getsockname(fd, (struct sockaddr *)&here, &bytes) == 0 && ntohs(here.sin_port) == port)
            return fd;
    }
    abort();
}

/* Whoever reads the connection reads no secret of a delegate: neither in the question nor in the answer. */
static void check_answer_without_secret(void)
{
    const int64_t secret[2] = {0x1122334455667788, 0x0102030405060708};
    mpiox_link_message welcome, head = {.magic = MPIOX_LINK_MAGIC,
                                        .version = MPIOX_LINK_VERSION,
                                        .op = MPIOX_LINK_CALL,
                                        .number = 1,
                                        .bytes = sizeof(mpiox_link_call_body)};
    mpiox_rendezvous_wish wish = {.purpose = MPIOX_PURPOSE_DATA, .welcome = &welcome, .welcome_bytes = sizeof welcome};
    mpiox_link_call_body call = {.op = MPIOX_OP_PEER,
                                 .text_bytes = 9,
                                 .text = "127.0.0.1",
                                 .question.peer = {.secret = {secret[0], secret[1]}, .port = 9}},
                         answer;
    station s;
    station_start(&s, PAGE, 8, 0, 1, 1);
    const int fd = mpiox_rendezvous_connect(&s.address, 20, &wish, NULL);
    mpiox_link_mask_call(wish.session, 0, &call);
    mpiox_link_seal_call(wish.session, 0, &call);
    CHECK_EQUAL(send(fd, &head, sizeof head, MSG_NOSIGNAL), sizeof head);
    CHECK_EQUAL(send(fd, &call, sizeof call, MSG_NOSIGNAL), sizeof call);
    CHECK_EQUAL(recv(fd, &head, sizeof head, MSG_WAITALL), sizeof head);
    CHECK_EQUAL(recv(fd, &answer, sizeof answer, MSG_WAITALL), sizeof answer);
    CHECK_EQUAL(answer.op, MPIOX_OP_PEER);
    for (int i = 0; i < 2; i++) {
        CHECK(call.question.peer.secret[i] != secret[i]);
        CHECK_EQUAL(answer.question.peer.secret[i], 0);
    }
    close(fd);
    station_stop(&s);
}

/* Each value beyond a limit of mpiox_op.h is refused, and the limit itself is not. */
static void check_limits(void)
{
    const int64_t all = 2 * MPIOX_FILE_PAST - 1 - MPIOX_FILE_DRAINING;
    const struct {
        int32_t op;
        bool legal;
        mpiox_op_question question;
    } rows[] = {
        {MPIOX_OP_OPEN, true, {.open = {.flags = all, .unit_pages = 1, .owners = 1}}},
        {MPIOX_OP_OPEN, false, {.open = {.flags = MPIOX_FILE_DRAINING, .unit_pages = 1, .owners = 1}}},
        {MPIOX_OP_OPEN, false, {.open = {.flags = 2 * MPIOX_FILE_PAST, .unit_pages = 1, .owners = 1}}},
        {MPIOX_OP_OPEN, false, {.open = {.flags = -1, .unit_pages = 1, .owners = 1}}},
        {MPIOX_OP_OPEN, false, {.open = {.unit_pages = 1, .owners = 1, .shift = -1}}},
        {MPIOX_OP_OPEN, false, {.open = {.unit_pages = 1, .owners = 1, .shift = MPIOX_FILE_RANGES}}},
        {MPIOX_OP_OPEN, false, {.open = {.unit_pages = 1, .owners = 1, .servers = -1}}},
        {MPIOX_OP_OPEN, false, {.open = {.unit_pages = 1, .owners = 1, .weight = INT64_C(1) << 31}}},
        {MPIOX_OP_OPEN, false, {.open = {.unit_pages = 1, .owners = 1, .drain_rate = -1}}},
        {MPIOX_OP_OPEN, false, {.open = {.unit_pages = 1, .owners = 1, .drain_patience = -1}}},
        {MPIOX_OP_OPEN, false, {.open = {.unit_pages = 1, .owners = 1, .drain_even = 2}}},
        {MPIOX_OP_CLOSE, true, {.close = {.how = MPIOX_CLOSING_BEHIND, .of_hold = 1}}},
        {MPIOX_OP_CLOSE, false, {.close = {.of_hold = 2}}},
        {MPIOX_OP_FLUSH, true, {.flush = {.end = 1, .stable = 1}}},
        {MPIOX_OP_FLUSH, false, {.flush = {.end = 1, .stable = 2}}},
        {MPIOX_OP_DISCARD, true, {.discard = {.byte = 0}}},
        {MPIOX_OP_DISCARD, false, {.discard = {.byte = -1}}},
        {MPIOX_OP_PAGE, false, {.page = {.page = 1}}},
        {MPIOX_OP_DETACH, false, {.detach = {.client = 1}}},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        CHECK_EQUAL(mpiox_op_is_legal(rows[i].op, &rows[i].question), rows[i].legal);
}

static void *attend(void *context)
{
    door *d = context;
    if (d->full) { /* whoever comes first has to go */
        struct pollfd waits = {.fd = listening_at(d->address.port), .events = POLLIN};
        poll(&waits, 1, -1);
        close(accept(waits.fd, NULL, NULL));
    }
    mpiox_rendezvous_peer one;
    struct pollfd wanted = {.fd = mpiox_rendezvous_fd(d->rendezvous), .events = POLLIN};
    while (!atomic_load(&d->over)) {
        poll(&wanted, 1, 100);
        while (mpiox_rendezvous_next(d->rendezvous, &one)) {
            (void)!send(one.fd, "H", 1, MSG_NOSIGNAL);
            close(one.fd);
        }
    }
    return NULL;
}

static void door_open(door *d, bool full)
{
    *d = (door){.place.loopback = true, .full = full};
    uint64_t secret[2];
    CHECK_EQUAL(mpiox_handshake_secret(secret), MPIOX_OK);
    CHECK_EQUAL(mpiox_rendezvous_open(&d->place, MPIOX_PURPOSE_LIVENESS, secret, &d->rendezvous, &d->address, NULL),
                MPIOX_OK);
    CHECK_EQUAL(pthread_create(&d->thread, NULL, attend, d), 0);
}

static mpiox_rendezvous_counts door_close(door *d)
{
    atomic_store(&d->over, true);
    pthread_join(d->thread, NULL);
    const mpiox_rendezvous_counts counts = mpiox_rendezvous_count(d->rendezvous);
    mpiox_rendezvous_close(d->rendezvous);
    mpiox_rendezvous_close(NULL);
    return counts;
}

/* One of the job's comes in. */
static void visit(const door *d)
{
    char word = 0;
    mpiox_error error = {.code = 0};
    mpiox_rendezvous_wish wish = {.purpose = MPIOX_PURPOSE_LIVENESS, .welcome = &word, .welcome_bytes = 1};
    const int fd = mpiox_rendezvous_connect(&d->address, 60, &wish, &error);
    CHECK(fd >= 0);
    CHECK_EQUAL(word, 'H');
    if (fd >= 0)
        close(fd);
}

/* The delegate hangs up once, having no room, while somebody at another of its addresses says nothing. */
static void check_no_room_beside_a_silent_one(void)
{
    stranger other;
    door d;
    door_open(&d, true);
    stranger_start(&other, d.address.port, 0, 0);
    snprintf(d.address.host[0], sizeof d.address.host[0], "127.0.0.1");
    snprintf(d.address.host[1], sizeof d.address.host[1], "127.0.0.2");
    d.address.count = 2;
    visit(&d);
    CHECK_EQUAL(door_close(&d).admitted, 1);
    stranger_stop(&other);
}

/* Silent ones, half a hello, a whole one, garbage: many more than there is room for, and they stay. */
static void check_flood(void)
{
    enum { STRANGERS = 300, VISITS = 20 };
    static const char *const answer[] = {"", "MXHS", "GET / HTTP/1.1\r\nHost: example\r\nUser-Agent: nobody\r\n\r\n"};
    int fds[STRANGERS];
    door d;
    door_open(&d, false);
    for (int i = 0; i < STRANGERS; i++) {
        const char *text = answer[i % 3];
        fds[i] = connect_to(d.address.port);
        (void)!send(fds[i], text, strlen(text), MSG_NOSIGNAL);
        if (i % (STRANGERS / VISITS) == 0)
            visit(&d);
    }
    for (int i = 0; i < VISITS; i++)
        visit(&d);
    const mpiox_rendezvous_counts counts = door_close(&d);
    CHECK_EQUAL(counts.admitted, 2 * VISITS);
    CHECK(counts.replaced > 0);
    CHECK(counts.refused >= STRANGERS / 3);
    CHECK(counts.accepts <= 2 * (STRANGERS + 2 * VISITS) + counts.pauses); /* one that takes, one that finds none */
    for (int i = 0; i < STRANGERS; i++)
        close(fds[i]);
}

/* Clients who all come at once are let in, all of them. */
static void *visit_often(void *context)
{
    for (int i = 0; i < 10; i++)
        visit(context);
    return NULL;
}

static void check_rush(void)
{
    enum { VISITORS = 2 * ROOM };
    pthread_t threads[VISITORS];
    door d;
    door_open(&d, false);
    for (int i = 0; i < VISITORS; i++)
        CHECK_EQUAL(pthread_create(&threads[i], NULL, visit_often, &d), 0);
    for (int i = 0; i < VISITORS; i++)
        pthread_join(threads[i], NULL);
    const mpiox_rendezvous_counts counts = door_close(&d);
    CHECK_EQUAL(counts.admitted, 10 * VISITORS);
}

/* No descriptor is left but the reserve: a client comes in, nothing spins; when there are some again others do. */
static void check_descriptors(void)
{
    int taken[2048], count = 0;
    door d;
    door_open(&d, false);
    const int waiting[] = {socket(AF_INET, SOCK_STREAM, 0), socket(AF_INET, SOCK_STREAM, 0)};
    const struct sockaddr_in to = at("127.0.0.1", d.address.port);
    while (count < 2048 && (taken[count] = dup(0)) >= 0)
        count++;
    CHECK_EQUAL(errno, EMFILE);
    for (int i = 0; i < 2; i++)
        CHECK_EQUAL(connect(waiting[i], (const struct sockaddr *)&to, sizeof to), 0);
    mock_sleep(1000);
    const mpiox_rendezvous_counts counts = mpiox_rendezvous_count(d.rendezvous); /* read while it is being written */
    CHECK(counts.accepts >= 2);
    CHECK(counts.accepts < 200);
    while (count > 0)
        close(taken[--count]);
    visit(&d);
    visit(&d);
    CHECK_EQUAL(door_close(&d).admitted, 2);
    close(waiting[0]);
    close(waiting[1]);
}

int main(void)
{
    const struct rlimit limit = {1024, 1024};
    if (setrlimit(RLIMIT_NOFILE, &limit) != 0)
        return 1;
    check_listens_first(0, false);
    check_listens_first(10, false);
    check_listens_first(MPIOX_HANDSHAKE_CHALLENGE, false);
    check_listens_first(-1, false);
    check_listens_first(0, true);
    check_only_a_stranger();
    check_replayed();
    check_unsealed();
    check_answer_without_secret();
    check_limits();
    check_no_room_beside_a_silent_one();
    check_flood();
    check_rush();
    check_descriptors();
    return check_exit();
}
