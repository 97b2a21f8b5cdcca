#include "base/origin.h"
#include "base/err.h"
#include <stdint.h>

int origin_pattern_parse(const char *pattern, struct origin_pattern *origin, struct err *err)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyz0123456789-.";
    struct text rest = text_of(pattern), port;
    int64_t number = 1;
    bool is_secure = text_starts(rest, TEXT("https://*."));
    size_t begin = is_secure ? sizeof "https://*" - 1 : sizeof "http://*" - 1;
    if (!is_secure && !text_starts(rest, TEXT("http://*.")))
        return err_fail(err, ERR_INVALID, "", "'%s' does not begin with https://*. or http://*.",
                        pattern);
    *origin = (struct origin_pattern){is_secure, {rest.at + begin, rest.length - begin}};
    port = origin->suffix;
    struct text name = text_cut(&port, ':');
    bool is_good = name.length > 1 && name.length <= 200 && name.at[name.length - 1] != '.';
    for (size_t i = 0; i < name.length; i++)
        is_good = is_good && memchr(letters, name.at[i], sizeof letters - 1) &&
                  !(name.at[i] == '.' && i && name.at[i - 1] == '.');
    if (port.at && (!text_to_int64(port, &number) || number < 1 || number > UINT16_MAX))
        is_good = false;
    if (!is_good)
        return err_fail(err, ERR_INVALID, "",
                        "'%s' is not SCHEME://*.NAME[:PORT] with a name in small letters", pattern);
    return 0;
}

static bool is_name_char(char c, bool is_address)
{
    if ((c >= '0' && c <= '9') || c == '.')
        return true;
    if (is_address)
        return (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F') || c == ':';
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-' || c == '_';
}

/* Length of the name, brackets included; 0: there is none. */
static size_t name_length(struct text rest)
{
    const bool is_address = rest.length && rest.at[0] == '[';
    size_t at = is_address;
    while (at < rest.length && is_name_char(rest.at[at], is_address))
        at++;
    if (!is_address)
        return at;
    return at > 1 && at < rest.length && rest.at[at] == ']' ? at + 1 : 0;
}

static bool is_plain(struct text uri)
{
    static const char others[] = "\"'<>\\,;";
    for (size_t i = 0; i < uri.length; i++)
        if (uri.at[i] <= ' ' || uri.at[i] > '~' || memchr(others, uri.at[i], sizeof others - 1))
            return false;
    return true;
}

int web_origin_of(struct text uri, struct text *origin, struct err *err)
{
    const bool is_secure = text_starts(uri, TEXT("https://"));
    const bool is_web = is_secure || text_starts(uri, TEXT("http://"));
    size_t at = is_secure ? 8 : 7;
    struct text rest = is_web ? (struct text){uri.at + at, uri.length - at} : (struct text){0};
    const size_t name = name_length(rest);
    at += name;
    bool is_good = name > 0 && is_plain(uri);
    if (is_good && at < uri.length && uri.at[at] == ':') {
        size_t end = at + 1;
        while (end < uri.length && uri.at[end] >= '0' && uri.at[end] <= '9')
            end++;
        int64_t port = 0;
        is_good = text_to_int64((struct text){uri.at + at + 1, end - at - 1}, &port) && port > 0 &&
                  port <= UINT16_MAX;
        at = end;
    }
    is_good = is_good && (at == uri.length || memchr("/?#", uri.at[at], 3));
    if (!is_good)
        return err_fail(err, ERR_INVALID, "", "%.*s is no address http://NAME… or https://NAME…",
                        TEXT_ARG(uri));
    *origin = (struct text){uri.at, at};
    return 0;
}
