/* ssh_key.c — the key pair with which the tasks of a job reach each other.
 *
 * Derived from the key of the job's epoch and the job's number, so that it need not be stored and
 * is the same after a restart. The file format is OpenSSH's own: PROTOCOL.key.
 */
#include "base/arena.h"
#include "base/memory.h"
#include "server/container.h"
#include "sys/secret.h"
#include <sodium.h>
#include <string.h>

static void put_u32(struct buf *out, uint32_t value)
{
    for (int shift = 24; shift >= 0; shift -= 8)
        buf_put_u8(out, (uint8_t)(value >> shift & 0xff));
}

static void put_string(struct buf *out, const void *bytes, size_t length)
{
    put_u32(out, (uint32_t)length);
    buf_add(out, bytes, length);
}

static void put_public(struct buf *out, const uint8_t *public_key)
{
    put_string(out, "ssh-ed25519", 11);
    put_string(out, public_key, crypto_sign_PUBLICKEYBYTES);
}

static char *base64(const struct buf *bytes, struct arena *arena)
{
    size_t room = sodium_base64_ENCODED_LEN(bytes->length, sodium_base64_VARIANT_ORIGINAL);
    char *text = arena_alloc(arena, room);
    sodium_bin2base64(text, room, (const uint8_t *)bytes->at, bytes->length,
                      sodium_base64_VARIANT_ORIGINAL);
    return text;
}

static void put_private(struct buf *out, const uint8_t *public_key, const uint8_t *secret_key,
                        uint32_t check, const char *comment)
{
    cleanup_buf struct buf inner = BUF_INIT;
    put_u32(&inner, check);
    put_u32(&inner, check);
    put_public(&inner, public_key);
    put_string(&inner, secret_key, crypto_sign_SECRETKEYBYTES);
    put_string(&inner, comment, strlen(comment));
    for (uint8_t pad = 1; inner.length % 8 != 0; pad++)
        buf_put_u8(&inner, pad);
    put_string(out, inner.at, inner.length);
    secret_wipe(inner.at, inner.room);
}

static const char *armour(const char *text, struct arena *arena)
{
    cleanup_buf struct buf out = BUF_INIT;
    buf_string(&out, "-----BEGIN OPENSSH PRIVATE KEY-----\n");
    for (size_t length = strlen(text); length > 0;) {
        size_t line = length < 70 ? length : 70;
        buf_add(&out, text, line);
        buf_char(&out, '\n');
        text += line;
        length -= line;
    }
    buf_string(&out, "-----END OPENSSH PRIVATE KEY-----\n");
    const char *copy = arena_copy(arena, buf_as_text(&out));
    secret_wipe(out.at, out.room);
    return copy;
}

void epoch_key_make(const uint8_t *master_key, const struct store_epoch *epoch,
                    uint8_t key[SECRET_KEY_SIZE])
{
    if (epoch->number == 0)
        memcpy(key, master_key, SECRET_KEY_SIZE);
    else
        secret_key_derive(master_key, epoch->id, "skepepoc", key);
}

void ssh_key_make(const uint8_t *epoch_key, struct job_id job, const char *comment,
                  struct arena *arena, const char **private_key, const char **public_key)
{
    uint8_t seed[SECRET_KEY_SIZE], open[crypto_sign_PUBLICKEYBYTES];
    cleanup_buf struct buf blob = BUF_INIT, key = BUF_INIT;
    _Static_assert(crypto_sign_SEEDBYTES == SECRET_KEY_SIZE, "size of seeds");
    secret_key_derive(epoch_key, job.v, "skep-ssh", seed);
    uint8_t secret[crypto_sign_SECRETKEYBYTES];
    crypto_sign_seed_keypair(open, secret, seed);
    put_public(&blob, open);
    uint32_t check;
    memcpy(&check, open, sizeof check);
    buf_add(&key, "openssh-key-v1", 15);
    put_string(&key, "none", 4);
    put_string(&key, "none", 4);
    put_string(&key, "", 0);
    put_u32(&key, 1);
    put_string(&key, blob.at, blob.length);
    put_private(&key, open, secret, check, comment);
    *private_key = armour(base64(&key, arena), arena);
    *public_key = arena_format(arena, "ssh-ed25519 %s %s", base64(&blob, arena), comment);
    secret_wipe(seed, sizeof seed);
    secret_wipe(secret, sizeof secret);
    secret_wipe(key.at, key.room);
}
