#include "cli/settings.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/memory.h"
#include "sys/api_socket.h"
#include "sys/file.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { SETTINGS_MAX = 64 << 10 };

static char *settings_dir(void)
{
    struct buf path = BUF_INIT;
    const char *config = getenv("XDG_CONFIG_HOME");
    const char *home = getenv("HOME");
    if (config && config[0] == '/')
        buf_format(&path, "%s/skep", config);
    else if (home && home[0])
        buf_format(&path, "%s/.config/skep", home);
    else
        return NULL;
    return buf_steal(&path);
}

/* The path, or NULL without a home. Owned by the caller. */
static char *settings_path(void)
{
    char *dir = settings_dir();
    if (!dir)
        return NULL;
    struct buf path = BUF_INIT;
    buf_format(&path, "%s/settings", dir);
    mem_free(dir);
    return buf_steal(&path);
}

void settings_release(struct settings *settings)
{
    mem_free(settings->server);
    mem_free(settings->token);
    mem_free(settings->user);
    mem_free(settings->fingerprint);
    memset(settings, 0, sizeof *settings);
}

static char *copy_value(struct text value)
{
    struct buf copy = BUF_INIT;
    buf_text(&copy, value);
    buf_char(&copy, '\0');
    return buf_steal(&copy);
}

static void settings_parse(struct text text, struct settings *settings)
{
    while (text.at && text.length) {
        struct text value = text_cut(&text, '\n');
        struct text key = text_trim(text_cut(&value, ':'));
        value = value.at ? text_trim(value) : TEXT("");
        char **field = text_is(key, "server")        ? &settings->server
                       : text_is(key, "token")       ? &settings->token
                       : text_is(key, "user")        ? &settings->user
                       : text_is(key, "fingerprint") ? &settings->fingerprint
                                                     : NULL;
        if (!field || !value.length)
            continue;
        mem_free(*field);
        *field = copy_value(value);
    }
}

const char *settings_server(void)
{
    struct stat status;
    bool is_there = stat(PATH_API_SOCKET, &status) == 0 && S_ISSOCK(status.st_mode);
    return is_there ? "unix:" PATH_API_SOCKET : "http://127.0.0.1:9186";
}

int settings_load(struct settings *settings, struct err *err)
{
    memset(settings, 0, sizeof *settings);
    char *path = settings_path();
    if (!path)
        return 0;
    cleanup_buf struct buf content = BUF_INIT;
    struct stat status;
    int code = 0;
    if (stat(path, &status) == 0) {
        if (status.st_mode & 077)
            code = err_fail(err, ERR_FORBIDDEN, "", "others may read %s: chmod 600 it", path);
        else
            code = file_read(path, SETTINGS_MAX, &content, err);
    } else if (errno != ENOENT && errno != ENOTDIR) {
        code = err_errno(err, errno, "%s", path);
    }
    if (!code)
        settings_parse(buf_as_text(&content), settings);
    mem_free(path);
    return code;
}

int settings_save(const struct settings *settings, struct err *err)
{
    char *dir = settings_dir();
    char *path = settings_path();
    if (!path)
        return err_fail(err, ERR_IO, "", "there is no home directory to keep the settings in");
    cleanup_buf struct buf content = BUF_INIT;
    buf_string(&content, "# written by skep login\n");
    if (settings->server)
        buf_format(&content, "server: %s\n", settings->server);
    if (settings->user)
        buf_format(&content, "user: %s\n", settings->user);
    if (settings->token)
        buf_format(&content, "token: %s\n", settings->token);
    if (settings->fingerprint)
        buf_format(&content, "fingerprint: %s\n", settings->fingerprint);
    int code = dir_make(dir, 0700, err);
    if (!code)
        code = file_write(path, buf_as_text(&content), 0600, err);
    mem_free(path);
    mem_free(dir);
    return code;
}
