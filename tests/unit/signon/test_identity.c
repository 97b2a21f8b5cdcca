/* User names out of what providers call users. */
#include "unit.h"

#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "signon/identity.h"

static void names(void **state)
{
    static const char *const rows[][2] = {
        {"alice", "alice"},
        {"Alice.B-c_1", "Alice.B-c_1"},
        {"alice@example.org", "alice"},
        {"a@b@example.org", "a_b"},
        {"Ana María", "Ana_Mar__a"},
        {"a/b\nc", "a_b_c"},
        {"@example.org", NULL},
        {".", NULL},
        {"..@example.org", NULL},
        {"...", "..."},
        {"", NULL},
    };
    char name[IDENTITY_NAME_MAX + 1], text[IDENTITY_NAME_MAX + 1];
    (void)state;
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        bool is_name = identity_name(text_of(rows[i][0]), name);
        assert_int_equal(is_name, rows[i][1] != NULL);
        if (is_name)
            assert_string_equal(name, rows[i][1]);
    }
    memset(text, 'a', sizeof text);
    assert_false(identity_name((struct text){text, IDENTITY_NAME_MAX + 1}, name));
    assert_true(identity_name((struct text){text, IDENTITY_NAME_MAX}, name));
    assert_int_equal(strlen(name), IDENTITY_NAME_MAX);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(names),
};
UNIT_FILE(tests, NULL, NULL);
