/* web_ports.h — who may reach which port of which task by the relay: ways in, and sessions.
 *
 * Edge; thread-safe; no I/O: time is given. Whoever may is given a way in (a ticket, good for
 * WEB_PORT_TICKET_S and once), by which a browser gets a session: a word that opens this one port
 * and nothing else, for WEB_PORT_SESSION_S at most and no longer than the token by which the ticket
 * was made. Both are words of chance in memory: with the server they are gone.
 *
 * Each port of each attempt has a host name of its own, "ID.jobs.example.org", and with it an
 * origin; ID is made by a key of ours from attempt and number, so that it stays while the task runs
 * and cannot be guessed.
 */
#ifndef API_WEB_PORTS_H
#define API_WEB_PORTS_H
#include "api/opener.h"
#include "base/text.h"
#include "model/ids.h"
#include <stdbool.h>
#include <stdint.h>

struct err;
struct web_ports;

enum {
    WEB_PORT_TICKET_S = 60,
    WEB_PORT_SESSION_S = 8 * 3600,
    WEB_PORT_GRANTS_MAX = 4096,
    WEB_PORT_USER_GRANTS_MAX = 64, /* beyond, the oldest of the user's goes */
    WEB_PORT_ID_SIZE = 27,
    WEB_PORT_WORD_SIZE = 33,
    WEB_PORT_PATH_MAX = 1024,
};

struct web_port_grant {
    struct opener opener;
    char host[WEB_PORT_ID_SIZE];  /* the first label */
    char path[WEB_PORT_PATH_MAX]; /* where it begins: "/…" */
    struct attempt_id attempt;
    uint8_t engine;
    uint16_t port;
};

struct web_ports *web_ports_new(void);
void web_ports_free(struct web_ports *ports); /* NULL is fine */

void web_port_host(const uint8_t token_key[32], struct attempt_id attempt, uint16_t port,
                   char host[WEB_PORT_ID_SIZE]);

/* ERR_BUSY: there are WEB_PORT_GRANTS_MAX. */
int web_ports_ticket(struct web_ports *ports, const struct web_port_grant *grant, int64_t now_ms,
                     char ticket[WEB_PORT_WORD_SIZE], struct err *err);
/* The ticket's session; *is_first: the user has no other for this port. False: the ticket is none
 * for this host, or has been used, or its time is over. */
bool web_ports_enter(struct web_ports *ports, struct text host, struct text ticket, int64_t now_ms,
                     char session[WEB_PORT_WORD_SIZE], struct web_port_grant *grant,
                     bool *is_first);
/* False: no session for this host. */
bool web_ports_find(struct web_ports *ports, struct text host, struct text session, int64_t now_ms,
                    struct web_port_grant *grant);
/* The session ends: its token is gone, or its user. */
void web_ports_end(struct web_ports *ports, struct text host, struct text session);

#endif
