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
