/* route.h — which function serves which path.
 *
 * Paths are cut at '/'; a part that begins with ':' takes any text and hands it to the handler; one
 * at the end that begins with '*' takes one or more, which the handler finds in the exchange. The
 * first row that fits counts, so literal parts stand before parameters. "/rest-server" before a
 * path is dropped (OpenPAI's reverse proxy put it there); "/api/v2/user" and "/api/v2/group" begin
 * the same paths as "/api/v2/users" and "/api/v2/groups"; "auth" and "job", below "/api" or
 * "/api/v1", are what the first release called "token", "user" and "jobs".
 */
#ifndef API_ROUTE_H
#define API_ROUTE_H
#include "api/http.h"

struct call;

enum route_access {
    ACCESS_ANYONE,  /* no token asked for */
    ACCESS_USER,    /* any valid token */
    ACCESS_READ_V1, /* likewise; or none, when the operator opens early PAI's reads */
    ACCESS_SUBMIT,  /* a token that is good for more than reading */
    ACCESS_BROWSER, /* a token that is not an application's */
    ACCESS_ADMIN,   /* an admin, by a token of the usual scope */
    ACCESS_MANAGE,  /* an admin, by a browser's token or one of scope admin */
};

struct route {
    enum http_method method; /* HTTP_GET serves HEAD, too */
    const char *path;        /* "/api/v2/jobs/:job/config" */
    enum route_access access;
    int (*handle)(struct call *call); /* 0, or ERR_* with call->err filled */
    bool is_v1;                       /* errors carry the old style's `error` beside `code` */
};

enum { ROUTE_PARAMETERS_MAX = 6 };

struct route_match {
    const struct route *route; /* NULL: none fits */
    bool is_path_known;        /* with another method */
    struct text parameters[ROUTE_PARAMETERS_MAX];
};

/* `match` borrows the exchange's segments. */
void route_find(const struct route *routes, size_t count, const struct exchange *exchange,
                struct route_match *match);

/* The table of this API (routes.c). */
extern const struct route ROUTES[];
extern const size_t ROUTE_COUNT;
/* The portal's pages and files (portal.c): looked at last. */
extern const struct route PORTAL_ROUTES[];
extern const size_t PORTAL_ROUTE_COUNT;

#endif
