/* Users, groups and records, as commands ask for them and print them.
 *
 * Covers: src/cli/account.c, src/cli/cmd_audit.c, src/cli/cmd_group.c, src/cli/cmd_user.c */
#include "answers.h"
#include "line.h"
#include "unit.h"

#include "folder.h"

enum { PRINTED_MAX = 1000 };

static void prints(struct answers *answers, const char *line, const char *wanted)
{
    char printed[PRINTED_MAX];
    assert_int_equal(answers_command(answers, line, printed, sizeof printed), 0);
    assert_string_equal(printed, wanted);
}

/* The body of a request. */
static const char *body_of(const struct answers *answers, int request)
{
    const char *end = strstr(answers->requests[request], "\r\n\r\n");
    assert_non_null(end);
    return end + 4;
}

static void one_group_is_shown(void **state)
{
    (void)state;
    struct answers answers = {
        .items = {{"200 OK", "{\"groupname\":\"lab\",\"description\":\"eyes\",\"extension\":"
                             "{\"acls\":{\"admin\":true,\"virtualClusters\":[\"a\",\"b\"]}}}"}},
        .count = 1};
    prints(&answers, "group show lab",
           "GROUP  ADMINS  VIRTUAL CLUSTERS  DESCRIPTION\n"
           "lab    yes     a,b               eyes\n");
    assert_non_null(strstr(answers.requests[0], "GET /api/v2/groups/lab HTTP"));
}

static void one_user_is_shown(void **state)
{
    (void)state;
    struct answers answers = {.items = {{"200 OK", "{\"username\":\"ann\",\"admin\":false}"}},
                              .count = 1};
    char printed[PRINTED_MAX];
    assert_int_equal(answers_command(&answers, "user show ann", printed, sizeof printed), 0);
    assert_non_null(strstr(printed, "\nann"));
    assert_non_null(strstr(answers.requests[0], "GET /api/v2/users/ann HTTP"));
}

/* Who has no password logs in by the provider; a used name is given again only on purpose. */
static void a_user_without_a_password_is_made(void **state)
{
    (void)state;
    struct answers answers = {
        .items = {{"503 Service Unavailable", ""}, {"201 Created", "{}"}, {"200 OK", ""}},
        .count = 3};
    char printed[PRINTED_MAX];
    assert_int_equal(answers_command(&answers, "user add ann --no-password --reuse-name", printed,
                                     sizeof printed),
                     0);
    assert_non_null(strstr(answers.requests[1], "POST /api/v2/users HTTP"));
    assert_string_equal(body_of(&answers, 1),
                        "{\"username\":\"ann\",\"passwordHash\":\"\",\"reuseName\":true}");
}

static void options_of_a_group_are_sent(void **state)
{
    (void)state;
    char type[64];
    struct answers answers = {.items = {{"201 Created", "{}"}}, .count = 1};
    prints(&answers,
           "group add lab --description eyes --external-name ml-team --vc a,b --admin yes",
           "added group lab\n");
    assert_string_equal(body_of(&answers, 0),
                        "{\"groupname\":\"lab\",\"description\":\"eyes\","
                        "\"externalName\":\"ml-team\",\"extension\":{\"acls\":"
                        "{\"virtualClusters\":[\"a\",\"b\"],\"admin\":true}}}");
    answers_header(&answers, 0, "Content-Type", type, sizeof type);
    assert_string_equal(type, "application/json");
}

static void every_user_is_put_into_a_group(void **state)
{
    (void)state;
    struct answers answers = {.items = {{"201 Created", "{}"}, {"201 Created", "{}"}}, .count = 2};
    prints(&answers, "group join lab ann bob", "put in ann\nput in bob\n");
    assert_non_null(strstr(answers.requests[0], "PUT /api/v2/users/ann/group HTTP"));
    assert_non_null(strstr(answers.requests[1], "PUT /api/v2/users/bob/group HTTP"));
    for (int i = 0; i < 2; i++)
        assert_string_equal(body_of(&answers, i), "{\"groupname\":\"lab\"}");
}

/* What does not stand in a row is not sent: the server knows what is the default. */
static void rows_of_a_file_become_users(void **state)
{
    (void)state;
    char line[512], wanted[512];
    struct answers answers = {.items = {{"200 OK", "[{\"username\":\"admin\"}]"},
                                        {"201 Created", "{}"},
                                        {"201 Created", "{}"},
                                        {"201 Created", "{}"}},
                              .count = 4};
    folder_put("users.csv", "username,password,email,admin,groups\n"
                            "admin,secret-0,,true\n"
                            "ann,secret-1,ann@example.org,true,\"lab, few\"\n"
                            "bob,secret-2\n"
                            "eve,secret-3,,,\n");
    snprintf(line, sizeof line, "user import %s", in_folder("users.csv"));
    snprintf(wanted, sizeof wanted,
             "added user ann\nadded user bob\nadded user eve\n3 added, 1 there already, 0 not\n");
    prints(&answers, line, wanted);
    assert_string_equal(body_of(&answers, 1),
                        "{\"username\":\"ann\",\"password\":\"secret-1\",\"email\":"
                        "\"ann@example.org\",\"grouplist\":[\"lab\",\"few\"],\"admin\":true}");
    assert_string_equal(body_of(&answers, 2),
                        "{\"username\":\"bob\",\"password\":\"secret-2\",\"admin\":false}");
    assert_string_equal(body_of(&answers, 3),
                        "{\"username\":\"eve\",\"password\":\"secret-3\",\"admin\":false}");
}

static void wide_records_tell_of_the_change(void **state)
{
    (void)state;
    static const char page[] =
        "{\"data\":[{\"time\":0,\"username\":\"ann\",\"address\":\"127.0.0.1\","
        "\"route\":\"PUT /x\",\"subject\":\"lab\",\"outcome\":\"done\",\"token\":\"t1\","
        "\"right\":\"auth.x\",\"before\":{\"a\":1},\"after\":{\"a\":2}}],\"cursor\":null}";
    struct answers plain = {.items = {{"200 OK", page}}, .count = 1}, wide = plain;
    prints(&plain, "audit",
           "TIME  USER  ADDRESS    REQUEST  SUBJECT  OUTCOME\n"
           "-     ann   127.0.0.1  PUT /x   lab      done\n");
    prints(&wide, "audit -o wide",
           "TIME  USER  ADDRESS    REQUEST  SUBJECT  OUTCOME  TOKEN  RIGHT   BEFORE   AFTER\n"
           "-     ann   127.0.0.1  PUT /x   lab      done     t1     auth.x  {\"a\":1}  "
           "{\"a\":2}\n");
}

/* Two pages, with the same filters. */
static void filters_of_the_audit_are_sent(void **state)
{
    (void)state;
    char printed[PRINTED_MAX];
    struct answers answers = {.items = {{"200 OK", "{\"data\":[{}],\"cursor\":\"c2\"}"},
                                        {"200 OK", "{\"data\":[],\"cursor\":null}"}},
                              .count = 2};
    assert_int_equal(answers_command(&answers, "audit --user a&b --subject lab --refused --limit 3",
                                     printed, sizeof printed),
                     0);
    assert_ptr_equal(
        strstr(answers.requests[0],
               "GET /api/v2/audit?limit=3&cursor=&user=a%26b&subject=lab&refused=true HTTP"),
        answers.requests[0]);
    assert_ptr_equal(
        strstr(answers.requests[1],
               "GET /api/v2/audit?limit=2&cursor=c2&user=a%26b&subject=lab&refused=true HTTP"),
        answers.requests[1]);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_user_without_a_password_is_made),
    cmocka_unit_test(one_group_is_shown),
    cmocka_unit_test(one_user_is_shown),
    cmocka_unit_test(options_of_a_group_are_sent),
    cmocka_unit_test(every_user_is_put_into_a_group),
    cmocka_unit_test_setup_teardown(rows_of_a_file_become_users, folder_setup, folder_teardown),
    cmocka_unit_test(wide_records_tell_of_the_change),
    cmocka_unit_test(filters_of_the_audit_are_sent),
};
UNIT_FILE(tests, NULL, NULL);
