/* oidc.h — OpenID Connect, the relying party's side: the code flow with PKCE, and device codes.
 *
 * Edge. Asks the provider by fetch.h, so every function but the first two blocks. One thread at a
 * time. What the provider says of itself (discovery) and its keys are asked for when they are
 * needed, and again after OIDC_KEEP_S; its keys also when a token names one that is not known, at
 * most once in OIDC_KEYS_AGAIN_S. After a failure the provider is left alone for OIDC_PAUSE_S.
 *
 * Rules: OpenID Connect Core 1.0, Discovery 1.0, RP-Initiated Logout 1.0; RFC 6749, 7636 (PKCE),
 * 8628 (device codes), 9207.
 */
#ifndef SIGNON_OIDC_H
#define SIGNON_OIDC_H
#include "base/text.h"
#include "signon/identity.h"
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

struct arena;
struct buf;
struct err;
struct oidc;

enum {
    OIDC_KEEP_S = 3600,
    OIDC_KEYS_AGAIN_S = 5,
    OIDC_PAUSE_S = 5,
    OIDC_SECRET_MAX = 1024,
    OIDC_CODE_MAX = 2048,
    OIDC_ISSUER_MAX = 512,
    OIDC_DEVICE_S_MAX = 3600, /* that a device code lives, whatever the provider says */
    OIDC_INTERVAL_S = 5,      /* between two questions, when the provider does not say */
    OIDC_INTERVAL_S_MAX = 60,
};

struct oidc_config { /* strings are borrowed */
    const char *issuer, *client_id;
    const char *secret_file; /* NULL: a public client */
    const char *ca_file;     /* as of struct fetch */
    const char *return_url;  /* to which the provider sends browsers back */
    const char *const *scopes;
    size_t scope_count;
    const char *user_claim, *groups_claim; /* groups_claim NULL: groups are not looked at */
    const atomic_bool *is_ending;          /* may be NULL */
};

/* What one login must show again when it returns. Random, each. */
enum { OIDC_WORD_SIZE = 44 };
struct oidc_try {
    char state[OIDC_WORD_SIZE], nonce[OIDC_WORD_SIZE], verifier[OIDC_WORD_SIZE];
};

/* The configuration is copied. ERR_INVALID, ERR_TOO_BIG: a URL; errors of file_read of the secret's
 * file. */
int oidc_new(const struct oidc_config *config, struct oidc **oidc, struct err *err);
void oidc_free(struct oidc *oidc);

void oidc_try_make(struct oidc_try *attempt);
/* BASE64URL(SHA-256(verifier)), as PKCE's S256 has it. */
void oidc_challenge(struct text verifier, char challenge[OIDC_WORD_SIZE]);

/* Where the browser goes to log in. ERR_UNAVAILABLE: the provider is away, or makes no sense. */
int oidc_login_url(struct oidc *oidc, const struct oidc_try *attempt, int64_t now_s,
                   struct buf *url, struct err *err);

/* Who it is, for the code that the provider gave; strings in the arena. ERR_UNAUTHORIZED: the code,
 * or the token, is no good. ERR_FORBIDDEN: the user's name cannot be one here. ERR_UNAVAILABLE. */
int oidc_finish(struct oidc *oidc, const struct oidc_try *attempt, struct text login_code,
                int64_t now_s, struct arena *arena, struct identity *identity, struct err *err);

/* A login at a browser of another machine; strings in the arena. */
struct oidc_device {
    const char *code;           /* for oidc_device_finish; nobody else must see it */
    const char *user_code;      /* which the user types in … */
    const char *url;            /* … at this page */
    const char *url_whole;      /* the same with the code in it; "": there is none */
    int64_t life_s, interval_s; /* ask no more often than that */
};

/* ERR_UNSUPPORTED: the provider has no device codes, or not for us. ERR_UNAVAILABLE. */
int oidc_device_begin(struct oidc *oidc, int64_t now_s, struct arena *arena,
                      struct oidc_device *device, struct err *err);
/* As oidc_finish. ERR_BUSY: the user has not finished; *is_too_fast: ask less often. */
int oidc_device_finish(struct oidc *oidc, struct text device_code, int64_t now_s,
                       struct arena *arena, struct identity *identity, bool *is_too_fast,
                       struct err *err);

/* Where the browser goes to log out there, and then to `return_url` ("": nowhere). Empty when the
 * provider has no such place. */
int oidc_logout_url(struct oidc *oidc, const char *return_url, int64_t now_s, struct buf *url,
                    struct err *err);

#endif
