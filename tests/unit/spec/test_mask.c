/* However secrets are written, the masked text never shows one, parses to the same document
 * otherwise, and keeps every byte outside the block: by example, and in random textual forms. */
#include "parse.h"
#include "unit.h"

#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "base/random.h"
#include "doc/doc.h"

enum { ROUNDS = 4000 };

struct source {
    struct random random;
    struct buf text;
    const char *line_break;
    unsigned secret_count;
};

static bool chance(struct source *source, unsigned percent)
{
    return random_below(&source->random, 100) < percent;
}

static const char *secret_next(struct source *source)
{
    static char secret[32];
    snprintf(secret, sizeof secret, "pw%u", source->secret_count++);
    return secret;
}

static void indent(struct source *source, unsigned depth)
{
    for (unsigned i = 0; i < depth; i++)
        buf_char(&source->text, ' ');
}

static void line_end(struct source *source)
{
    if (chance(source, 20))
        buf_format(&source->text, " # %s", chance(source, 80) ? secret_next(source) : "\xc3\xa9");
    buf_string(&source->text, source->line_break);
    while (chance(source, 15)) {
        if (chance(source, 50)) {
            indent(source, 1 + (unsigned)random_below(&source->random, 8));
            buf_format(&source->text, "# %s", secret_next(source));
        }
        buf_string(&source->text, source->line_break);
    }
}

static void scalar_flow(struct source *source, bool is_json)
{
    static const char *const forms[] = {
        "%s", "'%s'", "\"%s\"", "\"a\\\"b%s\"", "'it''s %s'", "\"\xe2\x82\xac %s\"", "!!str %s"};
    static const char *const json_forms[] = {"\"%s\"", "\"a\\\"}%s\"", "\"\xc3\xa9\\n%s\""};
    char text[64];
    /* one of our own formats */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
    snprintf(text, sizeof text,
             is_json ? json_forms[random_below(&source->random, COUNT_OF(json_forms))]
                     : forms[random_below(&source->random, COUNT_OF(forms))],
             secret_next(source));
#pragma GCC diagnostic pop
    buf_string(&source->text, text);
}

static void value_flow(struct source *source, unsigned depth, bool is_json)
{
    unsigned count = (unsigned)random_below(&source->random, 3);
    if (depth > 2 || chance(source, 50)) {
        scalar_flow(source, is_json);
        return;
    }
    bool is_map = chance(source, 50);
    buf_char(&source->text, is_map ? '{' : '[');
    for (unsigned i = 0; i < count; i++) {
        if (i)
            buf_string(&source->text, is_json || chance(source, 70) ? ", " : ",\n  ");
        if (is_map)
            buf_format(&source->text, is_json ? "\"k%u\": " : "k%u: ", i);
        value_flow(source, depth + 1, is_json);
    }
    buf_char(&source->text, is_map ? '}' : ']');
}

static void map_flow(struct source *source, bool is_json)
{
    unsigned count = 1 + (unsigned)random_below(&source->random, 3);
    buf_char(&source->text, '{');
    for (unsigned i = 0; i < count; i++) {
        buf_format(&source->text, is_json ? "%s\"s%u\": " : "%ss%u: ", i ? ", " : "", i);
        value_flow(source, 0, is_json);
    }
    buf_char(&source->text, '}');
}

static void map_block(struct source *source, unsigned depth)
{
    unsigned count = 1 + (unsigned)random_below(&source->random, 3);
    for (unsigned i = 0; i < count; i++) {
        indent(source, depth);
        buf_format(&source->text, chance(source, 80) ? "s%u:" : "'s%u' :", i);
        switch (random_below(&source->random, depth < 7 ? 4 : 2)) {
        case 0:
            buf_char(&source->text, ' ');
            value_flow(source, 1, false);
            line_end(source);
            break;
        case 1:
            buf_string(&source->text, chance(source, 50) ? " |" : " >-");
            buf_string(&source->text, source->line_break);
            for (int line = 0; line < 2; line++) {
                indent(source, depth + 3);
                buf_format(&source->text, "%s # not a comment", secret_next(source));
                buf_string(&source->text, source->line_break);
            }
            break;
        case 2:
            line_end(source);
            map_block(source, depth + 2);
            break;
        default:
            line_end(source);
            indent(source, depth);
            buf_string(&source->text, "- ");
            scalar_flow(source, false);
            line_end(source);
            break;
        }
    }
}

static void block_write(struct source *source)
{
    static const char *const keys[] = {"secrets", "'secrets'", "\"secrets\"", "\"secret\\x73\""};
    const char *key = keys[random_below(&source->random, COUNT_OF(keys))];
    if (chance(source, 15))
        buf_format(&source->text, "? %s\n:", key);
    else
        buf_format(&source->text, "%s:", key);
    if (chance(source, 40)) {
        buf_char(&source->text, ' ');
        map_flow(source, false);
        buf_string(&source->text, chance(source, 30) ? " # pw\n" : "\n");
        return;
    }
    buf_string(&source->text, chance(source, 20) ? " !!map" : "");
    buf_string(&source->text, source->line_break);
    while (chance(source, 20)) {
        indent(source, (unsigned)random_below(&source->random, 2) + 1);
        buf_format(&source->text, "# %s", secret_next(source));
        buf_string(&source->text, source->line_break);
    }
    map_block(source, 2 + (unsigned)random_below(&source->random, 3));
}

static const char *const others[] = {
    "protocolVersion: 2\n",
    "name: \"hello\" # \xc3\xa9\n",
    "type: job\n",
    "# about prerequisites \xe2\x82\xac\nprerequisites:\n"
    "  - {type: dockerimage, name: debian, uri: debian:12}\n",
    "taskRoles:\n" WORKER,
    "parameters: {a: \"x\xc3\xa9\"}   \n\n\n",
};

static void same_but_secrets(struct parse *p, const struct doc *before, const struct doc *after,
                             const char *source)
{
    assert_int_equal(p->result, 0);
    if (!after || before->as.map.count != after->as.map.count)
        fail_msg("masked:\n%s\nof:\n%s", buf_cstr(&p->masked), source);
    for (size_t i = 0; i < before->as.map.count; i++) {
        const struct doc_entry *entry = &before->as.map.entries[i];
        const struct doc *value = doc_find(after, entry->key);
        struct buf one = BUF_INIT, other = BUF_INIT;
        assert_non_null(value);
        if (text_is(entry->key, "secrets")) {
            assert_string_equal(value->as.string.at, "******");
            continue;
        }
        assert_int_equal(doc_to_json(entry->value, 1 << 16, &one), 0);
        assert_int_equal(doc_to_json(value, 1 << 16, &other), 0);
        assert_string_equal(buf_cstr(&one), buf_cstr(&other));
        buf_release(&one);
        buf_release(&other);
    }
}

static void round_check(struct source *source)
{
    struct parse p;
    const char *text = buf_cstr(&source->text);
    parse_text(&p, buf_as_text(&source->text));
    if (!p.spec)
        fail_msg("%s\n%s", text, buf_cstr(&p.report));
    if (strstr(buf_cstr(&p.masked), "pw"))
        fail_msg("shown:\n%s\nof:\n%s", buf_cstr(&p.masked), text);
    const struct doc *before =
        doc_parse(buf_as_text(&source->text), DOC_YAML, &p.scratch, &p.problems);
    const struct doc *after = doc_parse(buf_as_text(&p.masked), DOC_YAML, &p.scratch, &p.problems);
    same_but_secrets(&p, before, after, text);
    parse_free(&p);
}

static void test_yaml(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < ROUNDS; seed++) {
        struct source source = {.random = {seed}, .line_break = seed % 3 ? "\n" : "\r\n"};
        size_t place = random_below(&source.random, COUNT_OF(others) + 1);
        struct buf before = BUF_INIT, behind = BUF_INIT;
        for (size_t i = 0; i < COUNT_OF(others); i++)
            buf_string(i < place ? &before : &behind, others[i]);
        buf_text(&source.text, buf_as_text(&before));
        block_write(&source);
        buf_text(&source.text, buf_as_text(&behind));
        round_check(&source);
        struct parse p;
        parse_text(&p, buf_as_text(&source.text));
        struct text masked = buf_as_text(&p.masked);
        assert_true(text_starts(masked, buf_as_text(&before)));
        assert_true(masked.length >= behind.length &&
                    strcmp(masked.at + masked.length - behind.length, buf_cstr(&behind)) == 0);
        parse_free(&p);
        buf_release(&before);
        buf_release(&behind);
        buf_release(&source.text);
    }
}

static void test_json(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < ROUNDS; seed++) {
        struct source source = {.random = {seed}, .line_break = "\n"};
        buf_string(&source.text, "{\"protocolVersion\": 2, \"name\": \"x");
        buf_string(&source.text, chance(&source, 50) ? "\", \"secrets\": " : "\",\n\"secrets\":\n");
        map_flow(&source, true);
        buf_string(&source.text, chance(&source, 50) ? "\n, " : ",");
        buf_string(&source.text,
                   "\"type\": \"job\", \"prerequisites\": [{\"type\": \"dockerimage\", \"name\": "
                   "\"i\", \"uri\": \"u\"}], \"taskRoles\": {\"w\": {\"dockerImage\": \"i\", "
                   "\"commands\": [\"true\"], \"resourcePerInstance\": {\"cpu\": 1, "
                   "\"memoryMB\": 1, \"gpu\": 0}}}}");
        round_check(&source);
        buf_release(&source.text);
    }
}

static void masked_is(const char *source, const char *expected)
{
    struct parse p;
    parse(&p, source);
    assert_string_equal(buf_cstr(&p.report), "");
    assert_string_equal(buf_cstr(&p.masked), expected);
    assert_null(strstr(buf_cstr(&p.masked), "pw"));
    parse_free(&p);
}

/* However the block is written, its value goes and everything else stays. */
static void test_masks(void **state)
{
    (void)state;
    masked_is(HELLO "secrets: {a: pw}\n", HELLO "secrets: \"******\"\n");
    masked_is(HELLO "secrets: {a: pw}", HELLO "secrets: \"******\"");
    masked_is(HELLO "secrets: {a: pw} # pw\n", HELLO "secrets: \"******\"\n");
    masked_is(HELLO "secrets:\n  a: pw", HELLO "secrets:\n  \"******\"");
    masked_is(HELLO "secrets:\n  a: |\n    pw\n    pw\n\n\n", HELLO "secrets:\n  \"******\"\n\n\n");
    masked_is(HELLO "secrets:\n  a: >+\n    pw\n\n# c\n", HELLO "secrets:\n  \"******\"\n\n# c\n");
    masked_is(HELLO "secrets:\n  a: pw\n   # pw\n\n # pw\n\n# c\n",
              HELLO "secrets:\n  \"******\"\n\n# c\n");
    masked_is(HELLO "secrets: # c\n  # pw\n\n  # pw\n  a: pw\n",
              HELLO "secrets: # c\n  \"******\"\n");
    masked_is(HELLO "secrets:\n\n\n  a: pw\n", HELLO "secrets:\n\n\n  \"******\"\n");
    masked_is(HELLO "secrets:\r\n  # pw\r\n  a: pw\r\n  # pw\r\n",
              HELLO "secrets:\r\n  \"******\"\r\n");
    masked_is(HELLO "secrets:\r  # pw\r  a: pw\r  # pw\r# c", HELLO "secrets:\r  \"******\"\r# c");
    masked_is(HELLO "? secrets\n: a: pw\n  b: pw\n", HELLO "? secrets\n: \"******\"\n");
    masked_is(HELLO "secrets: !!map\n  a: pw\n", HELLO "secrets: \"******\"\n");
    masked_is(HELLO "secrets: {}\n", HELLO "secrets: \"******\"\n");
    masked_is(HELLO "secrets:\n", HELLO "secrets:\n");
    masked_is(HELLO "secrets:\n  a: 'p\xc3\xa9pw'\nversion: '\xc3\xa9'\n",
              HELLO "secrets:\n  \"******\"\nversion: '\xc3\xa9'\n");
    masked_is("secrets:\n  a: pw\n" HELLO, "secrets:\n  \"******\"\n" HELLO);
    masked_is("# secrets: a\nsecrets: {a: pw,\n  b: [pw]}   \n" HELLO
              "parameters: {secrets: {a: b}}\n",
              "# secrets: a\nsecrets: \"******\"   \n" HELLO "parameters: {secrets: {a: b}}\n");
}

static void test_secrets_wrong(void **state)
{
    (void)state;
    is_wrong(HELLO "secrets: {a: &x b}\n", "no anchors, aliases and merge keys here");
    is_wrong("parameters: {a: &x pw}\n" HELLO "secrets: {a: *x}\n", "no anchors");
    is_wrong("parameters: &x {a: pw}\n" HELLO "secrets: *x\n", "no anchors");
    is_wrong("parameters: &x {a: pw}\n" HELLO "secrets: {<<: *x}\n", "no anchors");
    is_wrong(HELLO "secrets: {a: [[{b: &x c}]]}\n", "no anchors");
    is_wrong(HELLO "secrets: [a]\n", "secrets: must be a map, not a list");
    is_wrong(HELLO "secrets: \"******\"\n", "this is a stored copy: write the secrets in again");
    is_wrong(HELLO "secrets: {a: \"b\\0c\"}\n", "secrets.a: must not hold a NUL character");
    is_wrong(HELLO "secrets: {a: b}\nsecrets: {a: b}\n", "duplicate key \"secrets\"");
}

static const struct spec_pair kept_pairs[] = {{"a", "pw-a"}, {"b.0", "pw-b"}, {"c.x", "pw-c"}};
static const struct spec_kept kept = {"ann~old", kept_pairs, COUNT_OF(kept_pairs)};

/* What the file's secrets are: "NAME=VALUE …"; then what is said. */
static void kept_gives(const char *source, const struct spec_kept *from, const char *secrets,
                       const char *report)
{
    struct parse p;
    cleanup_buf struct buf found = BUF_INIT;
    parse_kept(&p, text_of(source), from);
    for (size_t i = 0; i < p.parsed.secret_count; i++)
        buf_format(&found, "%s%s=%s", i ? " " : "", p.parsed.secrets[i].name,
                   p.parsed.secrets[i].value);
    assert_string_equal(buf_cstr(&found), secrets);
    assert_string_equal(buf_cstr(&p.report), report);
    assert_null(strstr(buf_cstr(&p.masked), "pw-"));
    assert_null(strstr(buf_cstr(&p.report), "pw-"));
    if (p.spec)
        assert_non_null(strstr(buf_cstr(&p.masked), "\"******\""));
    parse_free(&p);
}

#define ASKING                                                                                     \
    HEAD "taskRoles:\n  worker:\n    dockerImage: debian\n" RESOURCES                              \
         "    commands:\n      - x <% $secrets.a %> <% $secrets.b[0] %>\n"

static void test_kept(void **state)
{
    (void)state;
    const char *all = "a=pw-a b.0=pw-b c.x=pw-c";
    kept_gives(ASKING "secrets: \"******\"\n", &kept, all, "");
    kept_gives("secrets:\n  '******'\n" ASKING, &kept, all, "");
    kept_gives(ASKING "secrets:\n  a: '******'\n  b: [\"******\"]\n  n: new\n", &kept,
               "a=pw-a b.0=pw-b n=new", "");
    kept_gives(ASKING "secrets: {a: other, b: [x], c: {x: '******'}}\n", &kept,
               "a=other b.0=x c.x=pw-c", "");
    /* of a job without secrets nothing is taken */
    const struct spec_kept none = {"ann~old", NULL, 0};
    kept_gives(HELLO "secrets: \"******\"\n", &none, "", "");
    /* a value that only looks like it */
    kept_gives(HELLO "secrets: {a: '*****'}\n", &kept, "a=*****", "");
}

static void test_kept_missing(void **state)
{
    (void)state;
    kept_gives(HELLO "secrets:\n  a: '******'\n  aa: '******'\n", &kept, "",
               "job:14:7: secrets.aa: job ann~old has no secret of this name\n");
    kept_gives(HELLO "secrets: {b: '******'}\n", &kept, "",
               "job:12:14: secrets.b: job ann~old has no secret of this name\n");
    /* all are taken: none that is named can be another one */
    struct parse p;
    parse_kept(&p,
               TEXT(HEAD "taskRoles:\n  worker:\n    dockerImage: debian\n" RESOURCES
                         "    commands:\n      - x <% $secrets.d %>\nsecrets: '******'\n"),
               &kept);
    assert_null(p.spec);
    assert_non_null(strstr(buf_cstr(&p.report), "job:11:9: "));
    assert_non_null(strstr(buf_cstr(&p.report), "<% $secrets.d %>: job ann~old, whose secrets are "
                                                "taken, has none of this name"));
    parse_free(&p);
    /* nor in the login of a registry, nor in a plugin */
    parse_kept(&p,
               TEXT("protocolVersion: 2\nname: hello\ntype: job\nprerequisites:\n"
                    "  - type: dockerimage\n    name: debian\n    uri: d\n"
                    "    auth: {username: u, password: '<% $secrets.pass %>'}\n"
                    "taskRoles:\n" WORKER "extras:\n  com.microsoft.pai.runtimeplugin:\n"
                    "    - plugin: cmd\n      parameters: {preCommands: ['<% $secrets.q %>']}\n"
                    "secrets: '******'\n"),
               &kept);
    assert_null(p.spec);
    assert_non_null(strstr(buf_cstr(&p.report), "job:8:35: prerequisites.auth.password: "
                                                "<% $secrets.pass %>: job ann~old"));
    assert_non_null(strstr(buf_cstr(&p.report), "<% $secrets.q %>: job ann~old"));
    parse_free(&p);
}

/* Without a job that has them. */
static void test_masked_refused(void **state)
{
    (void)state;
    is_wrong(HELLO "secrets: {a: '******'}\n",
             "job:12:14: secrets.a: this is the mask of a stored copy: write the secret in again");
    is_wrong(HELLO "secrets: {a: [x, '******']}\n", "secrets.a.1: this is the mask");
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_kept),           cmocka_unit_test(test_kept_missing),
    cmocka_unit_test(test_masked_refused), cmocka_unit_test(test_yaml),
    cmocka_unit_test(test_json),           cmocka_unit_test(test_masks),
    cmocka_unit_test(test_secrets_wrong),
};
UNIT_FILE(tests, NULL, NULL);
