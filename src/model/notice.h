/* notice.h — what somebody is told of: a change of a job, or the decision on a request.
 *
 * Pure. The table of docs/rfc/0021-notifications.md. The identity of a change is its job, the job's
 * attempt and its kind, that of a decision its request: each happens once.
 */
#ifndef MODEL_NOTICE_H
#define MODEL_NOTICE_H
#include "base/text.h"
#include "model/completion.h"
#include "model/ids.h"
#include "model/states.h"
#include <stdbool.h>
#include <stdint.h>

/* OpenPAI's jobStatusChangeNotification. Stored: never change one. */
enum notice_kind {
    NOTICE_RUNNING = 0,
    NOTICE_SUCCEEDED = 1,
    NOTICE_STOPPED = 2,
    NOTICE_FAILED = 3,
    NOTICE_RETRIED = 4,
    /* of a request (model/request.h): no job file and no webhook asks for them */
    NOTICE_ACCEPTED = 5,
    NOTICE_REFUSED = 6,
};
enum { NOTICE_KINDS = NOTICE_RETRIED + 1, NOTICE_KINDS_ALL = NOTICE_REFUSED + 1 };
#define NOTICE_BIT(kind) (1u << (kind))

/* The target of mails, as stored. */
#define NOTICE_MAIL "mail"

bool notice_is_of_request(enum notice_kind kind);
/* "running", …: as the job file and the configuration name them. */
const char *notice_kind_name(enum notice_kind kind);
/* "RUNNING", … "RETRIED": as OpenPAI's alerts name the state. */
const char *notice_state_name(enum notice_kind kind);
/* Of a job's change. */
bool notice_kind_find(struct text name, enum notice_kind *kind);

/* What counts of a job's row. */
struct notice_row {
    uint32_t attempt;
    enum life_state state;
    int32_t code;        /* of its completion; looked at when the state is completed */
    int64_t launched_ms; /* of this life of the job; 0: it has not run in it */
};
/* Which kinds (NOTICE_BIT) happen between two rows of a job, of which the second is later; `before`
 * NULL: it is the job's first. */
unsigned notice_changes(const struct notice_row *before, const struct notice_row *now);

struct notice {
    struct job_id job;
    uint32_t attempt; /* of the job, from 0; RETRIED: the one that begins */
    enum notice_kind kind;
    int64_t at_ms;
    const char *user, *job_name, *virtual_cluster;
    /* how the job ended, or (RETRIED) the attempt before; of RUNNING 0 and "" */
    int32_t code;
    const char *phrase, *why;
    /* Of a request: `job`, `attempt` and `code` are 0, `job_name` is its id, `virtual_cluster` ""
     * when it is for an account, `phrase` the group that grants it or "", `why` the answer. */
};

/* "alice~train failed", "your request for the virtual cluster vc1 was refused": in a line of a
 * list, or as the subject of a mail. */
struct buf;
void notice_title(const struct notice *notice, struct buf *out);

#endif
