#include "base/address.h"
#include "base/err.h"
#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

enum { ADDRESS_LENGTH_MAX = INET6_ADDRSTRLEN, V4_BITS = 32, V6_BITS = 128 };

static const uint8_t v4_prefix[12] = {[10] = 0xff, [11] = 0xff};

/* The number of bits of such an address, or 0: it is none. */
static unsigned address_parse(struct text text, uint8_t address[16])
{
    char name[ADDRESS_LENGTH_MAX];
    if (text.length >= 2 && text.at[0] == '[' && text.at[text.length - 1] == ']')
        text = (struct text){text.at + 1, text.length - 2};
    if (text.length >= sizeof name)
        return 0;
    snprintf(name, sizeof name, "%.*s", TEXT_ARG(text));
    if (inet_pton(AF_INET6, name, address) == 1)
        return V6_BITS;
    memcpy(address, v4_prefix, sizeof v4_prefix);
    return inet_pton(AF_INET, name, address + sizeof v4_prefix) == 1 ? V4_BITS : 0;
}

static bool bit_at(const uint8_t address[16], unsigned bit)
{
    return address[bit / 8] >> (7 - bit % 8) & 1;
}

int address_range_parse(const char *text, struct address_range *range, struct err *err)
{
    struct text rest = text_of(text);
    struct text head = text_cut(&rest, '/');
    unsigned room = address_parse(head, range->address);
    int64_t bits = room;
    if (!room || (rest.at && (!text_to_int64(rest, &bits) || bits < 0 || bits > room)))
        return err_fail(err, ERR_INVALID, "", "'%s' is not ADDRESS or ADDRESS/BITS", text);
    range->bits = V6_BITS - room + (unsigned)bits;
    for (unsigned bit = range->bits; bit < V6_BITS; bit++)
        if (bit_at(range->address, bit))
            return err_fail(err, ERR_INVALID, "", "'%s' has more than %u bits set", text,
                            (unsigned)bits);
    return 0;
}

bool address_site(struct text address, struct address_range *site)
{
    if (!address_parse(address, site->address))
        return false;
    const bool is_v4 = memcmp(site->address, v4_prefix, sizeof v4_prefix) == 0;
    site->bits = is_v4 ? V6_BITS - V4_BITS + ADDRESS_SITE_V4 : ADDRESS_SITE_V6;
    memset(site->address + site->bits / 8, 0, sizeof site->address - site->bits / 8);
    return true;
}

bool address_is_numeric(struct text text)
{
    uint8_t address[16];
    return address_parse(text, address) != 0;
}

bool address_range_has(const struct address_range *range, struct text name)
{
    uint8_t address[16];
    if (!address_parse(name, address))
        return false;
    unsigned bit = 0;
    while (bit < range->bits && bit_at(address, bit) == bit_at(range->address, bit))
        bit++;
    return bit == range->bits;
}
