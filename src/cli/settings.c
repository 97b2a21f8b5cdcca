#include "cli/settings.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/memory.h"
#include "sys/api_socket.h"
#include "sys/file.h"
#include <assert.h>
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

static void context_release(struct context *context)
{
    mem_free(context->name);
    mem_free(context->server);
    mem_free(context->token);
    mem_free(context->user);
    mem_free(context->fingerprint);
    mem_free(context->certificate);
    mem_free(context->key);
}

void settings_release(struct settings *settings)
{
    for (size_t i = 0; i < settings->count; i++)
        context_release(&settings->contexts[i]);
    mem_free(settings->current);
    memset(settings, 0, sizeof *settings);
}

void context_set(char **field, const char *value)
{
    char *copy = value ? mem_copy(value) : NULL; /* the value may be the field's own */
    mem_free(*field);
    *field = copy;
}

static bool is_name_character(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
           c == '_' || c == '-';
}

bool context_is_name(const char *name)
{
    size_t length = 0;
    while (is_name_character(name[length]))
        length++;
    return !name[length] && length >= 1 && length <= CONTEXT_NAME_MAX;
}

void context_name_of(const char *server, char *name)
{
    const char *host = strstr(server, "://");
    size_t length = 0;
    host = host ? host + 3 : "local";
    for (; *host && *host != '/' && length < CONTEXT_NAME_MAX; host++)
        if (*host == ':')
            name[length++] = '-';
        else if (is_name_character(*host))
            name[length++] = *host;
    name[length] = '\0';
    if (!length)
        memcpy(name, "default", sizeof "default");
}

struct context *settings_find(struct settings *settings, const char *name)
{
    for (size_t i = 0; i < settings->count; i++)
        if (strcmp(settings->contexts[i].name, name) == 0)
            return &settings->contexts[i];
    return NULL;
}

struct context *settings_current(struct settings *settings)
{
    return settings->current ? settings_find(settings, settings->current) : NULL;
}

static bool is_of_server(const struct context *context, const char *server)
{
    return context && context->server && strcmp(context->server, server) == 0;
}

struct context *settings_of_server(struct settings *settings, const char *server)
{
    struct context *current = settings_current(settings);
    if (is_of_server(current, server))
        return current;
    for (size_t i = 0; i < settings->count; i++)
        if (is_of_server(&settings->contexts[i], server))
            return &settings->contexts[i];
    return NULL;
}

const char *settings_token_server(struct settings *settings, const char *named)
{
    const struct context *current = settings_current(settings);
    return named ? named : current ? current->server : NULL;
}

static struct text address_of(const char *server)
{
    struct text address = text_of(server);
    while (address.length > 0 && address.at[address.length - 1] == '/')
        address.length--;
    return address;
}

bool settings_token_fits(const char *token_server, const char *server,
                         const struct context *context)
{
    assert(server);
    if (!token_server)
        return !context;
    return text_equal(address_of(token_server), address_of(server));
}

int settings_add(struct settings *settings, const char *name, struct context **context,
                 struct err *err)
{
    assert(context_is_name(name) && !settings_find(settings, name));
    if (settings->count == CONTEXTS_MAX)
        return err_fail(err, ERR_TOO_BIG, "", "there are %d contexts, and no more may be kept",
                        CONTEXTS_MAX);
    *context = &settings->contexts[settings->count++];
    **context = (struct context){.name = mem_copy(name)};
    return 0;
}

void settings_remove(struct settings *settings, struct context *context)
{
    size_t at = (size_t)(context - settings->contexts);
    assert(at < settings->count);
    if (settings->current && strcmp(settings->current, context->name) == 0)
        context_set(&settings->current, NULL);
    context_release(context);
    settings->count--;
    memmove(context, context + 1, (settings->count - at) * sizeof *context);
}

void settings_choose(struct settings *settings, const struct context *context)
{
    context_set(&settings->current, context->name);
}

/* ---- the file ---- */

static char *copy_value(struct text value)
{
    struct buf copy = BUF_INIT;
    buf_text(&copy, value);
    buf_char(&copy, '\0');
    return buf_steal(&copy);
}

/* The context that `context: NAME` begins; of one that was there before the lines are one. */
static int context_begin(struct settings *settings, const char *path, const char *name,
                         struct context **context, struct err *err)
{
    if (!context_is_name(name))
        return err_fail(err, ERR_INVALID, "", "%s: '%s' is no name of a context", path, name);
    *context = settings_find(settings, name);
    return *context ? 0 : settings_add(settings, name, context, err);
}

static char **context_field(struct context *context, struct text key)
{
    return text_is(key, "server")        ? &context->server
           : text_is(key, "token")       ? &context->token
           : text_is(key, "user")        ? &context->user
           : text_is(key, "fingerprint") ? &context->fingerprint
           : text_is(key, "certificate") ? &context->certificate
           : text_is(key, "key")         ? &context->key
                                         : NULL;
}

static int line_take(struct settings *settings, const char *path, struct text key,
                     const char *value, struct context **context, struct err *err)
{
    struct context any = {0};
    if (text_is(key, "context"))
        return context_begin(settings, path, value, context, err);
    if (text_is(key, "current")) {
        context_set(&settings->current, value);
        return 0;
    }
    if (!context_field(&any, key))
        return 0;
    if (!*context) { /* written by an older version */
        int code = context_begin(settings, path, "default", context, err);
        if (!*context)
            return code;
        settings_choose(settings, *context);
    }
    context_set(context_field(*context, key), value);
    return 0;
}

static int settings_parse(const char *path, struct text text, struct settings *settings,
                          struct err *err)
{
    struct context *context = NULL;
    int code = 0;
    while (!code && text.at && text.length) {
        struct text value = text_cut(&text, '\n');
        struct text key = text_trim(text_cut(&value, ':'));
        value = value.at ? text_trim(value) : TEXT("");
        if (!value.length)
            continue;
        char *copy = copy_value(value);
        code = line_take(settings, path, key, copy, &context, err);
        mem_free(copy);
    }
    if (!settings_current(settings))
        context_set(&settings->current, NULL);
    return code;
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
        code = settings_parse(path, buf_as_text(&content), settings, err);
    mem_free(path);
    return code;
}

/* Some of what is kept comes from servers: one line of theirs must not become two, of which the
 * second names another context. */
static bool is_line(const char *value)
{
    for (; *value; value++)
        if ((unsigned char)*value < ' ' || *value == 0x7f)
            return false;
    return true;
}

static int context_check(const struct context *context, struct err *err)
{
    const struct {
        const char *key, *value;
    } fields[] = {{"server", context->server},
                  {"user", context->user},
                  {"token", context->token},
                  {"fingerprint", context->fingerprint},
                  {"certificate", context->certificate},
                  {"key", context->key}};
    for (size_t i = 0; i < COUNT_OF(fields); i++)
        if (fields[i].value && !is_line(fields[i].value))
            return err_fail(err, ERR_INVALID, "",
                            "the %s of context '%s' has a control character, and is not kept",
                            fields[i].key, context->name);
    return 0;
}

static void line_put(struct buf *out, const char *key, const char *value)
{
    if (value)
        buf_format(out, "%s: %s\n", key, value);
}

static void context_put(struct buf *out, const struct context *context)
{
    line_put(out, "context", context->name);
    line_put(out, "server", context->server);
    line_put(out, "user", context->user);
    line_put(out, "token", context->token);
    line_put(out, "fingerprint", context->fingerprint);
    line_put(out, "certificate", context->certificate);
    line_put(out, "key", context->key);
}

int settings_save(const struct settings *settings, struct err *err)
{
    char *dir = settings_dir();
    char *path = settings_path();
    int code = 0;
    if (!path)
        return err_fail(err, ERR_IO, "", "there is no home directory to keep the settings in");
    cleanup_buf struct buf content = BUF_INIT;
    buf_string(&content, "# written by skep login\n");
    line_put(&content, "current", settings->current);
    for (size_t i = 0; !code && i < settings->count; i++) {
        code = context_check(&settings->contexts[i], err);
        context_put(&content, &settings->contexts[i]);
    }
    if (!code && content.length > SETTINGS_MAX)
        code = err_fail(err, ERR_TOO_BIG, "", "the settings would have %zu bytes, more than %d",
                        content.length, SETTINGS_MAX);
    if (!code)
        code = dir_make(dir, 0700, err);
    if (!code)
        code = file_write(path, buf_as_text(&content), 0600, err);
    mem_free(path);
    mem_free(dir);
    return code;
}
