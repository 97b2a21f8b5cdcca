/* auth_file.c — see auth_file.h. */
#include "server/auth_file.h"
#include "base/arena.h"
#include "base/err.h"
#include "engine/local/reference.h"
#include <string.h>

static int fail(struct err *err, const char *what)
{
    return err_fail(err, ERR_INVALID, "authFile", "authFile: %s", what);
}

static bool is_utf8(struct text text)
{
    size_t length = 0;
    for (size_t at = 0; at < text.length; at += length)
        if ((length = text_utf8_length(text, at)) == 0)
            return false;
    return true;
}

static bool has_control(struct text text)
{
    for (size_t i = 0; i < text.length; i++)
        if ((unsigned char)text.at[i] < ' ' || text.at[i] == 0x7f)
            return true;
    return false;
}

/* "https://index.docker.io/v1/" and the like are ways to write Docker Hub. */
static const char *registry_of(struct text text, struct arena *arena)
{
    static const char *const hub[] = {"", "index.docker.io", "registry-1.docker.io",
                                      "registry.hub.docker.com", "hub.docker.com"};
    for (size_t i = 0; i < 2; i++) {
        struct text scheme = i ? TEXT("http://") : TEXT("https://");
        if (text_starts(text, scheme))
            text = (struct text){text.at + scheme.length, text.length - scheme.length};
    }
    text = text_cut(&text, '/');
    for (size_t i = 0; i < sizeof hub / sizeof *hub; i++)
        if (text_is(text, hub[i]))
            return "docker.io";
    return arena_copy(arena, text);
}

static struct text line_take(struct text *rest)
{
    struct text line = text_cut(rest, '\n');
    if (line.length && line.at[line.length - 1] == '\r')
        line.length--;
    return line;
}

int auth_file_parse(struct text source, struct arena *arena, struct auth_file *file,
                    struct err *err)
{
    if (source.length > AUTH_FILE_BYTES_MAX)
        return err_fail(err, ERR_TOO_BIG, "authFile", "authFile: longer than %d bytes",
                        AUTH_FILE_BYTES_MAX);
    if (!is_utf8(source))
        return fail(err, "not a text in UTF-8");
    if (text_starts(source, TEXT("\xef\xbb\xbf")))
        source = (struct text){source.at + 3, source.length - 3};
    struct text registry = text_trim(line_take(&source));
    struct text user = text_trim(line_take(&source));
    struct text password = line_take(&source);
    if (text_trim(source).length)
        return fail(err, "more than three lines (registry, user name, password)");
    if (user.length == 0 || password.length == 0)
        return fail(err, "must have three lines: registry, user name, password");
    if (registry.length > AUTH_FILE_NAME_MAX || user.length > AUTH_FILE_NAME_MAX)
        return fail(err, "the registry or the user name is too long");
    if (has_control(registry) || has_control(user) || has_control(password))
        return fail(err, "a line holds a control character");
    if (memchr(user.at, ':', user.length))
        return fail(err, "a user name cannot hold a colon");
    file->registry = registry_of(registry, arena);
    file->user = arena_copy(arena, user);
    file->password = arena_copy(arena, password);
    return 0;
}

bool auth_file_fits(const struct auth_file *file, const char *image)
{
    struct reference reference;
    return reference_parse(image, &reference, NULL) == 0 && reference.kind == REFERENCE_REGISTRY &&
           strcmp(reference.host, file->registry) == 0;
}
