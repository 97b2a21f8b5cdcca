/* What people read of a virtual cluster that is closed. */
#include "unit.h"

#include "base/arena.h"
#include "model/cluster.h"

static void the_text_says_who_when_and_why(void **state)
{
    (void)state;
    cleanup_arena struct arena arena;
    arena_init(&arena);
    struct cluster_record cluster = {"vc1", {true, "alice", "a course", 1000}};
    assert_string_equal(
        cluster_closed_text(&cluster, &arena),
        "virtual cluster vc1 is closed by alice since 1970-01-01 00:00:01 UTC: a course");
    cluster.closing.why = "";
    assert_string_equal(cluster_closed_text(&cluster, &arena),
                        "virtual cluster vc1 is closed by alice since 1970-01-01 00:00:01 UTC");
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(the_text_says_who_when_and_why),
};
UNIT_FILE(tests, NULL, NULL);
