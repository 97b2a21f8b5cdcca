/* hash_watch.h — sees every password that is hashed in the program, whoever asks for it.
 *
 * The functions of libsodium and OpenSSL that do it have a namesake here, which notes the call and
 * passes it on. One test at a time.
 */
#ifndef TEST_API_HASH_WATCH_H
#define TEST_API_HASH_WATCH_H
#include <stdbool.h>

struct hash_counts {
    unsigned argon2, pbkdf2;
};

/* From now on: `on_argon2`, unless NULL, runs before each Argon2, on the thread that does it. */
void hash_watch_begin(void (*on_argon2)(void *context), void *context);
/* Since hash_watch_begin; nothing is told any more. */
struct hash_counts hash_watch_end(void);

#endif
