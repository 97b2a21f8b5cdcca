#include "base/mail_address.h"
#include <string.h>

static bool is_address_char(char c)
{
    return c > ' ' && c < 0x7f && !strchr("\"(),:;<>@[\\]", c);
}

static bool is_part(struct text part)
{
    for (size_t i = 0; i < part.length; i++)
        if (!is_address_char(part.at[i]))
            return false;
    return part.length > 0;
}

bool mail_address_is_good(struct text address)
{
    struct text domain = address;
    const struct text name = text_cut(&domain, '@');
    return address.length <= MAIL_ADDRESS_MAX && is_part(name) && is_part(domain);
}
