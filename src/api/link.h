/* link.h — addresses that open one path for some minutes without a token, for browsers.
 *
 * A link is a path with `?link=END.SIGNATURE.USER`. Whoever has it may read that path (GET alone)
 * as its user may by an application token, as long as that user is not removed or deactivated, and
 * until its end. The signature covers the path, the end and the user; the rest of the query is
 * free. Its key is derived from the one that signs tokens.
 */
#ifndef API_LINK_H
#define API_LINK_H
#include "api/call.h"

enum { LINK_LIFE_S = 600 };

/* The path with its link for the caller, below the prefix by which the request came ("/rest-server"
 * or none). `path` begins with "/" and is decoded; `query` ("a=b") follows the link, or is "". */
const char *link_make(struct call *call, const char *path, const char *query);

/* Is this a link for the path of the request? Its user, in the arena; NULL: no. */
const char *link_user(struct call *call, struct text link, int64_t now_s);

#endif
