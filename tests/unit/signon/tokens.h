/* tokens.h — keys, and ID tokens that are signed with them; all text is in the caller's arena. */
#ifndef TEST_SIGNON_TOKENS_H
#define TEST_SIGNON_TOKENS_H
#include "unit.h"

#include <gnutls/abstract.h>
#include <gnutls/gnutls.h>

struct arena;

gnutls_privkey_t tokens_key(gnutls_pk_algorithm_t kind, unsigned bits);

/* The public key as a set of keys holds it; `more` of its members: "", or with a comma first. */
const char *tokens_jwk(struct arena *arena, gnutls_privkey_t key, const char *more);

/* Without a key it has an empty signature. */
const char *tokens_make(struct arena *arena, const char *header, const char *claims,
                        gnutls_privkey_t key, gnutls_sign_algorithm_t how);

#endif
