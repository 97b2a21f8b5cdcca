#include "api/route.h"
#include <assert.h>

static bool path_fits(const char *path, const struct text *segments, size_t count,
                      struct text *parameters)
{
    size_t parameter = 0;
    struct text rest = text_of(path + 1);
    for (size_t i = 0; i < count; i++) {
        if (!rest.length)
            return false;
        struct text part = text_cut(&rest, '/');
        if (part.at[0] == '*')
            return segments[i].length;
        if (part.at[0] == ':') {
            assert(parameter < ROUTE_PARAMETERS_MAX);
            if (!segments[i].length)
                return false;
            parameters[parameter++] = segments[i];
        } else if (!text_equal(part, segments[i])) {
            return false;
        }
    }
    return !rest.length;
}

/* What the first release of PAI called tokens, users and jobs; with or without the version. */
static void names_first(struct text *segments, size_t *count, enum http_method method)
{
    size_t at = *count > 1 && text_is(segments[1], "v1") ? 2 : 1;
    if (*count <= at || !text_is(segments[0], "api"))
        return;
    if (text_is(segments[at], "auth"))
        segments[at] = method == HTTP_POST ? TEXT("token") : TEXT("user");
    else if (text_is(segments[at], "job"))
        segments[at] = TEXT("jobs");
    else
        return;
    if (at == 2 || *count == HTTP_SEGMENTS_MAX)
        return;
    memmove(segments + 2, segments + 1, (*count - 1) * sizeof segments[0]);
    segments[1] = TEXT("v1");
    ++*count;
}

/* OpenPAI's older names of two collections. */
static void names_renew(struct text *segments, size_t count)
{
    if (count < 3 || !text_is(segments[0], "api") || !text_is(segments[1], "v2"))
        return;
    if (text_is(segments[2], "user"))
        segments[2] = TEXT("users");
    else if (text_is(segments[2], "group"))
        segments[2] = TEXT("groups");
}

void route_find(const struct route *routes, size_t count, const struct exchange *exchange,
                struct route_match *match)
{
    *match = (struct route_match){0};
    struct text segments[HTTP_SEGMENTS_MAX];
    size_t segment_count = exchange->segment_count;
    size_t dropped = segment_count && text_is(exchange->segments[0], "rest-server");
    segment_count -= dropped;
    memcpy(segments, exchange->segments + dropped, segment_count * sizeof segments[0]);
    enum http_method method = exchange->method == HTTP_HEAD ? HTTP_GET : exchange->method;
    names_first(segments, &segment_count, method);
    names_renew(segments, segment_count);
    for (size_t i = 0; i < count && !match->route; i++) {
        struct text parameters[ROUTE_PARAMETERS_MAX] = {0};
        if (!path_fits(routes[i].path, segments, segment_count, parameters))
            continue;
        match->is_path_known = true;
        if (routes[i].method != method)
            continue;
        match->route = &routes[i];
        memcpy(match->parameters, parameters, sizeof parameters);
    }
}
