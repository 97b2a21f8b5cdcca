/* mail_address.h — which mail addresses are taken and used.
 *
 * Pure. One rule for all places where an address enters, so that what is taken can be used: else
 * nothing would ever be sent there, and nobody would be told why.
 */
#ifndef BASE_MAIL_ADDRESS_H
#define BASE_MAIL_ADDRESS_H
#include "base/text.h"
#include <stdbool.h>

enum { MAIL_ADDRESS_MAX = 254 };

/* For an error: "… must be " this. */
#define MAIL_ADDRESS_RULE                                                                          \
    "a mail address: NAME@DOMAIN of at most 254 printable ASCII characters, in NAME and DOMAIN "   \
    "none of the characters \"(),:;<>@[\\] and no space"

/* Is it an address that a mail is sent to, as it stands? NAME@DOMAIN of printable ASCII, without
 * what a header or an SMTP command could be changed by. */
bool mail_address_is_good(struct text address);

#endif
