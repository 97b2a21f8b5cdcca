/* Every caller beside every right: the whole table of who may do what. */
#include "unit.h"

#include <string.h>

#include "auth/auth.h"
#include "base/err.h"
#include "base/memory.h"

static const char *const granted[] = {"speech", "vision"};
static const char *const mounted[] = {"corpus", "scratch"};
static const char *const administered[] = {"lab", "other"};

enum {
    NOBODY,
    OWNER,
    OWNER_APPLICATION,
    OWNER_READ, /* application tokens of the scopes that are named */
    OWNER_SUBMIT,
    OTHER,
    MEMBER,
    GROUP_ADMIN,
    ADMIN,
    ADMIN_APPLICATION,
    ADMIN_READ,
    ADMIN_SUBMIT,
    ADMIN_ADMIN,
    CALLERS
};

static const struct auth_caller callers[CALLERS] = {
    [NOBODY] = {.user = ""},
    [OWNER] = {.user = "ann"},
    [OWNER_APPLICATION] = {.user = "ann", .is_application = true},
    [OWNER_READ] = {.user = "ann", .is_application = true, .scope = AUTH_SCOPE_READ},
    [OWNER_SUBMIT] = {.user = "ann", .is_application = true, .scope = AUTH_SCOPE_SUBMIT},
    [OTHER] = {.user = "bob"},
    [MEMBER] = {.user = "carl",
                .clusters = granted,
                .cluster_count = COUNT_OF(granted),
                .storages = mounted,
                .storage_count = COUNT_OF(mounted)},
    [GROUP_ADMIN] = {.user = "dora", .groups = administered, .group_count = COUNT_OF(administered)},
    [ADMIN] = {.user = "root", .is_admin = true},
    [ADMIN_APPLICATION] = {.user = "root", .is_admin = true, .is_application = true},
    [ADMIN_READ] = {.user = "root",
                    .is_admin = true,
                    .is_application = true,
                    .scope = AUTH_SCOPE_READ},
    [ADMIN_SUBMIT] = {.user = "root",
                      .is_admin = true,
                      .is_application = true,
                      .scope = AUTH_SCOPE_SUBMIT},
    [ADMIN_ADMIN] = {.user = "root",
                     .is_admin = true,
                     .is_application = true,
                     .scope = AUTH_SCOPE_ADMIN},
};

static const struct auth_subject of_ann = {
    .owner = "ann", .name = "train", .cluster = "speech", .group = "lab", .storage = "corpus"};

static void who_may_do_what(void **state)
{
    (void)state;
    /* y: yes, n: no, -: log in first; in the order of the callers above */
    static const char *const wanted[AUTH_RIGHT_COUNT] = {
        [AUTH_CALL] = "-yyyyyyyyyyyy",          [AUTH_SESSION] = "-ynnnyyyynnnn",
        [AUTH_ADMINISTER] = "-nnnnnnnyynny",    [AUTH_MANAGE] = "-nnnnnnnynnny",
        [AUTH_MANAGE_GROUP] = "-nnnnnnyynnny",  [AUTH_READ_MEMBERS] = "-nnnnnnyyynny",
        [AUTH_EDIT_USER] = "-ynnnnnnynnny",     [AUTH_READ_PROFILE] = "-yyyynnnyynny",
        [AUTH_SUBMIT] = "-yynyyyyyynyy",        [AUTH_SUBMIT_AS] = "-yynynnnnnnnn",
        [AUTH_CHANGE_JOB] = "-yynynnnyynny",    [AUTH_ENTER_JOB] = "-yynynnnyynny",
        [AUTH_READ_OUTPUT] = "-yyyynnnyynny",   [AUTH_READ_CONFIG] = "-yyyynnnyynny",
        [AUTH_USE_CLUSTER] = "-nnnnnynyynny",   [AUTH_USE_STORAGE] = "-nnnnnynyynny",
        [AUTH_REVOKE] = "-ynnnnnnnnnnn",        [AUTH_READ_TEMPLATE] = "-yyyynnnyynny",
        [AUTH_EDIT_TEMPLATE] = "-yynynnnyynny", [AUTH_REUSE_SECRETS] = "-yynynnnnnnnn",
        [AUTH_READ_REQUEST] = "-yyyynnnyynny",  [AUTH_WITHDRAW] = "-yynynnnnnnnn",
    };
    for (int right = 0; right < AUTH_RIGHT_COUNT; right++)
        for (int c = 0; c < CALLERS; c++) {
            struct err err = {0};
            const int code = auth_check(&callers[c], (enum auth_right)right, &of_ann, &err);
            const char got = code == 0 ? 'y' : code == ERR_UNAUTHORIZED ? '-' : 'n';
            if (got != wanted[right][c])
                fail_msg("%s, caller %d: %c", auth_right_name((enum auth_right)right), c, got);
            assert_int_equal(code, err.code);
            assert_true(code == 0 || err.text[0] != '\0');
            assert_int_equal(auth_check(&callers[c], (enum auth_right)right, &of_ann, NULL), code);
        }
}

static void the_default_cluster_is_everybodys(void **state)
{
    (void)state;
    const struct auth_subject subject = {.cluster = "default"};
    assert_int_equal(auth_check(&callers[OTHER], AUTH_USE_CLUSTER, &subject, NULL), 0);
    assert_int_equal(auth_check(&callers[NOBODY], AUTH_USE_CLUSTER, &subject, NULL),
                     ERR_UNAUTHORIZED);
}

static void a_shared_template_is_read_by_everybody_and_changed_by_none(void **state)
{
    (void)state;
    const struct auth_subject subject = {.owner = "ann", .name = "mnist", .is_shared = true};
    assert_int_equal(auth_check(&callers[OTHER], AUTH_READ_TEMPLATE, &subject, NULL), 0);
    assert_int_equal(auth_check(&callers[ADMIN_READ], AUTH_READ_TEMPLATE, &subject, NULL), 0);
    assert_int_equal(auth_check(&callers[NOBODY], AUTH_READ_TEMPLATE, &subject, NULL),
                     ERR_UNAUTHORIZED);
    assert_int_equal(auth_check(&callers[OTHER], AUTH_EDIT_TEMPLATE, &subject, NULL),
                     ERR_FORBIDDEN);
}

static void an_operator_can_open_the_output(void **state)
{
    (void)state;
    const struct auth_subject subject = {.owner = "ann", .name = "train", .is_output_open = true};
    assert_int_equal(auth_check(&callers[OTHER], AUTH_READ_OUTPUT, &subject, NULL), 0);
    assert_int_equal(auth_check(&callers[OTHER], AUTH_CHANGE_JOB, &subject, NULL), ERR_FORBIDDEN);
    assert_int_equal(auth_check(&callers[OTHER], AUTH_READ_CONFIG, &subject, NULL), ERR_FORBIDDEN);
    const struct auth_subject other = {.owner = "ann", .name = "train", .is_config_open = true};
    assert_int_equal(auth_check(&callers[OTHER], AUTH_READ_CONFIG, &other, NULL), 0);
    assert_int_equal(auth_check(&callers[OTHER], AUTH_READ_OUTPUT, &other, NULL), ERR_FORBIDDEN);
    assert_int_equal(auth_check(&callers[OTHER], AUTH_CALL, NULL, NULL), 0);
}

static void refusals_say_what_was_missing(void **state)
{
    (void)state;
    struct err err;
    auth_check(&callers[OTHER], AUTH_USE_CLUSTER, &of_ann, &err);
    assert_string_equal(err.text, "User bob is not allowed to do operation in speech");
    assert_string_equal(err.path, "defaults.virtualCluster");
    auth_check(&callers[OTHER], AUTH_USE_STORAGE, &of_ann, &err);
    assert_string_equal(err.text, "User bob is not allowed to access storage corpus.");
    auth_check(&callers[OTHER], AUTH_CHANGE_JOB, &of_ann, &err);
    assert_string_equal(err.text, "bob is not the owner of job ann~train");
    auth_check(&callers[OTHER], AUTH_MANAGE, NULL, &err);
    assert_string_equal(err.text, "Non-admin is not allow to do this operation.");
    auth_check(&callers[ADMIN_APPLICATION], AUTH_MANAGE, NULL, &err);
    assert_string_equal(err.text, "Applications are not allowed to do this operation.");
    auth_check(&callers[ADMIN_SUBMIT], AUTH_MANAGE, NULL, &err);
    assert_string_equal(err.text, "the scope of this token, submit, does not allow this");
    auth_check(&callers[OTHER], AUTH_EDIT_USER, &of_ann, &err);
    assert_string_equal(err.text, "bob may not see or change the profile of ann");
    for (int right = 0; right < AUTH_RIGHT_COUNT; right++)
        assert_ptr_equal(strstr(auth_right_name((enum auth_right)right), "auth."),
                         auth_right_name((enum auth_right)right));
}

static void scopes_have_names(void **state)
{
    (void)state;
    static const char *const names[AUTH_SCOPE_COUNT] = {"usual", "read", "submit", "admin"};
    for (int scope = 0; scope < AUTH_SCOPE_COUNT; scope++)
        assert_string_equal(auth_scope_name((enum auth_scope)scope), names[scope]);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(who_may_do_what),
    cmocka_unit_test(the_default_cluster_is_everybodys),
    cmocka_unit_test(a_shared_template_is_read_by_everybody_and_changed_by_none),
    cmocka_unit_test(an_operator_can_open_the_output),
    cmocka_unit_test(refusals_say_what_was_missing),
    cmocka_unit_test(scopes_have_names),
};
UNIT_FILE(tests, NULL, NULL);
