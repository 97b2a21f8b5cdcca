/* notify_pauses.h — who takes no messages now, and when they are asked again: mail servers and
 * webhooks that are away, and users to whose address the mail server takes nothing for a while.
 *
 * Pure, and small: one line for each of those, none for the others. Times are monotonic.
 */
#ifndef SERVER_NOTIFY_PAUSES_H
#define SERVER_NOTIFY_PAUSES_H
#include "base/map.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    NOTIFY_PAUSE_FIRST_MS = 5 * 1000, /* it doubles each time … */
    NOTIFY_PAUSE_MAX_MS = 600 * 1000, /* … up to this */
};

/* How long the pause is that follows one of this length; 0: the first one. Of messages as well
 * (notify_tries.h). */
int64_t notify_pause_next(int64_t length_ms);

struct notify_pauses {
    struct text_map places; /* its seed is the caller's to set */
    struct notify_pause {
        char *name;
        bool is_target; /* else a user */
        int64_t until_ms, length_ms;
    } * items;
    size_t count, room;
    size_t target_count; /* of the items */
};

void notify_pauses_release(struct notify_pauses *pauses);

/* It did not take a message: the next pause begins. True: it is the first one. */
bool notify_pause_begin(struct notify_pauses *pauses, const char *name, bool is_target,
                        int64_t now_ms);
/* It did. True: it had not before. */
bool notify_pause_end(struct notify_pauses *pauses, const char *name);
/* Is it not to be asked yet: until when? */
bool notify_pause_is_on(const struct notify_pauses *pauses, const char *name, int64_t now_ms,
                        int64_t *until_ms);
/* Forget those who could have been asked for long, and for whom nothing has come since. */
void notify_pauses_tidy(struct notify_pauses *pauses, int64_t now_ms);

#endif
