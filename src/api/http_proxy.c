#include "api/http_proxy.h"
#include "base/address.h"
#include <stdbool.h>

static bool is_proxy(const struct address_range *proxies, size_t count, struct text name)
{
    for (size_t i = 0; i < count; i++)
        if (address_range_has(&proxies[i], name))
            return true;
    return false;
}

/* The last element of a list with commas, cut off its end. */
static struct text last_cut(struct text *list)
{
    size_t at = list->length;
    while (at && list->at[at - 1] != ',')
        at--;
    struct text last = {list->at + at, list->length - at};
    list->length = at ? at - 1 : 0;
    return text_trim(last);
}

struct text http_proxy_client(const struct address_range *proxies, size_t count, struct text peer,
                              struct text forwarded)
{
    struct text client = peer;
    while (forwarded.length && is_proxy(proxies, count, client)) {
        struct text before = last_cut(&forwarded);
        if (!address_is_numeric(before)) /* rubbish: whoever wrote it is as far as we know */
            break;
        client = before;
    }
    return client;
}
