/* ID tokens signed with keys made here: what is taken, and each reason to refuse one.
 *
 * Covers: src/signon/jwks.c */
#include "unit.h"

#include <gnutls/abstract.h>
#include <gnutls/crypto.h>
#include <gnutls/gnutls.h>
#include <sodium.h>
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

static const char *encoded(const void *bytes, size_t length)
{
    size_t size = sodium_base64_encoded_len(length, sodium_base64_VARIANT_URLSAFE_NO_PADDING);
    char *text = arena_alloc(&world.arena, size);
    return sodium_bin2base64(text, size, bytes, length, sodium_base64_VARIANT_URLSAFE_NO_PADDING);
}

static gnutls_privkey_t key_make(gnutls_pk_algorithm_t kind, unsigned bits)
{
    gnutls_privkey_t key;
    assert_int_equal(gnutls_privkey_init(&key), 0);
    assert_int_equal(gnutls_privkey_generate(key, kind, bits, 0), 0);
    return key;
}

/* The key as a set holds it; `more` of its members. */
static const char *jwk_of(gnutls_privkey_t key, const char *more)
{
    gnutls_datum_t a = {0}, b = {0};
    gnutls_ecc_curve_t curve;
    const char *json;
    bool is_rsa = gnutls_privkey_get_pk_algorithm(key, NULL) == GNUTLS_PK_RSA;
    if (is_rsa)
        gnutls_privkey_export_rsa_raw2(key, &a, &b, NULL, NULL, NULL, NULL, NULL, NULL,
                                       GNUTLS_EXPORT_FLAG_NO_LZ);
    else
        gnutls_privkey_export_ecc_raw2(key, &curve, &a, &b, NULL, GNUTLS_EXPORT_FLAG_NO_LZ);
    json = arena_format(&world.arena,
                        is_rsa ? "{\"kty\":\"RSA\",\"n\":\"%s\",\"e\":\"%s\"%s}"
                               : "{\"kty\":\"EC\",\"crv\":\"P-256\",\"x\":\"%s\",\"y\":\"%s\"%s}",
                        encoded(a.data, a.size), encoded(b.data, b.size), more);
    gnutls_free(a.data);
    gnutls_free(b.data);
    return json;
}

static struct jwks *set_of(const char *keys)
{
    struct jwks *set;
    struct err err;
    const char *json = arena_format(&world.arena, "{\"keys\":[%s]}", keys);
    assert_int_equal(jwks_read(text_of(json), &set, &err), 0);
    return set;
}

static const char *signature(gnutls_privkey_t key, gnutls_sign_algorithm_t how, const char *content)
{
    gnutls_datum_t data = {(unsigned char *)(uintptr_t)content, (unsigned)strlen(content)};
    gnutls_datum_t made, r = {0}, s = {0};
    unsigned char parts[64] = {0};
    assert_int_equal(gnutls_privkey_sign_data2(key, how, 0, &data, &made), 0);
    if (how != GNUTLS_SIGN_ECDSA_SHA256) {
        const char *whole = encoded(made.data, made.size);
        gnutls_free(made.data);
        return whole;
    }
    assert_int_equal(gnutls_decode_rs_value(&made, &r, &s), 0);
    gnutls_free(made.data);
    /* numbers of at most 33 bytes, the first of them a zero then */
    for (unsigned i = 0; i < r.size && i < 32; i++)
        parts[31 - i] = r.data[r.size - 1 - i];
    for (unsigned i = 0; i < s.size && i < 32; i++)
        parts[63 - i] = s.data[s.size - 1 - i];
    gnutls_free(r.data);
    gnutls_free(s.data);
    return encoded(parts, sizeof parts);
}

static const char *token_of(const char *header, const char *claims, gnutls_privkey_t key,
                            gnutls_sign_algorithm_t how)
{
    const char *content = arena_format(&world.arena, "%s.%s", encoded(header, strlen(header)),
                                       encoded(claims, strlen(claims)));
    return arena_format(&world.arena, "%s.%s", content, key ? signature(key, how, content) : "");
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
    world.rsa = key_make(GNUTLS_PK_RSA, 2048);
    world.small = key_make(GNUTLS_PK_RSA, 1024);
    world.elliptic = key_make(GNUTLS_PK_ECDSA, GNUTLS_CURVE_TO_BITS(GNUTLS_ECC_CURVE_SECP256R1));
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
