/* unpurged.h — ended jobs that retention cannot remove, because the store does not take it.
 *
 * Private to server: the core thread's. Retention would ask for them again in its next round, and
 * each time everybody in the round would pay for it. So they are passed over, and others go. Once a
 * minute one of them is tried in a transaction that is rolled back, which costs nobody anything;
 * when it is taken, retention asks for it again. After a restart it asks for all of them once.
 */
#ifndef SERVER_UNPURGED_H
#define SERVER_UNPURGED_H
#include "base/map.h"
#include "model/ids.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct err;
struct server;
struct server_mail;

struct unpurged {
    struct job_id *items; /* the one that was tried longest ago first */
    size_t count, room;
    struct id_map numbers;
    int64_t retry_ms; /* monotonic */
};

void unpurged_release(struct unpurged *unpurged);

/* Its removal alone was refused. */
void unpurged_add(struct server *server, struct job_id job, const struct err *why);

/* A round with these mails has failed, with this code: jobs that retention removes are looked at
 * where one of them may be the reason. */
void unpurged_find(struct server *server, struct server_mail *const *mails, size_t count, int code);

/* Is one of them to be tried again now? */
void unpurged_retry(struct server *server);

/* So many jobs are to be looked for that `most` are left whatever is passed over. */
size_t unpurged_room(const struct unpurged *unpurged, size_t most);
/* Takes out of `jobs` those that are passed over, and the last ones beyond `most`; how many are
 * left. */
size_t unpurged_drop(const struct unpurged *unpurged, struct job_id *jobs, size_t count,
                     size_t most);

#endif
