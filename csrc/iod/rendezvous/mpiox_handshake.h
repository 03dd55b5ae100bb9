/*
 * mpiox_handshake.h - both sides of a connection prove that they know the secret, before they send anything else.
 *
 * Problem.   Any user of the network can listen where a client expects a delegate, and can connect to a delegate. A
 *            client that sends the secret gives it to any listener; a proof that does not depend on this very
 *            connection can be recorded and sent again, or sent back.
 * Algorithm. Challenge and response, three messages. The connector sends a random nonce. The listener answers with a
 *            nonce of its own and its proof, the connector with its proof. A proof is a keyed BLAKE2b over: its side,
 *            the purpose, the address and port that the connector called, both nonces, and (the connector's) its token.
 *            The key is derived from the secret.
 * Guarantee. The secret is in no message. The connector sends only a nonce and its purpose before the listener has
 *            proven itself. A recorded message fits no other connection, nor the other direction, nor another purpose,
 *            and a message that is relayed from another address does not fit either. Proofs are compared in constant
 *            time. Later bytes of the connection are neither encrypted nor authenticated; only openings of files carry
 *            a seal, by a key of the session (docs/explanation/security.md).
 * Source.    Mutual authentication by keyed hashes, ISO/IEC 9798-4, section 6.2; BLAKE2: RFC 7693.
 *
 * Nothing here sends or receives. Local; each function may be called by any thread.
 */
#ifndef MPIOX_HANDSHAKE_H
#define MPIOX_HANDSHAKE_H

#include <stdbool.h>
#include <stdint.h>

#include "mpiox_error.h"

struct sockaddr_storage;

enum {
    MPIOX_HANDSHAKE_KEY = 32,
    MPIOX_HANDSHAKE_HELLO = 40,     /* bytes of the connector's first message */
    MPIOX_HANDSHAKE_CHALLENGE = 64, /* of the listener's */
    MPIOX_HANDSHAKE_ANSWER = 40     /* of the connector's second one */
};

/* The purpose of a connection; a listener admits one or more purposes. */
enum mpiox_purpose {
    MPIOX_PURPOSE_DATA = 1,      /* a client's requests to a delegate: mpiox_link.h */
    MPIOX_PURPOSE_HEARTBEAT = 2, /* of that client; token: its connection for data */
    MPIOX_PURPOSE_LIVENESS = 4,  /* a client queries the state of a delegate: mpiox_process_liveness.h */
    MPIOX_PURPOSE_CALL = 8       /* a spawned process calls rank 0; token: its number: mpiox_service_call.h */
};

typedef struct mpiox_handshake {
    uint8_t key[MPIOX_HANDSHAKE_KEY]; /* of the secret */
    uint16_t purpose;                 /* the connector's; at the listener 0 until the hello has arrived */
    uint8_t end[18];                  /* address (IPv4: mapped) and port of the listener */
    uint8_t nonces[2][32];            /* of the connector and of the listener */
} mpiox_handshake;

/* end: the listener's, by getpeername() of the connector, getsockname() of the listener. purpose: 0 at the listener.
 * The secret is one of 128 bits. 0 or MPIOX_E_ARG (not of IPv4 or IPv6). */
int mpiox_handshake_start(const uint64_t secret[2], uint16_t purpose, const struct sockaddr_storage *end,
                          mpiox_handshake *out);
/* Forget keys and nonces. */
void mpiox_handshake_wipe(mpiox_handshake *handshake);

/* The connector: its hello. 0 or MPIOX_E_IO (no random numbers). */
int mpiox_handshake_hello(mpiox_handshake *handshake, uint8_t hello[MPIOX_HANDSHAKE_HELLO]);
/* The listener: the challenge to a hello for one of `purposes`. 0, MPIOX_E_CORRUPT (none of ours) or MPIOX_E_IO. */
int mpiox_handshake_challenge(mpiox_handshake *handshake, uint16_t purposes, const uint8_t hello[MPIOX_HANDSHAKE_HELLO],
                              uint8_t challenge[MPIOX_HANDSHAKE_CHALLENGE]);
/* The connector: the answer. 0, or MPIOX_E_CORRUPT: the listener does not know the secret, or is not where we have
 * called. Then *answer is not written. */
int mpiox_handshake_answer(mpiox_handshake *handshake, const uint8_t challenge[MPIOX_HANDSHAKE_CHALLENGE],
                           int64_t token, uint8_t answer[MPIOX_HANDSHAKE_ANSWER]);
/* The listener: is it one of ours, and with which token? 0 or MPIOX_E_CORRUPT. */
int mpiox_handshake_admit(const mpiox_handshake *handshake, const uint8_t answer[MPIOX_HANDSHAKE_ANSWER],
                          int64_t *token);

/* Both, afterwards: a key that only the two sides of this connection know. */
void mpiox_handshake_session(const mpiox_handshake *handshake, uint8_t key[MPIOX_HANDSHAKE_KEY]);
/* A seal on bytes: the `number`-th of a session. */
void mpiox_handshake_seal(const uint8_t key[MPIOX_HANDSHAKE_KEY], uint64_t number, const void *bytes, int64_t count,
                          uint8_t seal[32]);
/* Equal, in a time that does not depend on where they differ. */
bool mpiox_handshake_same(const uint8_t a[32], const uint8_t b[32]);

/* A new secret. 0 or MPIOX_E_IO. */
int mpiox_handshake_secret(uint64_t secret[2]);
/* A secret that both sides of a session can make, so that it need not be sent. */
void mpiox_handshake_derive(const uint8_t key[MPIOX_HANDSHAKE_KEY], uint64_t secret[2]);

#endif
