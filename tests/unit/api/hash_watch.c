#include "hash_watch.h"

#include <assert.h>
#include <dlfcn.h>
#include <openssl/evp.h>
#include <pthread.h>
#include <sodium.h>
#include <stddef.h>
#include <string.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct hash_counts counts;
static void (*on_argon2)(void *context);
static void *context;

void hash_watch_begin(void (*on_argon2_new)(void *context), void *context_new)
{
    pthread_mutex_lock(&lock);
    counts = (struct hash_counts){0};
    on_argon2 = on_argon2_new;
    context = context_new;
    pthread_mutex_unlock(&lock);
}

struct hash_counts hash_watch_end(void)
{
    pthread_mutex_lock(&lock);
    struct hash_counts found = counts;
    on_argon2 = NULL;
    pthread_mutex_unlock(&lock);
    return found;
}

/* Without the lock: what is told may ask for a hash itself. */
static void argon2_note(void)
{
    pthread_mutex_lock(&lock);
    counts.argon2++;
    void (*tell)(void *) = on_argon2;
    void *of = context;
    pthread_mutex_unlock(&lock);
    if (tell)
        tell(of);
}

/* ISO C knows no way from an object pointer to a function. */
static void real_find(const char *name, void *function, size_t size)
{
    void *symbol = dlsym(RTLD_NEXT, name);
    assert(symbol && size == sizeof symbol);
    memcpy(function, &symbol, size);
}

int crypto_pwhash_str(char out[crypto_pwhash_STRBYTES], const char *const password,
                      unsigned long long length, unsigned long long operations, size_t memory)
{
    int (*real)(char *, const char *, unsigned long long, unsigned long long, size_t);
    real_find("crypto_pwhash_str", &real, sizeof real);
    argon2_note();
    return real(out, password, length, operations, memory);
}

int crypto_pwhash_str_verify(const char hash[crypto_pwhash_STRBYTES], const char *const password,
                             unsigned long long length)
{
    int (*real)(const char *, const char *, unsigned long long);
    real_find("crypto_pwhash_str_verify", &real, sizeof real);
    argon2_note();
    return real(hash, password, length);
}

int PKCS5_PBKDF2_HMAC(const char *password, int length, const unsigned char *salt, int salt_length,
                      int rounds, const EVP_MD *digest, int out_length, unsigned char *out)
{
    int (*real)(const char *, int, const unsigned char *, int, int, const EVP_MD *, int,
                unsigned char *);
    real_find("PKCS5_PBKDF2_HMAC", &real, sizeof real);
    pthread_mutex_lock(&lock);
    counts.pbkdf2++;
    pthread_mutex_unlock(&lock);
    return real(password, length, salt, salt_length, rounds, digest, out_length, out);
}
