/* notify_tries.h — messages that a webhook has not taken, since it did not take the POST in which
 * they were: how often that was, and when they may be sent again.
 *
 * Pure, and small: one line for each of those, none for the others. Which message of a POST the
 * other side does not want, nobody says: those that failed more often come later, and fewer of them
 * together, so that the one at fault is alone in the end and the others have gone. Times are
 * monotonic.
 */
#ifndef SERVER_NOTIFY_TRIES_H
#define SERVER_NOTIFY_TRIES_H
#include "base/map.h"
#include <stdint.h>

struct notify_tries {
    struct id_map places; /* row → its place among them */
    struct notify_try {
        uint64_t row;
        uint32_t count; /* of POSTs that were not taken, at least 1 */
        int64_t until_ms, length_ms;
    } * items;
    size_t count, room;
};

void notify_tries_release(struct notify_tries *tries);

/* It was in a POST that was not taken: its next pause begins, as long as those of
 * notify_pauses.h. */
void notify_try_failed(struct notify_tries *tries, uint64_t row, int64_t now_ms);
/* How often that was, and until when it waits; 0, 0: never. */
uint32_t notify_try_count(const struct notify_tries *tries, uint64_t row, int64_t *until_ms);
/* How many of those that failed so often may be together. */
size_t notify_try_together(uint32_t count, size_t most);
/* Forget the one that is sent, or dropped. */
void notify_try_end(struct notify_tries *tries, uint64_t row);

#endif
