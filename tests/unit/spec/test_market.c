/* The format of OpenPAI's marketplace: what `$$x$$` means, what is fetched, every limit. The golden
 * files have whole jobs.
 *
 * Covers: src/spec/market.c, src/spec/market_lines.c
 */
#include "parse.h"
#include "unit.h"

#define MARKET(command)                                                                            \
    "protocol_version: v2\nname: m\ntype: job\n"                                                   \
    "parameters: {n: 3, l: [a, 2], b: true, map: {k: v}, nothing: null, deep: [[1]]}\n"            \
    "tasks:\n  - {role: r, dockerimage: d, parameters: {p: $$n$$}, command: [" command "]}\n"      \
    "prerequisites: [{name: d, type: dockerimage, uri: u}]\n"

static void command_is(const char *source, const char *expected)
{
    static const char first[] = "export PAI_CURRENT_DIR=\"$PWD\"\n";
    struct parse p;
    parse(&p, source);
    assert_string_equal(buf_cstr(&p.report), "");
    assert_int_equal(p.spec->format, SPEC_MARKET);
    const char *own = strstr(p.spec->roles[0].command, first);
    assert_non_null(own);
    assert_string_equal(own + strlen(first), expected);
    parse_free(&p);
}

static void test_references(void **state)
{
    (void)state;
    command_is(MARKET("$$n$$"), "3");
    command_is(MARKET("a$$n$$b$$role$$c"), "a3brc");
    command_is(MARKET("$$l$$ $$b$$ $$map.k$$ $$p$$"), "a,2 true v 3");
    command_is(MARKET("$$map$$ $$nothing$$ $$deep$$ $$x.y$$ $$n"),
               "$$map$$ $$nothing$$ $$deep$$ $$x.y$$ $$n");
    command_is(MARKET("echo $$ $$$n$$ $$$$ $$ n$$"), "echo $$ $3 $$$$ $$ n$$");
}

static void test_forms(void **state)
{
    (void)state;
    is_right(
        "{\"name\": \"j\", \"type\": \"job\", \"tasks\": [{\"role\": \"r\", \"dockerimage\": "
        "\"d\",\n"
        " \"command\": [\"ls\"]}], \"prerequisites\": [{\"name\": \"d\", \"type\": \"dockerimage\","
        " \"uri\": \"u\"}]}");
    is_wrong("protocol_version: v2\n", "tasks: is missing");
    is_wrong("tasks: 5\n", "tasks: must be a list");
    is_wrong("protocol_version: v2\ntasks: [5]\nprerequisites: [5]\n", "tasks[0]: must be a map");
    /* what has protocol 2's own names is protocol 2 */
    is_wrong("protocolVersion: 2\ntasks: []\n", "tasks: unknown field");
    is_wrong("protocol_version: v2\ntaskRoles: {}\n", "protocolVersion: is missing");
}

static void test_limits(void **state)
{
    (void)state;
    struct buf text = BUF_INIT;
    buf_string(&text, "name: m\ntype: job\nprerequisites: [{name: d, type: dockerimage, uri: u}]\n"
                      "parameters: {x: ");
    fill(&text, 'x', 1000);
    buf_string(&text, "}\ntasks:\n  - role: r\n    dockerimage: d\n    command:\n      - ");
    struct buf whole = BUF_INIT;
    buf_text(&whole, buf_as_text(&text));
    for (int i = 0; i < 300; i++)
        buf_string(&whole, "$$x$$");
    refused(&whole, "too long with its parameters put in");
    buf_text(&whole, buf_as_text(&text));
    for (int i = 0; i < 300; i++)
        buf_string(&whole, "$$x$$\n      - ");
    refused(&whole, "the task's command is longer than 262144 bytes");
    buf_text(&whole, buf_as_text(&text));
    for (int i = 0; i < 20; i++) {
        if (i > 0)
            buf_format(&whole, "  - role: r%d\n    dockerimage: d\n    command:\n      - ", i);
        for (int j = 0; j < 220; j++)
            buf_string(&whole, "$$x$$");
        buf_char(&whole, '\n');
    }
    refused(&whole, "too long with its parameters put in");
    buf_text(&whole, buf_as_text(&text));
    for (int i = 0; i < 10; i++) {
        if (i > 0)
            buf_format(&whole, "  - role: r%d\n    dockerimage: d\n    command:\n      - ", i);
        for (int j = 0; j < 240; j++)
            buf_string(&whole, "$$x$$");
        buf_char(&whole, '\n');
    }
    refused(&whole, "the commands of all tasks are longer than 4194304 bytes");
    is_wrong(MARKET("\"a\\0b\""), "must not hold a NUL character");
    buf_release(&whole);
    buf_release(&text);
}

/* A list of values that is put in stops at the limit, too. */
static void test_long_list(void **state)
{
    (void)state;
    struct buf text = BUF_INIT;
    buf_string(&text, "name: m\ntype: job\nprerequisites: [{name: d, type: dockerimage, uri: u}]\n"
                      "parameters: {x: [");
    for (int i = 0; i < 3000; i++) {
        fill(&text, 'x', 100);
        buf_char(&text, ',');
    }
    buf_string(&text, "]}\ntasks: [{role: r, dockerimage: d, command: [a$$x$$, a$$x$$]}]\n");
    refused(&text, "too long with its parameters put in");
    buf_release(&text);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_references),
    cmocka_unit_test(test_forms),
    cmocka_unit_test(test_limits),
    cmocka_unit_test(test_long_list),
};
UNIT_FILE(tests, NULL, NULL);
