/* address.h — addresses of the internet, and ranges of them.
 *
 * Pure. An IPv4 address is kept as its IPv6 form, ::ffff:a.b.c.d.
 */
#ifndef BASE_ADDRESS_H
#define BASE_ADDRESS_H
#include "base/text.h"
#include <stdbool.h>
#include <stdint.h>

struct err;

struct address_range {
    uint8_t address[16];
    unsigned bits; /* 0 … 128, of `address` */
};

/* "10.0.0.7", "10.0.0.0/8", "2001:db8::/32". ERR_INVALID: it is none, or bits beyond the network's
 * are set. */
int address_range_parse(const char *text, struct address_range *range, struct err *err);
/* How many of the first bits name a network that one subscriber, or one site, is given. */
enum { ADDRESS_SITE_V4 = 24, ADDRESS_SITE_V6 = 48 };
/* The network of a site that the address is in. False: it is no numeric address. */
bool address_site(struct text address, struct address_range *site);
/* A numeric address, an IPv6 one in brackets or not. */
bool address_is_numeric(struct text text);
/* False also when `address` is none. */
bool address_range_has(const struct address_range *range, struct text address);

#endif
