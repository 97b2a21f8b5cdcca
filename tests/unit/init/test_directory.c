/* Variables in the paths of a v1 job. */
#include "unit.h"

#include "base/arena.h"
#include "base/memory.h"
#include "init/directory.h"
#include "init/job_file.h"

static void known_variables_are_put_in(void **state)
{
    (void)state;
    static const struct {
        const char *directory, *expanded;
    } cases[] = {
        {"", ""},
        {"/plain/path", "/plain/path"},
        {"$PAI_DEFAULT_FS_URI/data", "hdfs://nn:9000/data"},
        {"$QIZHI_DEFAULT_FS_URI/$QIZHI_USER_NAME", "hdfs://nn:9000/alice"},
        {"/out/$PAI_USER_NAME/$PAI_JOB_NAME", "/out/alice/alice~train"},
        {"$PAI_USERNAME.$QIZHI_JOB_NAME", "alice.train"}, /* early jobs have bare names */
        {"$PAI_USER_NAMES/$PAI_JOB_NAME_2", "$PAI_USER_NAMES/$PAI_JOB_NAME_2"},
        {"$PAI_JOB_NAME$PAI_USER_NAME", "alice~trainalice"},
        {"$HOME/$", "$HOME/$"},
        {"${PAI_JOB_NAME}", "${PAI_JOB_NAME}"},
    };
    const struct job_file job = {
        .name = "train", .user = "alice", .is_namespaced = true, .fs_uri = "hdfs://nn:9000"};
    struct arena arena;
    arena_init(&arena);
    for (size_t i = 0; i < COUNT_OF(cases); i++)
        assert_string_equal(directory_expand(&job, cases[i].directory, &arena), cases[i].expanded);
    arena_release(&arena);
}

static void a_name_may_have_no_user(void **state)
{
    (void)state;
    struct job_file job = {.name = "train", .user = "alice", .fs_uri = ""};
    struct arena arena;
    arena_init(&arena);
    assert_string_equal(job_full_name(&job, &arena), "train");
    assert_string_equal(directory_expand(&job, "$PAI_JOB_NAME", &arena), "train");
    job.is_namespaced = true;
    assert_string_equal(job_full_name(&job, &arena), "alice~train");
    arena_release(&arena);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(known_variables_are_put_in),
    cmocka_unit_test(a_name_may_have_no_user),
};
UNIT_FILE(tests, NULL, NULL);
