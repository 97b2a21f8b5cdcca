#include "portal/portal.h"
#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "portal/files.h"
#include "sys/file.h"
#include <stdio.h>
#include <stdlib.h>

static const struct {
    const char *suffix, *type;
} TYPES[] = {
    {".html", "text/html; charset=utf-8"}, {".js", "text/javascript; charset=utf-8"},
    {".css", "text/css; charset=utf-8"},   {".svg", "image/svg+xml"},
    {".json", "application/json"},         {".woff2", "font/woff2"},
};

static bool text_ends(struct text text, const char *suffix)
{
    size_t length = strlen(suffix);
    return text.length >= length && memcmp(text.at + text.length - length, suffix, length) == 0;
}

static const char *type_of(struct text name)
{
    for (size_t i = 0; i < sizeof TYPES / sizeof TYPES[0]; i++)
        if (text_ends(name, TYPES[i].suffix))
            return TYPES[i].type;
    return "application/octet-stream";
}

/* "/assets/NAME" → "assets/NAME", the frame of a plugin is a page of its own, every other path is
 * one of the portal. */
static struct text file_of(struct text path)
{
    if (text_starts(path, TEXT("/assets/")))
        return (struct text){path.at + 1, path.length - 1};
    return text_is(path, "/plugin-frame.html") ? TEXT("plugin-frame.html") : TEXT("index.html");
}

bool portal_is_built_in(void)
{
    return PORTAL_FILE_COUNT > 0;
}

static int path_compare(const void *key, const void *item)
{
    const struct text *path = key;
    const struct portal_file *file = item;
    struct text other = text_of(file->path);
    size_t shorter = path->length < other.length ? path->length : other.length;
    int order = memcmp(path->at, other.at, shorter);
    return order ? order : (path->length > other.length) - (path->length < other.length);
}

const struct portal_file *portal_find(struct text path)
{
    struct text name = file_of(path);
    return bsearch(&name, PORTAL_FILES, PORTAL_FILE_COUNT, sizeof PORTAL_FILES[0], path_compare);
}

/* Letters, digits and ". _ -" in each part, which does not begin with a dot. */
static bool is_plain_name(struct text name)
{
    char before = '/';
    for (size_t i = 0; i < name.length; before = name.at[i++]) {
        char c = name.at[i];
        bool is_letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
        bool is_inner = c == '.' || c == '/';
        if (!is_letter && !(c >= '0' && c <= '9') && c != '_' && c != '-' && !is_inner)
            return false;
        if (is_inner && before == '/')
            return false;
    }
    return name.length > 0;
}

int portal_read(const char *folder, struct text path, struct arena *arena, struct portal_file *file,
                struct err *err)
{
    struct text name = file_of(path);
    if (!is_plain_name(name))
        return err_fail(err, ERR_NOT_FOUND, "", "the portal has no file of this name");
    cleanup_buf struct buf bytes = BUF_INIT;
    int code = file_read(arena_format(arena, "%s/%.*s", folder, TEXT_ARG(name)), PORTAL_FILE_MAX,
                         &bytes, err);
    if (code)
        return code;
    size_t length = bytes.length;
    *file = (struct portal_file){
        .path = arena_copy(arena, name),
        .type = type_of(name),
        .plain = {arena_copy(arena, buf_as_text(&bytes)), length},
    };
    return 0;
}
