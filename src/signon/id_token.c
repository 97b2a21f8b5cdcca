#include "signon/id_token.h"
#include "base/arena.h"
#include "base/err.h"
#include "doc/doc.h"
#include "signon/jwks.h"
#include <assert.h>

struct token_parts {
    struct text header, payload, signature;
    struct text content; /* what is signed: header and payload as they came */
};

static int refuse(struct err *err, const char *why)
{
    return err_fail(err, ERR_UNAUTHORIZED, "", "the provider's ID token is refused: %s", why);
}

static int token_cut(struct text token, struct token_parts *parts, struct err *err)
{
    struct text rest = token;
    parts->header = text_cut(&rest, '.');
    parts->payload = text_cut(&rest, '.');
    parts->signature = rest;
    if (token.length > ID_TOKEN_MAX)
        return refuse(err, "it is too long");
    if (!rest.at || memchr(rest.at, '.', rest.length))
        return refuse(err, "it does not have three parts");
    parts->content = (struct text){token.at, parts->header.length + 1 + parts->payload.length};
    return 0;
}

/* A part as a map, or NULL. */
static const struct doc *part_read(struct text part, struct arena *arena)
{
    cleanup_problems struct problems problems;
    struct text json;
    problems_init(&problems, arena);
    if (base64url_decode(part, arena, &json))
        return NULL;
    const struct doc *doc = doc_parse(json, DOC_JSON, arena, &problems);
    return doc && doc->kind == DOC_MAP && !problems.error_count ? doc : NULL;
}

static int signature_check(const struct token_parts *parts, const struct jwks *keys,
                           struct arena *arena, struct err *err)
{
    const struct doc *header = part_read(parts->header, arena);
    enum jws_algorithm algorithm;
    struct text signature;
    struct err why;
    if (!header)
        return refuse(err, "its header is no JSON object");
    if (!jws_algorithm_of(doc_get_text(header, "alg", ""), &algorithm))
        return refuse(err, "its algorithm is none of RS256, PS256, ES256");
    if (doc_get(header, "crit"))
        return refuse(err, "it asks for an extension");
    if (base64url_decode(parts->signature, arena, &signature))
        return refuse(err, "its signature is not base64url");
    int code = jwks_verify(keys, algorithm, doc_get_text(header, "kid", NULL), parts->content,
                           signature, &why);
    if (code == ERR_NOT_FOUND)
        return err_fail(err, code, "", "%s", why.text);
    return code ? refuse(err, why.text) : 0;
}

static bool text_claim_is(const struct doc *claims, const char *name, const char *expected)
{
    const struct doc *found = doc_get_kind(claims, name, DOC_STRING);
    return found && text_is(found->as.string, expected);
}

/* For us, and when it is for others, too, asked for by us. */
static bool audience_is(const struct doc *claims, const char *client_id)
{
    const struct doc *audience = doc_get(claims, "aud");
    bool is_there = text_claim_is(claims, "aud", client_id);
    size_t count = 1;
    if (audience && audience->kind == DOC_LIST) {
        count = audience->as.list.count;
        for (size_t i = 0; i < count; i++)
            is_there = is_there || (audience->as.list.items[i]->kind == DOC_STRING &&
                                    text_is(audience->as.list.items[i]->as.string, client_id));
    }
    if (!is_there)
        return false;
    return doc_get(claims, "azp") || count > 1 ? text_claim_is(claims, "azp", client_id) : true;
}

static bool time_get(const struct doc *claims, const char *name, int64_t *seconds)
{
    const struct doc *found = doc_get(claims, name);
    return found && doc_to_int(found, seconds);
}

static int times_check(const struct doc *claims, int64_t now_s, struct err *err)
{
    int64_t expires_s, issued_s, from_s = 0;
    if (!time_get(claims, "exp", &expires_s) || !time_get(claims, "iat", &issued_s) ||
        (doc_get(claims, "nbf") && !time_get(claims, "nbf", &from_s)))
        return refuse(err, "exp, iat or nbf is not a time");
    if (expires_s <= now_s - ID_TOKEN_SKEW_S)
        return refuse(err, "it has expired");
    if (issued_s > now_s + ID_TOKEN_SKEW_S || from_s > now_s + ID_TOKEN_SKEW_S)
        return refuse(err, "it is of the future: compare the clocks");
    if (issued_s < now_s - ID_TOKEN_AGE_S - ID_TOKEN_SKEW_S)
        return refuse(err, "it is too old: compare the clocks");
    return 0;
}

static int claims_check(const struct doc *claims, const struct id_token_rules *rules,
                        struct err *err)
{
    struct text subject = doc_get_text(claims, "sub", "");
    if (!text_claim_is(claims, "iss", rules->issuer))
        return refuse(err, "another issuer made it");
    if (!audience_is(claims, rules->client_id))
        return refuse(err, "it is for another client");
    if (rules->nonce && !text_claim_is(claims, "nonce", rules->nonce))
        return refuse(err, "it is of another login");
    if (!subject.length || subject.length > ID_TOKEN_SUBJECT_MAX)
        return refuse(err, "it names nobody");
    for (size_t i = 0; i < subject.length; i++)
        if ((unsigned char)subject.at[i] < ' ' || (unsigned char)subject.at[i] == 0x7f)
            return refuse(err, "its subject holds a control character");
    return times_check(claims, rules->now_s, err);
}

int id_token_check(struct text token, const struct jwks *keys, const struct id_token_rules *rules,
                   struct arena *arena, const struct doc **out, struct err *err)
{
    struct token_parts parts;
    assert(rules->issuer && rules->client_id);
    int code = token_cut(token, &parts, err);
    if (!code)
        code = signature_check(&parts, keys, arena, err);
    if (code)
        return code;
    const struct doc *claims = part_read(parts.payload, arena);
    if (!claims)
        return refuse(err, "its payload is no JSON object");
    *out = claims;
    return claims_check(claims, rules, err);
}
