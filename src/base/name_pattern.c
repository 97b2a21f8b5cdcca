#include "base/name_pattern.h"
#include <assert.h>
#include <string.h>

static const char mark[] = "{user}";

struct pattern_parts {
    struct text kind, before, behind; /* the mark */
};

static bool parts_cut(const char *pattern, struct pattern_parts *parts)
{
    const char *colon = strchr(pattern, ':');
    const char *at = colon ? strstr(colon, mark) : NULL;
    if (!at || strstr(at + 1, mark))
        return false;
    *parts = (struct pattern_parts){.kind = {pattern, (size_t)(colon - pattern)},
                                    .before = {colon + 1, (size_t)(at - colon - 1)},
                                    .behind = text_of(at + sizeof mark - 1)};
    return text_is(parts->kind, "CN") || text_is(parts->kind, "email") ||
           text_is(parts->kind, "uri");
}

bool name_pattern_is_good(const char *pattern)
{
    struct pattern_parts parts;
    return parts_cut(pattern, &parts);
}

bool name_pattern_match(const char *pattern, const char *kind, struct text name, struct text *user)
{
    struct pattern_parts parts = {0};
    const bool is_good = parts_cut(pattern, &parts);
    assert(is_good);
    (void)is_good;
    const size_t around = parts.before.length + parts.behind.length;
    if (!text_is(parts.kind, kind) || name.length <= around)
        return false;
    *user = (struct text){name.at + parts.before.length, name.length - around};
    return text_starts(name, parts.before) &&
           text_equal((struct text){user->at + user->length, parts.behind.length}, parts.behind);
}
