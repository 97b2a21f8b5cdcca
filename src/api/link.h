/* link.h — addresses that open one path for some minutes without a token, for browsers.
 *
 * A link is a path with `?link=END.SIGNATURE.TOKEN.USER`. Whoever has it may read that path (GET
 * alone) as its user may by an application token, until its end, and no longer than the token is
 * good by which it was made. TOKEN is the number of that one, which opens nothing by itself;
 * "until-SECONDS" of a user who came by a client certificate, which ends then (Unix time); empty of
 * one who came by this machine's socket. The signature covers the path, the end, the
 * number and the user; the rest of the query is free. Its key is derived from the one that signs
 * tokens.
 */
#ifndef API_LINK_H
#define API_LINK_H
#include "api/call.h"

enum { LINK_LIFE_S = 600, LINK_SOCKET_LIFE_S = 60 };

/* The path with its link for the caller, below the prefix by which the request came ("/rest-server"
 * or none). `path` begins with "/" and is decoded; `query` ("a=b") follows the link, or is "". */
const char *link_make(struct call *call, const char *path, const char *query);
/* The same, good for so long. */
const char *link_make_for(struct call *call, const char *path, const char *query, int64_t life_s);

struct link {
    const char *user, *token_id; /* in the arena; token_id "": by a certificate or the socket */
    int64_t expires_s;           /* of the certificate, Unix time; 0: there was none */
    bool is_by_socket;
};

/* Is this a link for the path of the request? */
bool link_open(struct call *call, struct text text, int64_t now_s, struct link *link);

#endif
