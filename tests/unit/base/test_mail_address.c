/* Mail addresses that are taken and used, and those that are not. */
#include "unit.h"

#include <string.h>

#include "base/mail_address.h"
#include "base/memory.h"

static void addresses_that_are_used(void **state)
{
    static const char *const good[] = {"a@b", "alice.b+c@mail.example.org", "o'neil@x.org"};
    static const char *const bad[] = {
        "",      "a",    "@b",      "a@",    "a@b@c",   "a b@c",      "a@b\r\nRCPT TO:<eve@x>",
        "<a@b>", "a@b>", "\"a\"@b", "a,b@c", "a@b,c@d", "\xc3\xb6@b", "a@b\x7f"};
    (void)state;
    for (size_t i = 0; i < COUNT_OF(good); i++)
        assert_true(mail_address_is_good(text_of(good[i])));
    for (size_t i = 0; i < COUNT_OF(bad); i++)
        assert_false(mail_address_is_good(text_of(bad[i])));
    char name[300];
    memset(name, 'a', sizeof name);
    name[1] = '@';
    assert_true(mail_address_is_good((struct text){name, MAIL_ADDRESS_MAX}));
    assert_false(mail_address_is_good((struct text){name, MAIL_ADDRESS_MAX + 1}));
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(addresses_that_are_used),
};
UNIT_FILE(tests, NULL, NULL);
