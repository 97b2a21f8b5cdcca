/* template.h — what the requests about templates share.
 *
 * Private to api. Functions that return int answer the call, and return its code, when they refuse.
 */
#ifndef API_TEMPLATE_H
#define API_TEMPLATE_H
#include "api/call.h"
#include "store/read.h"

void template_words_json(struct json_writer *json, const struct store_names *names);
/* An instant, null when it is 0. */
void template_time_json(struct json_writer *json, const char *key, int64_t at_ms);

/* The template that the path names, by its id or as author~name, if the caller may do this. */
int template_of_path(struct call *call, enum auth_right right, struct store_template *row);

/* The version that was looked at, so that nobody approves, or writes over, what they have not seen.
 * `seen_ms`: 0 when it is not told. */
int template_seen_check(struct call *call, const struct doc *doc, const struct store_template *row,
                        int64_t *seen_ms);

struct template_reply {
    int status;
    const char *message, *id; /* the id: of a new one */
    const char *state;        /* that it has now; NULL: private, or it did not change */
};

int template_change_send(struct call *call, const struct store_change *change,
                         const struct template_reply *outcome);

/* What becomes of a change by its caller; the store decides by the same rule. */
const char *template_state_after(const struct store_change *change);

/* Write the row of a CHANGE_TEMPLATE_SET, which was read with what was changed of it. */
int template_set_send(struct call *call, struct store_change *change, const char *message);

#endif
