#include "sys/key_file.h"
#include "base/buf.h"
#include "base/err.h"
#include "sys/file.h"
#include <assert.h>
#include <errno.h>
#include <sodium.h>
#include <sys/stat.h>

enum { FILE_BYTES_MAX = 4096, HEX_SIZE = 2 * SECRET_KEY_SIZE + 1 };

static bool key_of(struct text digits, uint8_t key[SECRET_KEY_SIZE])
{
    size_t size = 0;
    return digits.length == HEX_SIZE - 1 &&
           sodium_hex2bin(key, SECRET_KEY_SIZE, digits.at, digits.length, NULL, &size, NULL) == 0 &&
           size == SECRET_KEY_SIZE;
}

/* What follows the master key: "seal DIGITS", then "old DIGITS" or nothing. */
static bool rest_read(struct text rest, struct key_file *keys)
{
    struct text seal = text_trim(text_cut(&rest, '\n'));
    if (!seal.length)
        return !text_trim(rest).length;
    struct text word = text_cut(&seal, ' ');
    if (!text_is(word, "seal") || !key_of(seal, keys->seal))
        return false;
    struct text old = text_trim(rest);
    if (!old.length)
        return true;
    word = text_cut(&old, ' ');
    keys->has_old = true;
    return text_is(word, "old") && key_of(old, keys->old_seal);
}

static int keys_parse(const char *path, struct text text, struct key_file *keys, struct err *err)
{
    text = text_trim(text);
    struct text master = text_trim(text_cut(&text, '\n'));
    bool is_right = key_of(master, keys->master);
    if (is_right)
        secret_key_derive(keys->master, 1, "skepseal", keys->seal);
    if (is_right && rest_read(text, keys))
        return 0;
    key_file_wipe(keys);
    return err_fail(
        err, ERR_CORRUPT, "",
        "%s must hold a key of 64 hexadecimal digits, and after a rotation lines of seal "
        "and old",
        path);
}

static int key_make(const char *path, struct err *err)
{
    uint8_t key[SECRET_KEY_SIZE];
    char line[HEX_SIZE + 1];
    secret_random(key, sizeof key);
    sodium_bin2hex(line, HEX_SIZE, key, sizeof key);
    line[HEX_SIZE - 1] = '\n';
    int code = file_create(path, (struct text){line, HEX_SIZE}, 0600, err);
    secret_wipe(key, sizeof key);
    secret_wipe(line, sizeof line);
    return code == ERR_CONFLICT ? 0 : code;
}

/* Made when it is not there; only its owner may read it. */
static int file_check(const char *path, struct err *err)
{
    struct stat status;
    if (stat(path, &status) == 0)
        return status.st_mode & 077
                   ? err_fail(err, ERR_FORBIDDEN, "",
                              "%s can be read by others (mode %03o); it must have mode 600", path,
                              (unsigned)status.st_mode & 0777)
                   : 0;
    return errno == ENOENT ? key_make(path, err) : err_errno(err, errno, "stat %s", path);
}

int key_file_load(const char *path, struct key_file *keys, struct err *err)
{
    cleanup_buf struct buf text = BUF_INIT;
    *keys = (struct key_file){0};
    int code = file_check(path, err);
    if (code == 0)
        code = file_read(path, FILE_BYTES_MAX, &text, err);
    if (code == 0)
        code = keys_parse(path, buf_as_text(&text), keys, err);
    if (text.at)
        secret_wipe(text.at, text.room);
    return code;
}

static void line_put(struct buf *out, const char *name, const uint8_t key[SECRET_KEY_SIZE])
{
    char hex[HEX_SIZE];
    sodium_bin2hex(hex, sizeof hex, key, SECRET_KEY_SIZE);
    buf_format(out, "%s%s\n", name, hex);
    secret_wipe(hex, sizeof hex);
}

static int keys_write(const char *path, const struct key_file *keys, struct err *err)
{
    cleanup_buf struct buf text = BUF_INIT;
    buf_room(&text, FILE_BYTES_MAX); /* it does not move: no copy of the keys is left behind */
    line_put(&text, "", keys->master);
    line_put(&text, "seal ", keys->seal);
    if (keys->has_old)
        line_put(&text, "old ", keys->old_seal);
    int code = file_write(path, buf_as_text(&text), 0600, err);
    secret_wipe(text.at, text.room);
    return code;
}

int key_file_rotate(const char *path, struct key_file *keys, struct err *err)
{
    assert(!keys->has_old);
    cleanup_keys struct key_file next = *keys;
    memcpy(next.old_seal, keys->seal, sizeof next.old_seal);
    secret_random(next.seal, sizeof next.seal);
    next.has_old = true;
    int code = keys_write(path, &next, err);
    if (code == 0)
        *keys = next;
    return code;
}

int key_file_settle(const char *path, struct key_file *keys, struct err *err)
{
    assert(keys->has_old);
    cleanup_keys struct key_file next = *keys;
    next.has_old = false;
    secret_wipe(next.old_seal, sizeof next.old_seal);
    int code = keys_write(path, &next, err);
    if (code == 0)
        *keys = next;
    return code;
}

void key_file_wipe(struct key_file *keys)
{
    secret_wipe(keys, sizeof *keys);
}
