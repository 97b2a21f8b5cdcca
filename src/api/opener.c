#include "api/opener.h"
#include "api/call.h"
#include "base/memory.h"
#include "sys/clock.h"
#include <stdio.h>

struct opener opener_of(const struct call *call)
{
    const struct caller *caller = &call->caller;
    struct opener opener = {.end_ms = caller->expires_ms,
                            .needs_admin = call->is_by_admin || caller->is_by_socket};
    snprintf(opener.user, sizeof opener.user, "%s", caller->auth.user);
    snprintf(opener.token_id, sizeof opener.token_id, "%s", caller->token_id);
    return opener;
}

/* ERR_NOT_FOUND: the user, or their token, has gone. */
static int rows_check(struct store_reader *reader, const struct opener *opener)
{
    cleanup_arena struct arena arena;
    struct store_user user;
    struct store_token token = {.user = opener->user};
    arena_init(&arena);
    int code = store_user(reader, text_of(opener->user), &arena, &user, NULL);
    if (!code && opener->token_id[0])
        code = store_token(reader, text_of(opener->token_id), &arena, &token, NULL);
    if (code)
        return code;
    const bool is_admin = user.is_admin || user.is_admin_by_group;
    const bool is_lost = user.is_inactive || strcmp(token.user, opener->user) != 0;
    return is_lost || (opener->needs_admin && !is_admin) ? ERR_FORBIDDEN : 0;
}

int opener_check(struct service *service, const struct opener *opener)
{
    struct err err;
    if (opener->end_ms && opener->end_ms <= clock_unix_ms())
        return ERR_FORBIDDEN;
    struct store_reader *reader = service->reader_get(service->context, &err);
    if (!reader)
        return err.code;
    int code = rows_check(reader, opener);
    service->reader_put(service->context, reader);
    return code == ERR_NOT_FOUND ? ERR_FORBIDDEN : code;
}
