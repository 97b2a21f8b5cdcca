/* ID tokens signed with keys made here: what is taken, and each reason to refuse one.
 *
 * Covers: src/signon/jwks.c */
#include "tokens.h"
#include "unit.h"

#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/memory.h"
#include "doc/doc.h"
#include "signon/id_token.h"
#include "signon/jwks.h"

enum { NOW_S = 1800000000 };
#define CLAIMS                                                                                     \
    "\"iss\":\"https://idp\",\"aud\":\"skep\",\"sub\":\"1\",\"nonce\":\"n\",\"iat\":1800000000,"   \
    "\"exp\":1800000060"

static struct {
    struct arena arena;
    gnutls_privkey_t rsa, small, elliptic;
    struct jwks *keys;
} world;

static const struct id_token_rules rules = {
    .issuer = "https://idp", .client_id = "skep", .nonce = "n", .now_s = NOW_S};

static const char *jwk_of(gnutls_privkey_t key, const char *more)
{
    return tokens_jwk(&world.arena, key, more);
}

static struct jwks *set_of(const char *keys)
{
    struct jwks *set;
    struct err err;
    const char *json = arena_format(&world.arena, "{\"keys\":[%s]}", keys);
    assert_int_equal(jwks_read(text_of(json), &set, &err), 0);
    return set;
}

static const char *token_of(const char *header, const char *claims, gnutls_privkey_t key,
                            gnutls_sign_algorithm_t how)
{
    return tokens_make(&world.arena, header, claims, key, how);
}

static const char *rsa_token(const char *claims)
{
    return token_of("{\"alg\":\"RS256\",\"kid\":\"r\"}", arena_format(&world.arena, "{%s}", claims),
                    world.rsa, GNUTLS_SIGN_RSA_SHA256);
}

static int check(const char *token, struct err *err)
{
    const struct doc *claims = NULL;
    int failed = id_token_check(text_of(token), world.keys, &rules, &world.arena, &claims, err);
    if (!failed)
        assert_true(text_is(doc_get_text(claims, "sub", ""), "1"));
    return failed;
}

static void refused(const char *token, const char *why)
{
    struct err err = {0};
    int failed = check(token, &err);
    if (failed != ERR_UNAUTHORIZED || !strstr(err.text, why))
        fail_msg("'%s' was expected, got %d: %s", why, failed, err.text);
}

static void each_algorithm(void **state)
{
    struct err err;
    (void)state;
    assert_int_equal(check(rsa_token(CLAIMS), &err), 0);
    assert_int_equal(check(token_of("{\"alg\":\"PS256\",\"kid\":\"r\"}", "{" CLAIMS "}", world.rsa,
                                    GNUTLS_SIGN_RSA_PSS_RSAE_SHA256),
                           &err),
                     0);
    for (int i = 0; i < 40; i++) /* numbers of all lengths */
        assert_int_equal(check(token_of("{\"alg\":\"ES256\",\"kid\":\"e\"}", "{" CLAIMS "}",
                                        world.elliptic, GNUTLS_SIGN_ECDSA_SHA256),
                               &err),
                         0);
    /* without the key's name each is tried */
    assert_int_equal(
        check(token_of("{\"alg\":\"RS256\"}", "{" CLAIMS "}", world.rsa, GNUTLS_SIGN_RSA_SHA256),
              &err),
        0);
}

static void bad_headers_and_signatures(void **state)
{
    struct err err;
    const char *good = rsa_token(CLAIMS);
    char *changed = arena_copy(&world.arena, text_of(good));
    (void)state;
    refused("", "three parts");
    refused("a.b", "three parts");
    refused("a.b.c.d", "three parts");
    refused("!.e30.e30", "header is no JSON");
    refused("e30.e30.e30", "algorithm");
    refused(token_of("[]", "{" CLAIMS "}", NULL, 0), "header is no JSON");
    refused(token_of("{\"alg\":\"none\"}", "{" CLAIMS "}", NULL, 0), "algorithm");
    refused(token_of("{\"alg\":\"HS256\"}", "{" CLAIMS "}", NULL, 0), "algorithm");
    refused(token_of("{\"alg\":\"rs256\"}", "{" CLAIMS "}", NULL, 0), "algorithm");
    refused(token_of("{\"alg\":\"RS512\"}", "{" CLAIMS "}", NULL, 0), "algorithm");
    refused(token_of("{\"alg\":\"RS256\",\"alg\":\"none\"}", "{" CLAIMS "}", NULL, 0), "header");
    refused(token_of("{\"alg\":\"RS256\",\"crit\":[\"x\"]}", "{" CLAIMS "}", NULL, 0), "extension");
    refused(token_of("{\"alg\":\"RS256\",\"kid\":\"r\"}", "{" CLAIMS "}", NULL, 0), "signature");
    refused(token_of("{\"alg\":\"ES256\",\"kid\":\"e\"}", "{" CLAIMS "}", NULL, 0), "signature");
    refused(arena_format(&world.arena, "%s=", good), "base64url");
    /* another kind of signature than the header says, or another key */
    refused(token_of("{\"alg\":\"RS256\",\"kid\":\"r\"}", "{" CLAIMS "}", world.rsa,
                     GNUTLS_SIGN_RSA_PSS_RSAE_SHA256),
            "signature is wrong");
    refused(token_of("{\"alg\":\"RS256\",\"kid\":\"r\"}", "{" CLAIMS "}", world.small,
                     GNUTLS_SIGN_RSA_SHA256),
            "signature is wrong");
    strchr(changed, '.')[5] ^= 1;
    refused(changed, "signature is wrong");
    assert_int_equal(check(token_of("{\"alg\":\"RS256\",\"kid\":\"x\"}", "{" CLAIMS "}", world.rsa,
                                    GNUTLS_SIGN_RSA_SHA256),
                           &err),
                     ERR_NOT_FOUND);
    assert_int_equal(check(token_of("{\"alg\":\"ES256\",\"kid\":\"r\"}", "{" CLAIMS "}", world.rsa,
                                    GNUTLS_SIGN_RSA_SHA256),
                           &err),
                     ERR_NOT_FOUND);
}

static void claims(void **state)
{
#define NO_AUDIENCE                                                                                \
    "\"iss\":\"https://idp\",\"sub\":\"1\",\"nonce\":\"n\",\"iat\":1800000000,\"exp\":1800000060"
#define NO_TIMES "\"iss\":\"https://idp\",\"aud\":\"skep\",\"sub\":\"1\",\"nonce\":\"n\""
    static const struct {
        const char *claims, *why; /* NULL: it is taken */
    } rows[] = {
        {NO_AUDIENCE ",\"aud\":[\"skep\"]", NULL},
        {NO_AUDIENCE ",\"aud\":[\"a\",\"skep\"],\"azp\":\"skep\"", NULL},
        {NO_AUDIENCE ",\"aud\":[\"a\",\"skep\"]", "another client"},
        {NO_AUDIENCE ",\"aud\":[\"a\",5],\"azp\":\"skep\"", "another client"},
        {NO_AUDIENCE ",\"aud\":\"skep\",\"azp\":\"a\"", "another client"},
        {NO_AUDIENCE ",\"aud\":\"skep2\"", "another client"},
        {NO_AUDIENCE, "another client"},
        {NO_TIMES ",\"iat\":1800000000", "not a time"},
        {NO_TIMES ",\"exp\":1800000000", "not a time"},
        {NO_TIMES ",\"iat\":1800000000,\"exp\":\"soon\"", "not a time"},
        {NO_TIMES ",\"iat\":1800000000,\"exp\":1800000060,\"nbf\":[]", "not a time"},
        {NO_TIMES ",\"iat\":1799999900,\"exp\":1799999940", "expired"},
        {NO_TIMES ",\"iat\":1799999900,\"exp\":1799999941", NULL},
        {NO_TIMES ",\"iat\":1800000061,\"exp\":1800000100", "future"},
        {NO_TIMES ",\"iat\":1800000060,\"exp\":1800000100", NULL},
        {NO_TIMES ",\"iat\":1800000000,\"exp\":1800000100,\"nbf\":1800000061", "future"},
        {NO_TIMES ",\"iat\":1800000000,\"exp\":1800000100,\"nbf\":1800000060", NULL},
        {NO_TIMES ",\"iat\":1799999339,\"exp\":1800000100", "too old"},
        {NO_TIMES ",\"iat\":1799999340,\"exp\":1800000100", NULL},
        {"\"aud\":\"skep\",\"sub\":\"1\",\"nonce\":\"n\"", "another issuer"},
        {"\"iss\":\"https://idp/\",\"aud\":\"skep\"", "another issuer"},
        {"\"iss\":\"https://idp\",\"aud\":\"skep\",\"sub\":\"1\"", "another login"},
        {"\"iss\":\"https://idp\",\"aud\":\"skep\",\"sub\":\"1\",\"nonce\":\"m\"", "another login"},
        {"\"iss\":\"https://idp\",\"aud\":\"skep\",\"sub\":\"\",\"nonce\":\"n\"", "names nobody"},
        {"\"iss\":\"https://idp\",\"aud\":\"skep\",\"sub\":1,\"nonce\":\"n\"", "names nobody"},
        {"\"iss\":\"https://idp\",\"aud\":\"skep\",\"sub\":\"a\\u0000b\",\"nonce\":\"n\"",
         "control character"},
        {CLAIMS ",\"sub\":\"2\"", "no JSON object"}, /* twice */
    };
    struct err err;
    (void)state;
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        if (rows[i].why)
            refused(rsa_token(rows[i].claims), rows[i].why);
        else if (check(rsa_token(rows[i].claims), &err))
            fail_msg("row %zu: %s", i, err.text);
    }
    refused(token_of("{\"alg\":\"RS256\"}", "[]", world.rsa, GNUTLS_SIGN_RSA_SHA256),
            "payload is no JSON");
    char *long_one = arena_alloc(&world.arena, ID_TOKEN_MAX + 2);
    memset(long_one, 'a', ID_TOKEN_MAX + 1);
    refused(long_one, "too long");
}

static void sets_of_keys(void **state)
{
    struct buf many = BUF_INIT;
    struct jwks *set;
    struct err err;
    (void)state;
    static const char *const none[] = {"", "[]", "{}", "{\"keys\":{}}", "{\"keys\":[]"};
    for (size_t i = 0; i < COUNT_OF(none); i++)
        assert_int_equal(jwks_read(text_of(none[i]), &set, &err), ERR_INVALID);
    buf_string(&many, "{\"keys\":[1");
    for (int i = 0; i < JWKS_KEYS_MAX; i++)
        buf_string(&many, ",1");
    buf_string(&many, "]}");
    assert_int_equal(jwks_read(buf_as_text(&many), &set, &err), ERR_TOO_BIG);
    buf_release(&many);
    /* what is for encryption, symmetric, too small or no key is passed over */
    const char *keys = arena_format(
        &world.arena,
        "%s,%s,%s,%s,1,{},{\"kty\":\"oct\",\"k\":\"AAAA\"},{\"kty\":\"RSA\",\"n\":\"!\",\"e\":"
        "\"AQAB\"},"
        "{\"kty\":\"EC\",\"crv\":\"P-521\",\"x\":\"AA\",\"y\":\"AA\"},"
        "{\"kty\":\"EC\",\"crv\":\"P-256\",\"x\":\"AA\",\"y\":\"AA\"}",
        jwk_of(world.rsa, ",\"use\":\"enc\""), jwk_of(world.rsa, ",\"alg\":\"RSA-OAEP\""),
        jwk_of(world.small, ""), jwk_of(world.elliptic, ",\"use\":\"sig\",\"alg\":\"ES256\""));
    set = set_of(keys);
    assert_int_equal(jwks_count(set), 1);
    jwks_free(set);
    /* a key for one algorithm verifies no other */
    struct jwks *before = world.keys;
    world.keys = set_of(jwk_of(world.rsa, ",\"kid\":\"r\",\"alg\":\"PS256\""));
    assert_int_equal(check(rsa_token(CLAIMS), &err), ERR_NOT_FOUND);
    jwks_free(world.keys);
    world.keys = before;
    jwks_free(NULL);
}

static int setup(void **state)
{
    (void)state;
    arena_init(&world.arena);
    world.rsa = tokens_key(GNUTLS_PK_RSA, 2048);
    world.small = tokens_key(GNUTLS_PK_RSA, 1024);
    world.elliptic = tokens_key(GNUTLS_PK_ECDSA, GNUTLS_CURVE_TO_BITS(GNUTLS_ECC_CURVE_SECP256R1));
    world.keys = set_of(arena_format(&world.arena, "%s,%s", jwk_of(world.rsa, ",\"kid\":\"r\""),
                                     jwk_of(world.elliptic, ",\"kid\":\"e\"")));
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    gnutls_privkey_deinit(world.rsa);
    gnutls_privkey_deinit(world.small);
    gnutls_privkey_deinit(world.elliptic);
    jwks_free(world.keys);
    arena_release(&world.arena);
    return 0;
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(each_algorithm),
    cmocka_unit_test(bad_headers_and_signatures),
    cmocka_unit_test(claims),
    cmocka_unit_test(sets_of_keys),
};
UNIT_FILE(tests, setup, teardown);
