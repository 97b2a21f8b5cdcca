/* Templates: secrets and parameters put into texts. */
#include "parse.h"
#include "unit.h"

#include <string.h>

#include "base/memory.h"

static void test_secrets(void **state)
{
    (void)state;
    struct parse p;
    struct buf out = BUF_INIT;
    parse(&p, HELLO "      - echo <% $secrets.token %>\nsecrets:\n  token: s3 # really\n\n# end\n");
    assert_string_equal(buf_cstr(&p.report), "");
    assert_string_equal(p.spec->roles[0].command, "echo hello\necho <% $secrets.token %>");
    assert_int_equal(p.parsed.secret_count, 1);
    spec_render_secrets(text_of(p.spec->roles[0].command), p.parsed.secrets, p.parsed.secret_count,
                        &out);
    assert_string_equal(buf_cstr(&out), "echo hello\necho s3");
    assert_string_equal(buf_cstr(&p.masked), HELLO
                        "      - echo <% $secrets.token %>\nsecrets:\n  \"******\"\n\n# end\n");
    buf_release(&out);
    parse_free(&p);
}

static void rendered_is(const char *value, const char *expected, bool is_json)
{
    static const struct spec_pair secrets[] = {
        {"a", "A"}, {"list.0.b", "deep"}, {"quote", "a\"b\\c\n"}, {"ab", "AB"}, {"a.b", "dotted"}};
    struct buf out = BUF_INIT;
    if (is_json)
        spec_render_secrets_json(text_of(value), secrets, COUNT_OF(secrets), &out);
    else
        spec_render_secrets(text_of(value), secrets, COUNT_OF(secrets), &out);
    assert_string_equal(buf_cstr(&out), expected);
    buf_release(&out);
}

static void test_render(void **state)
{
    (void)state;
    rendered_is("", "", false);
    rendered_is("<% $secrets.a %><%$secrets.ab%>", "AAB", false);
    rendered_is("<% $secrets.list[0].b %> <% $secrets.list.0.b %> <% $secrets.a.b %>",
                "deep deep dotted", false);
    rendered_is("<% $secrets.list[0] %> <% $secrets.list[0]b %>",
                "<% $secrets.list[0] %> <% $secrets.list[0]b %>", false);
    rendered_is("<% $secrets.abc %> <% $secrets %> <% $secrets. %> <% $secrets.[0] %>",
                "<% $secrets.abc %> <% $secrets %> <% $secrets. %> <% $secrets.[0] %>", false);
    rendered_is("<% $secrets.a.b.c %> <% $secrets.list.1.b %> <% $secrets.a",
                "<% $secrets.a.b.c %> <% $secrets.list.1.b %> <% $secrets.a", false);
    rendered_is("<% $parameters.a %> %> <%> <%", "<% $parameters.a %> %> <%> <%", false);
    rendered_is("<% x <% $secrets.a %>", "<% x A", false);
    rendered_is("<% $secrets.quote %>", "a\"b\\c\n", false);
    rendered_is("{\"x\": \"<% $secrets.quote %>\"}", "{\"x\": \"a\\\"b\\\\c\\n\"}", true);
}

/* A secret that is not there is named with the one that was meant. */
static void test_secret_that_was_meant(void **state)
{
    (void)state;
    static const struct {
        const char *reference, *says;
    } cases[] = {
        {"$secrets.tokn", "(did you mean token?)"},
        {"$secrets.token.x", ""}, /* only a name by itself */
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct parse p;
        struct buf text = BUF_INIT;
        buf_format(&text, HELLO "      - echo <%% %s %%>\nsecrets:\n  token: s3\n",
                   cases[i].reference);
        parse(&p, buf_cstr(&text));
        assert_non_null(strstr(buf_cstr(&p.report), "names no secret, it stays as it is"));
        if (*cases[i].says)
            assert_non_null(strstr(buf_cstr(&p.report), cases[i].says));
        else
            assert_null(strstr(buf_cstr(&p.report), "did you mean"));
        parse_free(&p);
        buf_release(&text);
    }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_secrets),
    cmocka_unit_test(test_render),
    cmocka_unit_test(test_secret_that_was_meant),
};
UNIT_FILE(tests, NULL, NULL);
