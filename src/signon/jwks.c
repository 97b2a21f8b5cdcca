#include "signon/jwks.h"
#include "base/arena.h"
#include "base/err.h"
#include "base/memory.h"
#include "doc/doc.h"
#include <assert.h>
#include <gnutls/abstract.h>
#include <gnutls/crypto.h>
#include <gnutls/gnutls.h>
#include <sodium.h>

enum { ES256_PART = 32 }; /* bytes of each of the two numbers of a signature */

struct jwk {
    char *id; /* NULL: none */
    bool is_elliptic;
    int algorithm; /* enum jws_algorithm, for this one alone; -1: for any that fits */
    gnutls_pubkey_t key;
};

struct jwks {
    struct jwk keys[JWKS_KEYS_MAX];
    size_t count;
};

static const char *const algorithm_names[JWS_ALGORITHM_COUNT] = {"RS256", "PS256", "ES256"};

bool jws_algorithm_of(struct text name, enum jws_algorithm *algorithm)
{
    for (int i = 0; i < JWS_ALGORITHM_COUNT; i++) {
        if (text_is(name, algorithm_names[i])) {
            *algorithm = (enum jws_algorithm)i;
            return true;
        }
    }
    return false;
}

int base64url_decode(struct text encoded, struct arena *arena, struct text *bytes)
{
    size_t room = encoded.length / 4 * 3 + 4, length = 0;
    unsigned char *at = arena_alloc(arena, room);
    if (sodium_base642bin(at, room, encoded.at, encoded.length, NULL, &length, NULL,
                          sodium_base64_VARIANT_URLSAFE_NO_PADDING))
        return ERR_INVALID;
    *bytes = (struct text){(const char *)at, length};
    return 0;
}

static gnutls_datum_t datum_of(struct text text)
{
    return (gnutls_datum_t){(unsigned char *)(uintptr_t)text.at, (unsigned)text.length};
}

/* A number of a key. */
static bool number_get(const struct doc *doc, const char *name, struct arena *arena,
                       gnutls_datum_t *datum)
{
    struct text bytes, text = doc_get_text(doc, name, "");
    if (!text.length || text.length > JWKS_RSA_BITS_MAX / 4 ||
        base64url_decode(text, arena, &bytes) || !bytes.length)
        return false;
    *datum = datum_of(bytes);
    return true;
}

static bool rsa_read(const struct doc *doc, struct arena *arena, gnutls_pubkey_t key)
{
    gnutls_datum_t modulus, exponent;
    unsigned bits = 0;
    return number_get(doc, "n", arena, &modulus) && number_get(doc, "e", arena, &exponent) &&
           gnutls_pubkey_import_rsa_raw(key, &modulus, &exponent) == 0 &&
           gnutls_pubkey_get_pk_algorithm(key, &bits) == GNUTLS_PK_RSA &&
           bits >= JWKS_RSA_BITS_MIN && bits <= JWKS_RSA_BITS_MAX;
}

static bool elliptic_read(const struct doc *doc, struct arena *arena, gnutls_pubkey_t key)
{
    gnutls_datum_t x, y;
    return text_is(doc_get_text(doc, "crv", ""), "P-256") && number_get(doc, "x", arena, &x) &&
           number_get(doc, "y", arena, &y) && x.size == ES256_PART && y.size == ES256_PART &&
           gnutls_pubkey_import_ecc_raw(key, GNUTLS_ECC_CURVE_SECP256R1, &x, &y) == 0;
}

static void jwk_read(struct jwks *jwks, const struct doc *doc, struct arena *arena)
{
    struct text kind = doc_get_text(doc, "kty", ""), id = doc_get_text(doc, "kid", NULL);
    struct text named = doc_get_text(doc, "alg", NULL);
    enum jws_algorithm algorithm = JWS_ALGORITHM_COUNT;
    struct jwk jwk = {.is_elliptic = text_is(kind, "EC"), .algorithm = -1};
    bool is_read;
    if ((!jwk.is_elliptic && !text_is(kind, "RSA")) ||
        !text_is(doc_get_text(doc, "use", "sig"), "sig") ||
        (named.at && !jws_algorithm_of(named, &algorithm)))
        return;
    if (named.at)
        jwk.algorithm = (int)algorithm;
    if (gnutls_pubkey_init(&jwk.key) < 0)
        return;
    is_read = jwk.is_elliptic ? elliptic_read(doc, arena, jwk.key) : rsa_read(doc, arena, jwk.key);
    if (!is_read) {
        gnutls_pubkey_deinit(jwk.key);
        return;
    }
    jwk.id = id.at ? mem_copy(arena_copy(arena, id)) : NULL;
    jwks->keys[jwks->count++] = jwk;
}

int jwks_read(struct text json, struct jwks **out, struct err *err)
{
    cleanup_arena struct arena arena;
    cleanup_problems struct problems problems;
    arena_init(&arena);
    problems_init(&problems, &arena);
    const struct doc *doc = doc_parse(json, DOC_JSON, &arena, &problems);
    const struct doc *keys = problems.error_count ? NULL : doc_get_kind(doc, "keys", DOC_LIST);
    if (!keys)
        return err_fail(err, ERR_INVALID, "", "the provider's key set is not one");
    if (keys->as.list.count > JWKS_KEYS_MAX)
        return err_fail(err, ERR_TOO_BIG, "", "the provider's key set has more than %d keys",
                        JWKS_KEYS_MAX);
    struct jwks *jwks = mem_zero(1, sizeof *jwks);
    for (size_t i = 0; i < keys->as.list.count; i++)
        jwk_read(jwks, keys->as.list.items[i], &arena);
    *out = jwks;
    return 0;
}

void jwks_free(struct jwks *jwks)
{
    if (!jwks)
        return;
    for (size_t i = 0; i < jwks->count; i++) {
        mem_free(jwks->keys[i].id);
        gnutls_pubkey_deinit(jwks->keys[i].key);
    }
    mem_free(jwks);
}

size_t jwks_count(const struct jwks *jwks)
{
    return jwks->count;
}

static bool jwk_fits(const struct jwk *jwk, enum jws_algorithm algorithm, struct text id)
{
    if (jwk->is_elliptic != (algorithm == JWS_ES256))
        return false;
    if (jwk->algorithm >= 0 && jwk->algorithm != (int)algorithm)
        return false;
    return !id.at || (jwk->id && text_is(id, jwk->id));
}

/* The two numbers of a signature, as X.509 writes them. */
static bool elliptic_verifies(gnutls_pubkey_t key, const gnutls_datum_t *content,
                              struct text signature)
{
    gnutls_datum_t r = datum_of((struct text){signature.at, ES256_PART});
    gnutls_datum_t s = datum_of((struct text){signature.at + ES256_PART, ES256_PART}), whole;
    if (signature.length != (size_t)2 * ES256_PART)
        return false;
    if (gnutls_encode_rs_value(&whole, &r, &s) < 0)
        return false;
    int code = gnutls_pubkey_verify_data2(key, GNUTLS_SIGN_ECDSA_SHA256, 0, content, &whole);
    gnutls_free(whole.data);
    return code >= 0;
}

static bool jwk_verifies(const struct jwk *jwk, enum jws_algorithm algorithm,
                         const gnutls_datum_t *content, struct text signature)
{
    gnutls_datum_t whole = datum_of(signature);
    gnutls_sign_algorithm_t how =
        algorithm == JWS_PS256 ? GNUTLS_SIGN_RSA_PSS_RSAE_SHA256 : GNUTLS_SIGN_RSA_SHA256;
    if (algorithm == JWS_ES256)
        return elliptic_verifies(jwk->key, content, signature);
    return gnutls_pubkey_verify_data2(jwk->key, how, 0, content, &whole) >= 0;
}

int jwks_verify(const struct jwks *jwks, enum jws_algorithm algorithm, struct text id,
                struct text content, struct text signature, struct err *err)
{
    gnutls_datum_t data = datum_of(content);
    bool is_tried = false;
    assert(algorithm < JWS_ALGORITHM_COUNT);
    for (size_t i = 0; i < jwks->count; i++) {
        if (!jwk_fits(&jwks->keys[i], algorithm, id))
            continue;
        if (jwk_verifies(&jwks->keys[i], algorithm, &data, signature))
            return 0;
        is_tried = true;
    }
    if (is_tried)
        return err_fail(err, ERR_UNAUTHORIZED, "", "the signature is wrong");
    return err_fail(err, ERR_NOT_FOUND, "", "the provider has no such key");
}
