/* Which attempts may have a secret in the cluster, on disk. */
#include "unit.h"

#include <unistd.h>

#include "engine/kubernetes/secret_note.h"
#include "folder.h"

static void sum(void *context, struct attempt_id attempt)
{
    *(uint64_t *)context += attempt.v;
}

static uint64_t noted(const char *directory)
{
    uint64_t all = 0;
    secret_note_each(directory, sum, &all);
    return all;
}

static void what_is_noted_is_there_until_it_is_dropped(void **state)
{
    (void)state;
    const char *folder = in_folder("secrets");
    assert_int_equal(noted(folder), 0);
    secret_note_put(folder, (struct attempt_id){7});
    secret_note_put(folder, (struct attempt_id){30});
    secret_note_put(folder, (struct attempt_id){7});
    assert_int_equal(noted(folder), 37);
    secret_note_drop(folder, (struct attempt_id){7});
    secret_note_drop(folder, (struct attempt_id){7});
    assert_int_equal(noted(folder), 30);
}

static void without_a_folder_nothing_is_noted(void **state)
{
    (void)state;
    secret_note_put(NULL, (struct attempt_id){7});
    secret_note_drop(NULL, (struct attempt_id){7});
    assert_int_equal(noted(NULL), 0);
}

/* Neither ends a task: a secret may be left, and the log says so. */
static void what_cannot_be_written_is_no_failure(void **state)
{
    (void)state;
    secret_note_put("/nowhere/at/all", (struct attempt_id){7});
    secret_note_drop("/dev/null", (struct attempt_id){7});
    assert_int_equal(noted("/nowhere/at/all"), 0);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup_teardown(what_is_noted_is_there_until_it_is_dropped, folder_setup,
                                    folder_teardown),
    cmocka_unit_test(without_a_folder_nothing_is_noted),
    cmocka_unit_test(what_cannot_be_written_is_no_failure),
};

UNIT_FILE(tests, NULL, NULL);
