/* jwks.h — the keys of a provider (RFC 7517), and signatures by them (RFC 7515).
 *
 * Edge: the arithmetic is GnuTLS's. Only keys for signatures of the algorithms below are taken;
 * others of the set are passed over. Symmetric keys and algorithms have no place here: a signature
 * that whoever knows our secret could make would prove nothing.
 */
#ifndef SIGNON_JWKS_H
#define SIGNON_JWKS_H
#include "base/text.h"
#include <stdbool.h>
#include <stddef.h>

struct err;
struct jwks;

enum { JWKS_KEYS_MAX = 64, JWKS_RSA_BITS_MIN = 2048, JWKS_RSA_BITS_MAX = 8192 };

enum jws_algorithm { JWS_RS256, JWS_PS256, JWS_ES256, JWS_ALGORITHM_COUNT };
/* By its name in a header; false: none that is accepted ("none" and HS256 among them). */
bool jws_algorithm_of(struct text name, enum jws_algorithm *algorithm);

/* A set without a key that can be used is a set. ERR_INVALID: it is no set. ERR_TOO_BIG. */
int jwks_read(struct text json, struct jwks **jwks, struct err *err);
void jwks_free(struct jwks *jwks);
size_t jwks_count(const struct jwks *jwks); /* keys that can be used */

/* Is it the signature of `content` by one of the keys? `id` of the key; at == NULL: any.
 * ERR_NOT_FOUND: there is no such key. ERR_UNAUTHORIZED: it is not. */
int jwks_verify(const struct jwks *jwks, enum jws_algorithm algorithm, struct text id,
                struct text content, struct text signature, struct err *err);

/* Base64url without padding, in the arena. */
struct arena;
int base64url_decode(struct text encoded, struct arena *arena, struct text *bytes);

#endif
