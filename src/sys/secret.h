/* secret.h — keys, sealed secrets, passwords and random bytes, by libsodium.
 *
 * Edge. secret_init must have been called once. Sealed: XSalsa20-Poly1305 under a random nonce.
 * Passwords: Argon2id with libsodium's interactive limits; OpenPAI's PBKDF2 is checked, never made.
 */
#ifndef SYS_SECRET_H
#define SYS_SECRET_H
#include "base/text.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct buf;
struct err;

enum { SECRET_KEY_SIZE = 32, PASSWORD_HASH_SIZE = 160, PASSWORD_MAX = 1024 };

/* Once, before any other; `err` may be NULL. ERR_INTERNAL: libsodium cannot work here. */
int secret_init(struct err *err);

/* The key for one purpose: `number` with an eight-letter `context`. */
void secret_key_derive(const uint8_t master[SECRET_KEY_SIZE], uint64_t number,
                       const char context[9], uint8_t key[SECRET_KEY_SIZE]);

/* Append the sealed text: nonce, then cipher text. */
void secret_seal(const uint8_t key[SECRET_KEY_SIZE], struct text plain, struct buf *sealed);
/* ERR_CORRUPT: not sealed with this key, or changed since. */
int secret_open(const uint8_t key[SECRET_KEY_SIZE], struct text sealed, struct buf *plain,
                struct err *err);

/* Of the text, by a key: who has not the key can neither make it nor try texts by it. */
enum { SECRET_DIGEST_SIZE = 32 };
void secret_digest(const uint8_t key[SECRET_KEY_SIZE], struct text plain,
                   uint8_t digest[SECRET_DIGEST_SIZE]);

/* From the system's generator, good for keys. */
void secret_random(void *bytes, size_t size);
/* `length` letters and digits that cannot be confused; NUL-terminated. */
void secret_random_word(char *word, size_t length);
/* Overwrite: not left out by an optimiser. */
void secret_wipe(void *bytes, size_t size);

/* Takes some 50 ms and 64 MiB, by intention. ERR_TOO_BIG beyond PASSWORD_MAX. */
int password_hash(struct text password, char hash[PASSWORD_HASH_SIZE], struct err *err);
/* A hash as OpenPAI stored it: 128 hexadecimal digits of PBKDF2-SHA512, 10,000 rounds, the salt
 * being the MD5 of the user's name in hexadecimal. ERR_INVALID: it is none. */
int password_hash_import(struct text user, struct text digits, char hash[PASSWORD_HASH_SIZE]);
enum password_kind { PASSWORD_ARGON2, PASSWORD_IMPORTED, PASSWORD_KIND_COUNT };
/* By what a hash is checked, for which time differs. */
enum password_kind password_kind(const char *hash);
/* Of either kind. */
bool password_matches(struct text password, const char *hash);

#endif
