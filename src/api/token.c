#include "api/token.h"
#include "api/call.h"
#include "api/link.h"
#include "api/tls_client.h"
#include "api/token_cache.h"
#include "base/memory.h"
#include "sys/secret.h"
#include <jwt.h>
#include <sodium.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

/* time() may still say the second before, for as long as a tick of the kernel: a stream that was
 * cut with its token would find it good once more. */
static int64_t unix_s(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t)now.tv_sec;
}

int token_sign(const uint8_t key[TOKEN_KEY_SIZE], const struct token_claims *claims,
               struct arena *arena, struct text *token, struct err *err)
{
    jwt_t *jwt = NULL;
    char *encoded = NULL;
    if (jwt_new(&jwt) || jwt_set_alg(jwt, JWT_ALG_HS256, key, TOKEN_KEY_SIZE) ||
        jwt_add_grant(jwt, "username", claims->user) || jwt_add_grant(jwt, "jti", claims->id) ||
        jwt_add_grant_bool(jwt, "application", claims->is_application) ||
        jwt_add_grant_int(jwt, "iat", (long)claims->issued_s) ||
        (claims->expires_s && jwt_add_grant_int(jwt, "exp", (long)claims->expires_s)) ||
        !(encoded = jwt_encode_str(jwt))) {
        jwt_free(jwt);
        return err_fail(err, ERR_INTERNAL, "", "the token could not be signed");
    }
    *token = text_of(arena_copy(arena, text_of(encoded)));
    free(encoded);
    jwt_free(jwt);
    return 0;
}

/* Claims out of a token whose signature is right. */
static int claims_read(jwt_t *jwt, int64_t now_s, struct arena *arena, struct token_claims *claims,
                       struct err *err)
{
    const char *user = jwt_get_grant(jwt, "username");
    const char *id = jwt_get_grant(jwt, "jti");
    if (jwt_get_alg(jwt) != JWT_ALG_HS256 || !user || !id)
        return err_fail(err, ERR_UNAUTHORIZED, "", "the token is not one of this server");
    *claims = (struct token_claims){
        .id = arena_copy(arena, text_of(id)),
        .user = arena_copy(arena, text_of(user)),
        .is_application = jwt_get_grant_bool(jwt, "application") == 1,
        .issued_s = jwt_get_grant_int(jwt, "iat"),
        .expires_s = jwt_get_grant_int(jwt, "exp"),
    };
    if (claims->expires_s < 0) /* libjwt's way to say that it is not there */
        claims->expires_s = 0;
    if (claims->expires_s && claims->expires_s <= now_s)
        return err_fail(err, ERR_UNAUTHORIZED, "", "the token has expired: log in again");
    return 0;
}

int token_verify(const uint8_t key[TOKEN_KEY_SIZE], struct text token, int64_t now_s,
                 struct arena *arena, struct token_claims *claims, struct err *err)
{
    jwt_t *jwt = NULL;
    if (token.length > TOKEN_MAX ||
        jwt_decode(&jwt, arena_copy(arena, token), key, TOKEN_KEY_SIZE) != 0)
        return err_fail(err, ERR_UNAUTHORIZED, "", "the token is not one of this server");
    int code = claims_read(jwt, now_s, arena, claims, err);
    jwt_free(jwt);
    return code;
}

void token_id_make(char id[TOKEN_ID_SIZE])
{
    uint8_t bytes[(TOKEN_ID_SIZE - 1) / 2];
    secret_random(bytes, sizeof bytes);
    sodium_bin2hex(id, TOKEN_ID_SIZE, bytes, sizeof bytes);
}

static int unauthorized(struct call *call, const char *text)
{
    exchange_header(call->exchange, "WWW-Authenticate", "Bearer");
    return call_fail(call, ERR_UNAUTHORIZED, NULL, "", "%s", text);
}

/* What was shown is no good. The message is OpenPAI's, which clients compare; `why` stands beside.
 */
static int invalid(struct call *call, const char *why)
{
    call->reason = arena_copy(call->arena, text_of(why));
    return unauthorized(call, "Your token is invalid.");
}

/* "Basic …": user and token out of it. */
static int basic_parse(struct call *call, struct text encoded, struct text *user,
                       struct text *token)
{
    size_t room = encoded.length / 4 * 3 + 4, length = 0;
    char *bytes = arena_alloc(call->arena, room);
    if (encoded.length > 2 * (size_t)TOKEN_MAX ||
        sodium_base642bin((unsigned char *)bytes, room, encoded.at, encoded.length, NULL, &length,
                          NULL, sodium_base64_VARIANT_ORIGINAL))
        return unauthorized(call, "the Authorization header is not base64");
    *token = (struct text){bytes, length};
    *user = text_cut(token, ':');
    if (!token->at)
        return unauthorized(call, "the Authorization header must hold user:token");
    return 0;
}

static bool word_is(struct text a, const char *word)
{
    if (a.length != strlen(word))
        return false;
    for (size_t i = 0; i < a.length; i++)
        if ((a.at[i] | 0x20) != word[i])
            return false;
    return true;
}

static struct auth_caller auth_of(struct call *call, const struct store_user *user)
{
    const char **groups = ARENA_ARRAY(call->arena, const char *, user->groups.count + 1);
    size_t group_count = 0;
    for (size_t i = 0; i < user->groups.count; i++)
        if (user->groups.items[i].is_admin)
            groups[group_count++] = user->groups.items[i].name;
    return (struct auth_caller){.user = user->name,
                                .is_admin = user->is_admin || user->is_admin_by_group,
                                .groups = groups,
                                .group_count = group_count};
}

/* What the user may do by such a token. */
static int caller_fill(struct call *call, const char *name, const struct store_token *token)
{
    struct store_user user = {0};
    struct err err = {0};
    int code = store_user(call->reader, text_of(name), call->arena, &user, &err);
    if (code == ERR_NOT_FOUND || (!code && user.is_inactive))
        return invalid(call, "the token has been revoked: log in again");
    if (code) {
        call->err = err;
        return code;
    }
    call->caller = (struct caller){
        .auth = auth_of(call, &user), .token_id = token->id, .expires_ms = token->expires_ms};
    call->caller.auth.is_application = token->is_application;
    call->caller.auth.scope = (enum auth_scope)token->scope;
    return 0;
}

/* Root, and the user of this process, can read the database anyway. */
static bool is_trusted_peer(const struct call *call)
{
    int64_t uid = call->exchange->peer_uid;
    return uid == 0 || uid == (int64_t)geteuid();
}

static int caller_of_peer(struct call *call)
{
    struct store_reader *reader = call_reader(call);
    if (!reader)
        return call->err.code;
    struct store_user user = {0};
    struct err err = {0};
    const char *name = call->api->config.socket_user;
    int code = store_user(reader, text_of(name), call->arena, &user, &err);
    if (code && code != ERR_NOT_FOUND) {
        call->err = err;
        return code;
    }
    call->caller =
        (struct caller){.auth = auth_of(call, &user), .token_id = "", .is_by_socket = true};
    if (code || user.is_inactive || !call->caller.auth.is_admin) {
        call->caller = (struct caller){.auth.user = ""};
        return unauthorized(call, "log in first: the user of this machine's root is no admin now");
    }
    return 0;
}

/* A browser shows its certificate to us whatever page it asks for: what comes from a page, which
 * has an origin, needs a token as well. */
static bool is_shown_knowingly(const struct exchange *exchange)
{
    return exchange->certificate && exchange->certificate->state == TLS_CLIENT_GOOD &&
           !exchange->origin.at;
}

static int caller_of_certificate(struct call *call)
{
    const struct tls_client *shown = call->exchange->certificate;
    struct store_reader *reader = call_reader(call);
    struct store_user user = {0};
    struct err err = {0};
    if (!reader)
        return call->err.code;
    if (!shown->user[0])
        return unauthorized(call, shown->text);
    int code = store_user(reader, text_of(shown->user), call->arena, &user, &err);
    if (code == ERR_NOT_FOUND || (!code && user.is_inactive))
        return unauthorized(call, "the client certificate names a user who has no account here, "
                                  "or may not log in");
    if (code) {
        call->err = err;
        return code;
    }
    call->caller = (struct caller){
        .auth = auth_of(call, &user), .token_id = "", .expires_ms = shown->expires_s * 1000};
    return 0;
}

/* The claims stand; is the token still in the list, and what may its user do? */
static int caller_load(struct call *call, const struct token_claims *claims)
{
    struct store_reader *reader = call_reader(call);
    if (!reader)
        return call->err.code;
    struct store_token row = {.user = ""};
    struct err err = {0};
    int code = store_token(reader, text_of(claims->id), call->arena, &row, &err);
    if (!code && strcmp(row.user, claims->user) != 0)
        code = ERR_NOT_FOUND;
    if (code == ERR_NOT_FOUND)
        return invalid(call, "the token has been revoked: log in again");
    if (code) {
        call->err = err;
        return code;
    }
    row.id = claims->id;
    return caller_fill(call, claims->user, &row);
}

static int link_caller(struct call *call, struct text link)
{
    struct link from;
    if (!link_open(call, link, unix_s(), &from))
        return invalid(call, "the link is not for this path, or it has expired");
    const struct store_token none = {.id = "", .expires_ms = from.expires_s * 1000};
    const struct token_claims claims = {.id = from.token_id, .user = from.user};
    int code = call_reader(call) ? 0 : call->err.code;
    if (!code)
        code = from.token_id[0] ? caller_load(call, &claims) : caller_fill(call, from.user, &none);
    call->caller.auth.is_application = true;
    call->caller.is_by_socket = from.is_by_socket;
    return code;
}

int token_caller(struct call *call)
{
    struct text token = call->exchange->authorization;
    struct text link = exchange_query(call->exchange, "link");
    if (!token.at && link.at)
        return link_caller(call, link);
    if (!token.at && is_trusted_peer(call))
        return caller_of_peer(call);
    if (!token.at && is_shown_knowingly(call->exchange))
        return caller_of_certificate(call);
    if (!token.at)
        return unauthorized(call, "log in first: this needs a token (Authorization: Bearer …)");
    struct text scheme = text_cut(&token, ' ');
    struct text user = {NULL, 0};
    token = token.at ? text_trim(token) : TEXT("");
    bool is_basic = word_is(scheme, "basic");
    if (!is_basic && !word_is(scheme, "bearer"))
        return unauthorized(call, "the Authorization header must be Bearer or Basic");
    struct token_cache *cache = call->api->tokens;
    const uint64_t version = store_token_version(call->api->service->store); /* before the rows */
    if (!is_basic && token_cache_get(cache, token, version, unix_s(), call->arena, &call->caller))
        return 0;
    int code = is_basic ? basic_parse(call, token, &user, &token) : 0;
    if (code)
        return code;
    struct token_claims claims = {.id = "", .user = ""};
    struct err err = {0};
    code = token_verify(call->api->service->token_key, token, unix_s(), call->arena, &claims, &err);
    if (code)
        return invalid(call, err.text);
    code = caller_load(call, &claims);
    if (!code && !is_basic)
        token_cache_put(cache, token, version, claims.expires_s, &call->caller);
    if (code || !is_basic)
        return code;
    if (!call->caller.auth.is_application || !text_is(user, claims.user))
        return unauthorized(call, "Basic needs the user's name and an application token of theirs");
    return 0;
}
