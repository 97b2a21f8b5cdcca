/* grant.h — giving tokens out. */
#ifndef API_GRANT_H
#define API_GRANT_H
#include "auth/auth.h"
#include <stdbool.h>
#include <stdint.h>

struct call;

struct grant { /* in the call's arena */
    const char *user, *token;
    bool is_admin, is_application;
    enum auth_scope scope; /* of an application */
    /* Reply when the token is in the list, or say why it is not: call->answer_code. NULL: in JSON,
     * as OpenPAI's login does. */
    int (*answer)(struct call *call, const struct grant *grant);
};

/* Sign a token, put it into the list, then reply with it. `life_s` 0: it never expires. */
int grant_token(struct call *call, struct grant *grant, int64_t life_s);

#endif
