/* mpiox_handshake.c - see mpiox_handshake.h. */
#include "mpiox_handshake.h"

#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/random.h>

#include "monocypher.h"

enum { CONNECTOR = 0, LISTENER = 1, LABEL_BYTES = 24 };

/* Prefixes of the hashed text: a hash for one purpose serves no other. Zeros follow. */
static const char labels[][LABEL_BYTES] = {"mpiio_ext 1 connector", "mpiio_ext 1 listener"};
static const char label_key[LABEL_BYTES] = "mpiio_ext 1 proofs", label_session[LABEL_BYTES] = "mpiio_ext 1 session",
                  label_seal[LABEL_BYTES] = "mpiio_ext 1 seal", label_secret[LABEL_BYTES] = "mpiio_ext 1 secret";

static const uint8_t magic[6] = {'M', 'X', 'H', 'S', 2, 0};

_Static_assert(sizeof magic + sizeof(uint16_t) + 32 == MPIOX_HANDSHAKE_HELLO, "magic, purpose, nonce");
_Static_assert(32 + sizeof(int64_t) == MPIOX_HANDSHAKE_ANSWER, "proof, token");

static int random_bytes(void *out, size_t bytes)
{
    ssize_t got;
    do {
        got = getrandom(out, bytes, 0);
    } while (got < 0 && errno == EINTR);
    return got == (ssize_t)bytes ? MPIOX_OK : MPIOX_E_IO;
}

/* ---- starting ---------------------------------------------------------------------------------------------------- */

/* An IPv4 address in the form of IPv6: a listener of both families sees it so. */
static int write_end(const struct sockaddr_storage *from, uint8_t out[18])
{
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
    memset(out, 0, 18);
    if (from->ss_family == AF_INET) {
        memcpy(&v4, from, sizeof v4);
        out[10] = out[11] = 0xff;
        memcpy(out + 12, &v4.sin_addr, 4);
        memcpy(out + 16, &v4.sin_port, 2);
        return MPIOX_OK;
    }
    if (from->ss_family != AF_INET6)
        return MPIOX_E_ARG;
    memcpy(&v6, from, sizeof v6);
    memcpy(out, &v6.sin6_addr, 16);
    memcpy(out + 16, &v6.sin6_port, 2);
    return MPIOX_OK;
}

int mpiox_handshake_start(const uint64_t secret[2], uint16_t purpose, const struct sockaddr_storage *end,
                          mpiox_handshake *out)
{
    memset(out, 0, sizeof *out);
    out->purpose = purpose;
    crypto_blake2b_keyed(out->key, sizeof out->key, (const uint8_t *)secret, 2 * sizeof secret[0],
                         (const uint8_t *)label_key, sizeof label_key);
    return write_end(end, out->end);
}

void mpiox_handshake_wipe(mpiox_handshake *handshake)
{
    crypto_wipe(handshake, sizeof *handshake);
}

/* ---- proofs ------------------------------------------------------------------------------------------------------ */

/* All parts have fixed lengths: no two different ones are hashed alike. */
static void prove(const mpiox_handshake *h, const char *label, int64_t token, uint8_t out[32])
{
    crypto_blake2b_ctx hash;
    crypto_blake2b_keyed_init(&hash, 32, h->key, sizeof h->key);
    crypto_blake2b_update(&hash, (const uint8_t *)label, LABEL_BYTES);
    crypto_blake2b_update(&hash, (const uint8_t *)&h->purpose, sizeof h->purpose);
    crypto_blake2b_update(&hash, h->end, sizeof h->end);
    crypto_blake2b_update(&hash, (const uint8_t *)h->nonces, sizeof h->nonces);
    crypto_blake2b_update(&hash, (const uint8_t *)&token, sizeof token);
    crypto_blake2b_final(&hash, out); /* wipes the context */
}

int mpiox_handshake_hello(mpiox_handshake *handshake, uint8_t hello[MPIOX_HANDSHAKE_HELLO])
{
    memcpy(hello, magic, sizeof magic);
    memcpy(hello + sizeof magic, &handshake->purpose, sizeof handshake->purpose);
    const int code = random_bytes(handshake->nonces[CONNECTOR], 32);
    memcpy(hello + MPIOX_HANDSHAKE_HELLO - 32, handshake->nonces[CONNECTOR], 32);
    return code;
}

int mpiox_handshake_challenge(mpiox_handshake *handshake, uint16_t purposes, const uint8_t hello[MPIOX_HANDSHAKE_HELLO],
                              uint8_t challenge[MPIOX_HANDSHAKE_CHALLENGE])
{
    uint16_t purpose;
    memcpy(&purpose, hello + sizeof magic, sizeof purpose);
    const bool is_one = purpose != 0 && (purpose & (purpose - 1)) == 0;
    if (memcmp(hello, magic, sizeof magic) != 0 || !is_one || (purpose & purposes) == 0)
        return MPIOX_E_CORRUPT;
    handshake->purpose = purpose;
    memcpy(handshake->nonces[CONNECTOR], hello + MPIOX_HANDSHAKE_HELLO - 32, 32);
    if (random_bytes(handshake->nonces[LISTENER], 32) != MPIOX_OK)
        return MPIOX_E_IO;
    memcpy(challenge, handshake->nonces[LISTENER], 32);
    prove(handshake, labels[LISTENER], 0, challenge + 32);
    return MPIOX_OK;
}

int mpiox_handshake_answer(mpiox_handshake *handshake, const uint8_t challenge[MPIOX_HANDSHAKE_CHALLENGE],
                           int64_t token, uint8_t answer[MPIOX_HANDSHAKE_ANSWER])
{
    uint8_t expected[32];
    memcpy(handshake->nonces[LISTENER], challenge, 32);
    prove(handshake, labels[LISTENER], 0, expected);
    const bool fine = mpiox_handshake_same(expected, challenge + 32);
    crypto_wipe(expected, sizeof expected);
    if (!fine)
        return MPIOX_E_CORRUPT;
    prove(handshake, labels[CONNECTOR], token, answer);
    memcpy(answer + 32, &token, sizeof token);
    return MPIOX_OK;
}

int mpiox_handshake_admit(const mpiox_handshake *handshake, const uint8_t answer[MPIOX_HANDSHAKE_ANSWER],
                          int64_t *token)
{
    uint8_t expected[32];
    memcpy(token, answer + 32, sizeof *token);
    prove(handshake, labels[CONNECTOR], *token, expected);
    const bool fine = mpiox_handshake_same(expected, answer);
    crypto_wipe(expected, sizeof expected);
    return fine ? MPIOX_OK : MPIOX_E_CORRUPT;
}

/* ---- afterwards -------------------------------------------------------------------------------------------------- */

void mpiox_handshake_session(const mpiox_handshake *handshake, uint8_t key[MPIOX_HANDSHAKE_KEY])
{
    prove(handshake, label_session, 0, key);
}

void mpiox_handshake_seal(const uint8_t key[MPIOX_HANDSHAKE_KEY], uint64_t number, const void *bytes, int64_t count,
                          uint8_t seal[32])
{
    crypto_blake2b_ctx hash;
    crypto_blake2b_keyed_init(&hash, 32, key, MPIOX_HANDSHAKE_KEY);
    crypto_blake2b_update(&hash, (const uint8_t *)label_seal, sizeof label_seal);
    crypto_blake2b_update(&hash, (const uint8_t *)&number, sizeof number);
    crypto_blake2b_update(&hash, bytes, (size_t)count);
    crypto_blake2b_final(&hash, seal);
}

bool mpiox_handshake_same(const uint8_t a[32], const uint8_t b[32])
{
    return crypto_verify32(a, b) == 0;
}

int mpiox_handshake_secret(uint64_t secret[2])
{
    return random_bytes(secret, 2 * sizeof secret[0]);
}

void mpiox_handshake_derive(const uint8_t key[MPIOX_HANDSHAKE_KEY], uint64_t secret[2])
{
    crypto_blake2b_keyed((uint8_t *)secret, 2 * sizeof secret[0], key, MPIOX_HANDSHAKE_KEY,
                         (const uint8_t *)label_secret, sizeof label_secret);
}
