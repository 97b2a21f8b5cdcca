/* id_token.h — is this what the provider says of who logs in, for us, and for this login?
 *
 * Rules: OpenID Connect Core 1.0, 3.1.3.7; RFC 7519; RFC 8725 (the algorithms are ours to choose,
 * never the token's).
 */
#ifndef SIGNON_ID_TOKEN_H
#define SIGNON_ID_TOKEN_H
#include "base/text.h"
#include <stdint.h>

struct arena;
struct doc;
struct err;
struct jwks;

enum {
    ID_TOKEN_MAX = 64 << 10,
    ID_TOKEN_SKEW_S = 60, /* by which the clocks may differ */
    ID_TOKEN_AGE_S = 600, /* of one that is shown: it was made for this login */
    ID_TOKEN_SUBJECT_MAX = 255,
};

struct id_token_rules {
    const char *issuer, *client_id;
    const char *nonce; /* NULL: there was none, as no browser of ours asked for it */
    int64_t now_s;
};

/* The claims, in the arena. ERR_NOT_FOUND: it names a key that the provider did not have when its
 * keys were read. ERR_UNAUTHORIZED: it is not good; the text says why. */
int id_token_check(struct text token, const struct jwks *keys, const struct id_token_rules *rules,
                   struct arena *arena, const struct doc **claims, struct err *err);

#endif
