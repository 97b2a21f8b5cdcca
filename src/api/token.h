/* token.h — tokens (JWT, HS256 alone) and who presents one.
 *
 * Edge. Claims as OpenPAI's: username, application, and jti, iat, exp. A token counts only while
 * its jti stands in the store, so that it can be revoked; the store never holds the token itself.
 * The algorithm is fixed here and never read from the token.
 */
#ifndef API_TOKEN_H
#define API_TOKEN_H
#include "base/text.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct arena;
struct call;
struct err;

enum { TOKEN_ID_SIZE = 33, TOKEN_KEY_SIZE = 32, TOKEN_MAX = 4096 };

struct token_claims {
    const char *id, *user;
    bool is_application;
    int64_t issued_s, expires_s; /* expires_s 0: never */
};

/* The token, in the arena. */
int token_sign(const uint8_t key[TOKEN_KEY_SIZE], const struct token_claims *claims,
               struct arena *arena, struct text *token, struct err *err);
/* ERR_UNAUTHORIZED: not ours, changed, expired, or another algorithm. Strings in the arena. */
int token_verify(const uint8_t key[TOKEN_KEY_SIZE], struct text token, int64_t now_s,
                 struct arena *arena, struct token_claims *claims, struct err *err);

/* Thirty-two random hexadecimal digits. */
void token_id_make(char id[TOKEN_ID_SIZE]);

/* "Bearer TOKEN", or "Basic base64(user:TOKEN)" with an application's token: fills call->caller.
 * Without either, root and the user of this process are the admin of api_config.socket_user when
 * they come by this machine's socket, and others whom their client certificate names. */
int token_caller(struct call *call);

#endif
