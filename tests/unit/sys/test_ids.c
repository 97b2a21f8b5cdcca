/* Who has ids of users and groups that jobs may have. */
#include "folder.h"
#include "unit.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "sys/ids.h"

static void files_put(const char *passwd, const char *group, const char *subuid, const char *subgid)
{
    folder_put("passwd", passwd);
    folder_put("group", group);
    folder_put("subuid", subuid);
    folder_put("subgid", subgid);
}

#define PLAIN "root:x:0:0:root:/root:/bin/sh\nann:x:1000:1000::/home/ann:/bin/sh\n"

static void test_holders(void **state)
{
    (void)state;
    static const struct {
        const char *passwd, *group, *subuid, *subgid, *who; /* NULL: nobody */
    } cases[] = {
        {PLAIN, "root:x:0:\n", "ann:100000:65536\n", "ann:100000:65536\n", NULL},
        {PLAIN "bob:x:500000:100::/:/bin/sh\n", "", "", "", "bob in %s/passwd"},
        {PLAIN "bob:x:499999:100::/:/bin/sh\nc:x:600000:1::/:\n", "", "", "", NULL},
        {PLAIN "bob:x:599999:100::/:/bin/sh", "", "", "", "bob in %s/passwd"},
        {PLAIN, "staff:x:500001:\n", "", "", "staff in %s/group"},
        {PLAIN, "", "ann:434464:65536\n", "", NULL},
        {PLAIN, "", "ann:434465:65536\n", "", "ann in %s/subuid"},
        {PLAIN, "", "ann:100000:4000000000\n", "", "ann in %s/subuid"},
        {PLAIN, "", "ann:500000:0\n", "ann:600000:65536\n", NULL},
        {PLAIN, "", "", "# ids\n\nann:500000:10\n", "ann in %s/subgid"},
        {PLAIN, "", "ann:five:10\nann:-5:700000\nann:500000\nann:500000:-1\n", "", NULL},
        {"bob:x:4294967296:1::/:\nbob:x\nbob", "", "", "", NULL},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        char holder[300] = "", wanted[300];
        files_put(cases[i].passwd, cases[i].group, cases[i].subuid, cases[i].subgid);
        const bool is_held = ids_holder(in_folder(""), 500000, 600000, holder, sizeof holder);
        assert_int_equal(is_held, cases[i].who != NULL);
        if (!is_held)
            continue;
        snprintf(wanted, sizeof wanted, "%.*s in ", (int)strcspn(cases[i].who, " "), cases[i].who);
        assert_int_equal(strncmp(holder, wanted, strlen(wanted)), 0);
        assert_string_equal(strrchr(holder, '/'), strrchr(cases[i].who, '/'));
    }
}

static void test_files_that_are_not_there(void **state)
{
    (void)state;
    char holder[80] = "unchanged";
    assert_false(ids_holder(in_folder("nowhere"), 0, UINT64_C(1) << 32, holder, sizeof holder));
    assert_string_equal(holder, "unchanged");
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_holders),
    cmocka_unit_test(test_files_that_are_not_there),
};
UNIT_FILE(tests, folder_setup, folder_teardown);
