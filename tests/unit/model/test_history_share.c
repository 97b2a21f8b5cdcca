/* Whose ended jobs go first. */
#include "unit.h"

#include "base/memory.h"
#include "model/history_share.h"

enum { OWNERS_MAX = 4 };

static void test_cases(void **state)
{
    static const struct {
        struct history_owner owners[OWNERS_MAX]; /* with what they must lose */
        uint64_t most;
    } CASES[] = {
        {{{0, -1, 0}}, 5},
        {{{3, -1, 3}, {1, -1, 1}}, 100}, /* all there are */
        {{{10, -1, 0}, {2, -1, 0}}, 0},
        {{{10, -1, 5}, {2, -1, 0}}, 5},             /* who keeps the most */
        {{{10, -1, 9}, {2, -1, 1}}, 10},            /* one is left to each */
        {{{10, -1, 4}, {9, -1, 3}, {2, -1, 0}}, 7}, /* six are left to both */
        {{{10, -1, 4}, {9, -1, 2}, {2, -1, 0}}, 6}, /* one more of the first */
        {{{10, 20, 0}, {5, 3, 2}, {2, -1, 0}}, 2},  /* who is over the share */
        {{{10, 20, 4}, {5, 3, 2}, {2, -1, 0}}, 6},  /* then who keeps the most */
        {{{10, 8, 0}, {9, 3, 3}}, 3},               /* who is furthest over it */
        {{{10, 8, 1}, {9, 3, 5}}, 6},               /* then both alike */
        {{{10, 8, 2}, {9, 3, 6}}, 8},
        {{{10, 0, 10}, {9, -1, 0}}, 10}, /* nothing is the owner's due */
        {{{10, 8, 2}, {5, 5, 0}, {7, -1, 0}, {0, 3, 0}}, 2},
        {{{10, 8, 4}, {5, 5, 0}, {7, -1, 1}, {0, 3, 0}}, 5},
    };
    (void)state;
    for (size_t c = 0; c < COUNT_OF(CASES); c++) {
        struct history_owner owners[OWNERS_MAX];
        for (size_t i = 0; i < OWNERS_MAX; i++)
            owners[i] =
                (struct history_owner){CASES[c].owners[i].kept, CASES[c].owners[i].share, 7};
        history_share_cut(owners, OWNERS_MAX, CASES[c].most);
        for (size_t i = 0; i < OWNERS_MAX; i++)
            if (owners[i].loses != CASES[c].owners[i].loses)
                fail_msg("case %zu, owner %zu: %llu", c, i, (unsigned long long)owners[i].loses);
    }
    history_share_cut(NULL, 0, 7);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_cases),
};
UNIT_FILE(tests, NULL, NULL);
