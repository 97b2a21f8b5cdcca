/* secret.c — see secret.h. */
#include "sys/secret.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/memory.h"
#include "sys/file.h"
#include <assert.h>
#include <errno.h>
#include <openssl/evp.h>
#include <sodium.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

_Static_assert(crypto_secretbox_KEYBYTES == SECRET_KEY_SIZE, "size of keys");
_Static_assert(crypto_kdf_KEYBYTES == SECRET_KEY_SIZE, "size of keys");
_Static_assert(crypto_kdf_CONTEXTBYTES == 8, "length of contexts");
_Static_assert(crypto_pwhash_STRBYTES <= PASSWORD_HASH_SIZE, "length of password hashes");

int secret_init(struct err *err)
{
    if (sodium_init() < 0)
        return err_fail(err, ERR_INTERNAL, "", "libsodium cannot be initialised");
    return 0;
}

void secret_key_derive(const uint8_t master[SECRET_KEY_SIZE], uint64_t number,
                       const char context[9], uint8_t key[SECRET_KEY_SIZE])
{
    int code = crypto_kdf_derive_from_key(key, SECRET_KEY_SIZE, number, context, master);
    assert(!code);
    (void)code;
}

void secret_seal(const uint8_t key[SECRET_KEY_SIZE], struct text plain, struct buf *sealed)
{
    size_t size = plain.length + crypto_secretbox_MACBYTES;
    uint8_t *box = mem_alloc(size);
    uint8_t nonce[crypto_secretbox_NONCEBYTES];
    randombytes_buf(nonce, sizeof nonce);
    crypto_secretbox_easy(box, (const uint8_t *)plain.at, plain.length, nonce, key);
    buf_add(sealed, nonce, sizeof nonce);
    buf_add(sealed, box, size);
    mem_free(box);
}

void secret_digest(const uint8_t key[SECRET_KEY_SIZE], struct text plain,
                   uint8_t digest[SECRET_DIGEST_SIZE])
{
    int code = crypto_generichash(digest, SECRET_DIGEST_SIZE, (const uint8_t *)plain.at,
                                  plain.length, key, SECRET_KEY_SIZE);
    assert(code == 0);
    (void)code;
}

int secret_open(const uint8_t key[SECRET_KEY_SIZE], struct text sealed, struct buf *plain,
                struct err *err)
{
    const uint8_t *bytes = (const uint8_t *)sealed.at;
    size_t head = crypto_secretbox_NONCEBYTES, size;
    int code = 0;
    if (sealed.length < head + crypto_secretbox_MACBYTES)
        return err_fail(err, ERR_CORRUPT, "", "a sealed secret is too short");
    size = sealed.length - head - crypto_secretbox_MACBYTES;
    uint8_t *opened = mem_alloc(size + 1);
    if (crypto_secretbox_open_easy(opened, bytes + head, sealed.length - head, bytes, key) < 0)
        code = err_fail(err, ERR_CORRUPT, "",
                        "a sealed secret cannot be opened: another key, or it was changed");
    else
        buf_add(plain, opened, size);
    sodium_memzero(opened, size + 1);
    mem_free(opened);
    return code;
}

void secret_random(void *bytes, size_t size)
{
    randombytes_buf(bytes, size);
}

void secret_random_word(char *word, size_t length)
{
    static const char letters[] = "abcdefghijkmnpqrstuvwxyzABCDEFGHJKLMNPQRSTUVWXYZ23456789";
    for (size_t i = 0; i < length; i++)
        word[i] = letters[randombytes_uniform(sizeof letters - 1)];
    word[length] = '\0';
}

void secret_wipe(void *bytes, size_t size)
{
    sodium_memzero(bytes, size);
}

int password_hash(struct text password, char hash[PASSWORD_HASH_SIZE], struct err *err)
{
    if (password.length > PASSWORD_MAX)
        return err_fail(err, ERR_TOO_BIG, "password", "is longer than %d bytes", PASSWORD_MAX);
    if (crypto_pwhash_str(hash, password.at, password.length, crypto_pwhash_OPSLIMIT_INTERACTIVE,
                          crypto_pwhash_MEMLIMIT_INTERACTIVE) < 0)
        return err_fail(err, ERR_UNAVAILABLE, "", "not enough memory to hash a password");
    return 0;
}

/* "$pbkdf2-sha512$SALT$HASH" in base64: hashes that came from OpenPAI. */
#define IMPORTED "$pbkdf2-sha512$"
enum { IMPORTED_ROUNDS = 10000, IMPORTED_SALT = 16, IMPORTED_HASH = 64 };

int password_hash_import(struct text user, struct text digits, char hash[PASSWORD_HASH_SIZE])
{
    enum { BASE64 = sodium_base64_VARIANT_ORIGINAL_NO_PADDING };
    unsigned char salt[IMPORTED_SALT], bytes[IMPORTED_HASH];
    char salt_text[32], hash_text[96];
    const char *end;
    size_t length;

    if (digits.length != 2 * sizeof bytes ||
        sodium_hex2bin(bytes, sizeof bytes, digits.at, digits.length, NULL, &length, &end) < 0 ||
        length != sizeof bytes ||
        EVP_Digest(user.at, user.length, salt, NULL, EVP_md5(), NULL) != 1)
        return ERR_INVALID;
    sodium_bin2base64(salt_text, sizeof salt_text, salt, sizeof salt, BASE64);
    sodium_bin2base64(hash_text, sizeof hash_text, bytes, sizeof bytes, BASE64);
    length = (size_t)snprintf(hash, PASSWORD_HASH_SIZE, IMPORTED "%s$%s", salt_text, hash_text);
    assert(length < PASSWORD_HASH_SIZE);
    return 0;
}

static bool imported_matches(struct text password, const char *hash)
{
    enum { BASE64 = sodium_base64_VARIANT_ORIGINAL_NO_PADDING };
    unsigned char salt[IMPORTED_SALT], wanted[IMPORTED_HASH], got[IMPORTED_HASH];
    char salt_hex[2 * IMPORTED_SALT + 1];
    size_t salt_length = 0, length = 0;
    const char *at = hash + sizeof IMPORTED - 1, *mark = strchr(at, '$');

    if (!mark ||
        sodium_base642bin(salt, sizeof salt, at, (size_t)(mark - at), NULL, &salt_length, NULL,
                          BASE64) < 0 ||
        sodium_base642bin(wanted, sizeof wanted, mark + 1, strlen(mark + 1), NULL, &length, NULL,
                          BASE64) < 0 ||
        salt_length != sizeof salt || length != sizeof wanted)
        return false;
    sodium_bin2hex(salt_hex, sizeof salt_hex, salt, sizeof salt);
    return PKCS5_PBKDF2_HMAC(password.at, (int)password.length, (const unsigned char *)salt_hex,
                             2 * IMPORTED_SALT, IMPORTED_ROUNDS, EVP_sha512(), sizeof got,
                             got) == 1 &&
           sodium_memcmp(got, wanted, sizeof got) == 0;
}

enum password_kind password_kind(const char *hash)
{
    const bool is_imported = strncmp(hash, IMPORTED, sizeof IMPORTED - 1) == 0;
    return is_imported ? PASSWORD_IMPORTED : PASSWORD_ARGON2;
}

bool password_matches(struct text password, const char *hash)
{
    if (password.length > PASSWORD_MAX || hash[0] == '\0')
        return false;
    if (password_kind(hash) == PASSWORD_IMPORTED)
        return imported_matches(password, hash);
    return crypto_pwhash_str_verify(hash, password.at, password.length) == 0;
}
