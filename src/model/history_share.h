/* history_share.h — whose ended jobs go first when there is no room for all.
 *
 * Pure. First those of owners who keep more than their share, from the one who is furthest above
 * it; then those of the owners who keep the most. So whoever keeps little loses nothing to those
 * who keep much. Which jobs of an owner go is for the caller: the oldest.
 */
#ifndef MODEL_HISTORY_SHARE_H
#define MODEL_HISTORY_SHARE_H
#include <stddef.h>
#include <stdint.h>

struct history_owner {
    uint64_t kept;  /* ended jobs */
    int64_t share;  /* how many are the owner's due; < 0: nobody said */
    uint64_t loses; /* out: how many go */
};

/* `most` go in all, or all there are. Of owners who are equal the first loses one more. */
void history_share_cut(struct history_owner *owners, size_t count, uint64_t most);

#endif
