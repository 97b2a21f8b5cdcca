/* key_file.h — the keys of a data directory, in one file of mode 0600.
 *
 * Edge. The first line is the master key, 64 hexadecimal digits; the others are derived from it,
 * until the sealing key is rotated: then lines follow it, "seal DIGITS" with the key that seals now
 * and, until everything has been sealed anew, "old DIGITS" with the one before. The file is
 * replaced at once, so that after a crash it has the keys of before or of after.
 */
#ifndef SYS_KEY_FILE_H
#define SYS_KEY_FILE_H
#include "sys/secret.h"

struct key_file {
    uint8_t master[SECRET_KEY_SIZE];
    uint8_t seal[SECRET_KEY_SIZE]; /* what is new is sealed by it */
    uint8_t
        old_seal[SECRET_KEY_SIZE]; /* with `has_old`: what was sealed before may still need it */
    bool has_old;
};

/* Made when it does not exist. ERR_FORBIDDEN: others may read the file. ERR_CORRUPT: it does not
 * hold such keys. */
int key_file_load(const char *path, struct key_file *keys, struct err *err);

/* A new sealing key; the one that was becomes the old one. There must be none yet. */
int key_file_rotate(const char *path, struct key_file *keys, struct err *err);
/* Nothing is sealed by the old key any more. */
int key_file_settle(const char *path, struct key_file *keys, struct err *err);

void key_file_wipe(struct key_file *keys);
#define cleanup_keys __attribute__((cleanup(key_file_wipe)))

#endif
