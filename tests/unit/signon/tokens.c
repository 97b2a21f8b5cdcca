#include "tokens.h"

#include <gnutls/crypto.h>
#include <sodium.h>
#include <stdint.h>
#include <string.h>

#include "base/arena.h"

static const char *encoded(struct arena *arena, const void *bytes, size_t length)
{
    size_t size = sodium_base64_encoded_len(length, sodium_base64_VARIANT_URLSAFE_NO_PADDING);
    char *text = arena_alloc(arena, size);
    return sodium_bin2base64(text, size, bytes, length, sodium_base64_VARIANT_URLSAFE_NO_PADDING);
}

/* The octet string of a coordinate has its full size (RFC 7518, 6.2.1.2); GnuTLS leaves out the
 * zeros at the front that one key in 128 has. */
static const char *coordinate(struct arena *arena, const gnutls_datum_t *number)
{
    unsigned char bytes[32] = {0};
    assert_in_range(number->size, 1, sizeof bytes);
    memcpy(bytes + sizeof bytes - number->size, number->data, number->size);
    return encoded(arena, bytes, sizeof bytes);
}

gnutls_privkey_t tokens_key(gnutls_pk_algorithm_t kind, unsigned bits)
{
    gnutls_privkey_t key;
    assert_int_equal(gnutls_privkey_init(&key), 0);
    assert_int_equal(gnutls_privkey_generate(key, kind, bits, 0), 0);
    return key;
}

const char *tokens_jwk(struct arena *arena, gnutls_privkey_t key, const char *more)
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
    json = arena_format(arena,
                        is_rsa ? "{\"kty\":\"RSA\",\"n\":\"%s\",\"e\":\"%s\"%s}"
                               : "{\"kty\":\"EC\",\"crv\":\"P-256\",\"x\":\"%s\",\"y\":\"%s\"%s}",
                        is_rsa ? encoded(arena, a.data, a.size) : coordinate(arena, &a),
                        is_rsa ? encoded(arena, b.data, b.size) : coordinate(arena, &b), more);
    gnutls_free(a.data);
    gnutls_free(b.data);
    return json;
}

static const char *signature(struct arena *arena, gnutls_privkey_t key, gnutls_sign_algorithm_t how,
                             const char *content)
{
    gnutls_datum_t data = {(unsigned char *)(uintptr_t)content, (unsigned)strlen(content)};
    gnutls_datum_t made, r = {0}, s = {0};
    unsigned char parts[64] = {0};
    assert_int_equal(gnutls_privkey_sign_data2(key, how, 0, &data, &made), 0);
    if (how != GNUTLS_SIGN_ECDSA_SHA256) {
        const char *whole = encoded(arena, made.data, made.size);
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
    return encoded(arena, parts, sizeof parts);
}

const char *tokens_make(struct arena *arena, const char *header, const char *claims,
                        gnutls_privkey_t key, gnutls_sign_algorithm_t how)
{
    const char *content = arena_format(arena, "%s.%s", encoded(arena, header, strlen(header)),
                                       encoded(arena, claims, strlen(claims)));
    return arena_format(arena, "%s.%s", content, key ? signature(arena, key, how, content) : "");
}
