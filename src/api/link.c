#include "api/link.h"
#include "sys/secret.h"
#include <assert.h>
#include <sodium.h>
#include <time.h>

enum { SIGNATURE_SIZE = 32, SIGNATURE_HEX = 2 * SIGNATURE_SIZE };

/* Each part ends with a NUL byte, which none holds: "a%2Fb" is not "a/b". */
static void part_add(crypto_generichash_state *state, struct text part)
{
    crypto_generichash_update(state, (const unsigned char *)part.at, part.length);
    crypto_generichash_update(state, (const unsigned char *)"", 1);
}

static void signature_begin(crypto_generichash_state *state, const uint8_t *token_key,
                            struct text end, struct text token_id, struct text user)
{
    uint8_t key[SECRET_KEY_SIZE];
    secret_key_derive(token_key, 1, "skeplink", key);
    crypto_generichash_init(state, key, sizeof key, SIGNATURE_SIZE);
    secret_wipe(key, sizeof key);
    part_add(state, end);
    part_add(state, token_id);
    part_add(state, user);
}

static void signature_end(crypto_generichash_state *state, char hex[SIGNATURE_HEX + 1])
{
    unsigned char hash[SIGNATURE_SIZE];
    crypto_generichash_final(state, hash, sizeof hash);
    sodium_bin2hex(hex, SIGNATURE_HEX + 1, hash, sizeof hash);
}

static const char CERTIFICATE[] = "until-";

/* By what the caller has come: TOKEN. */
static const char *origin_of(const struct call *call)
{
    const struct caller *caller = &call->caller;
    if (caller->token_id[0] || caller->is_by_socket)
        return caller->token_id;
    return arena_format(call->arena, "%s%lld", CERTIFICATE, (long long)caller->expires_ms / 1000);
}

/* The signature says that we have made it. */
static void origin_read(struct text text, struct arena *arena, struct link *link)
{
    const size_t begin = sizeof CERTIFICATE - 1;
    link->is_by_socket = !text.length;
    assert(text.at);
    if (text_starts(text, text_of(CERTIFICATE)) &&
        text_to_int64((struct text){text.at + begin, text.length - begin}, &link->expires_s))
        text.length = 0;
    link->token_id = arena_copy(arena, text);
}

static bool has_prefix(const struct exchange *exchange)
{
    return exchange->segment_count && text_is(exchange->segments[0], "rest-server");
}

const char *link_make(struct call *call, const char *path, const char *query)
{
    return link_make_for(call, path, query, LINK_LIFE_S);
}

const char *link_make_for(struct call *call, const char *path, const char *query, int64_t life_s)
{
    crypto_generichash_state state;
    char signature[SIGNATURE_HEX + 1];
    const char *user = call->caller.auth.user;
    const char *token_id = origin_of(call);
    int64_t end_s = (int64_t)time(NULL) + life_s, token_s = call->caller.expires_ms / 1000;
    if (token_s && token_s < end_s)
        end_s = token_s;
    const char *end = arena_format(call->arena, "%lld", (long long)end_s);
    struct text rest = text_of(path + 1);
    assert(path[0] == '/' && user[0]);
    signature_begin(&state, call->api->service->token_key, text_of(end), text_of(token_id),
                    text_of(user));
    while (rest.length)
        part_add(&state, text_cut(&rest, '/'));
    signature_end(&state, signature);
    return arena_format(call->arena, "%s%s?link=%s.%s.%s.%s%s%s",
                        has_prefix(call->exchange) ? "/rest-server" : "", path, end, signature,
                        token_id, user, query[0] ? "&" : "", query);
}

bool link_open(struct call *call, struct text text, int64_t now_s, struct link *link)
{
    const struct exchange *exchange = call->exchange;
    crypto_generichash_state state;
    char expected[SIGNATURE_HEX + 1];
    struct text user = text, end = text_cut(&user, '.');
    struct text signature = user.at ? text_cut(&user, '.') : user;
    struct text token_id = user.at ? text_cut(&user, '.') : user;
    int64_t end_s;
    if (exchange->method != HTTP_GET && exchange->method != HTTP_HEAD)
        return false;
    if (!user.length || signature.length != SIGNATURE_HEX || !text_to_int64(end, &end_s) ||
        end_s < now_s)
        return false;
    signature_begin(&state, call->api->service->token_key, end, token_id, user);
    for (size_t i = has_prefix(exchange); i < exchange->segment_count; i++)
        part_add(&state, exchange->segments[i]);
    signature_end(&state, expected);
    if (sodium_memcmp(expected, signature.at, SIGNATURE_HEX) != 0)
        return false;
    *link = (struct link){.user = arena_copy(call->arena, user)};
    origin_read(token_id, call->arena, link);
    return true;
}
