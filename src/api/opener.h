/* opener.h — who has opened what outlives its request, and whether they still may.
 *
 * Edge; any thread. A followed log, a terminal and a web port of a task last for hours: the token
 * that was good at their beginning may be revoked meanwhile, or expire; its user may be removed or
 * deactivated; and an administrator, who may enter any job, may be one no more. Each of them keeps
 * its opener and asks here again: when somebody may have lost something (service_watch.revoked), or
 * every OPENER_LOOK_S. What the owner of a job may, they may for as long as there is the user.
 */
#ifndef API_OPENER_H
#define API_OPENER_H
#include "api/token.h"
#include "store/store.h"
#include <stdbool.h>
#include <stdint.h>

struct call;
struct service;

enum { OPENER_LOOK_S = 30 };

struct opener {
    char user[STORE_USER_NAME_MAX + 1];
    char token_id[TOKEN_ID_SIZE]; /* "": by this machine's socket, or by a client certificate */
    int64_t end_ms;   /* Unix time: of the token, or of the certificate; 0: it never expires */
    bool needs_admin; /* for as long as the user is an administrator of the platform */
};

/* Who makes this call, which has passed the checks of its rights: it needs an administrator when
 * nothing else has given one of them, or when it came by this machine's socket. */
struct opener opener_of(const struct call *call);

/* 0; ERR_FORBIDDEN: no more; others: it cannot be looked up now (every reader is out). */
int opener_check(struct service *service, const struct opener *opener);

#endif
