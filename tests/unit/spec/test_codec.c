/* A stored job specification is read back as it was, or refused. */
#include "parse.h"
#include "unit.h"

#include "base/err.h"
#include "base/memory.h"

static void test_codec(void **state)
{
    (void)state;
    struct parse p;
    struct buf bytes = BUF_INIT, again = BUF_INIT;
    struct err err;
    parse(&p, HELLO);
    spec_encode(p.spec, &bytes);
    struct spec *copy = spec_decode(buf_as_text(&bytes), &err);
    assert_non_null(copy);
    assert_string_equal(copy->roles[0].command, "echo hello");
    spec_encode(copy, &again);
    assert_true(text_equal(buf_as_text(&bytes), buf_as_text(&again)));
    spec_free(copy);
    spec_free(NULL);
    for (size_t i = 0; i < bytes.length; i++) {
        assert_null(spec_decode((struct text){bytes.at, i}, &err));
        assert_int_equal(err.code, ERR_CORRUPT);
    }
    buf_char(&again, 'x');
    assert_null(spec_decode(buf_as_text(&again), &err));
    again.at[0] = 99;
    assert_null(spec_decode(buf_as_text(&again), &err));
    assert_string_equal(err.text, "stored job specification has version 99, not 1 to 4");
    buf_release(&bytes);
    buf_release(&again);
    parse_free(&p);
}

/* Every byte changed in several ways: refused, or read as something sound. */
static void test_codec_damaged(void **state)
{
    (void)state;
    static const unsigned char changes[] = {0x01, 0x02, 0x10, 0x80, 0xff};
    struct parse p;
    struct buf bytes = BUF_INIT, again = BUF_INIT;
    struct err err;
    unsigned refused = 0;
    parse(&p, HELLO "extras:\n  storages: [{name: a}]\n"
                    "  com.microsoft.pai.runtimeplugin: [{plugin: ssh, taskroles: [worker]}]\n");
    assert_non_null(p.spec);
    spec_encode(p.spec, &bytes);
    for (size_t i = 0; i < bytes.length; i++)
        for (size_t j = 0; j < COUNT_OF(changes); j++) {
            bytes.at[i] = (char)(bytes.at[i] ^ changes[j]);
            struct spec *spec = spec_decode(buf_as_text(&bytes), &err);
            if (spec) {
                buf_clear(&again);
                spec_encode(spec, &again);
                assert_true(spec->roles[0].image < spec->image_count);
                assert_true(text_equal(buf_as_text(&bytes), buf_as_text(&again)));
            } else {
                refused++;
            }
            spec_free(spec);
            bytes.at[i] = (char)(bytes.at[i] ^ changes[j]);
        }
    assert_true(refused > bytes.length);
    buf_release(&bytes);
    buf_release(&again);
    parse_free(&p);
}

/* What the decoder must refuse although every field by itself is well formed. */
static void test_codec_unsound(void **state)
{
    (void)state;
    struct parse p;
    struct err err;
    parse(&p, HELLO);
    struct spec spec = *p.spec;
    struct spec_role role = p.spec->roles[0], many[3];
    struct spec_port ports[1] = {{.label = "p", .count = 1}};
    spec.roles = &role;
    for (int i = 0; i < 6; i++) {
        struct buf bytes = BUF_INIT;
        spec.role_count = 1;
        spec.roles = &role;
        role = p.spec->roles[0];
        switch (i) {
        case 0:
            role.image = 1;
            break;
        case 1:
            role.instances = 0;
            break;
        case 2:
            role.instances = SPEC_INSTANCES_MAX + 1;
            break;
        case 3:
            role.port_count = SPEC_PORTS_MAX + 1;
            role.ports = mem_zero(role.port_count, sizeof *role.ports);
            for (size_t j = 0; j < role.port_count; j++)
                role.ports[j] = ports[0];
            break;
        case 4:
            spec.role_count = 0;
            break;
        default:
            role.instances = SPEC_INSTANCES_MAX;
            many[0] = many[1] = many[2] = role;
            spec.roles = many;
            spec.role_count = 3;
            break;
        }
        spec_encode(&spec, &bytes);
        assert_null(spec_decode(buf_as_text(&bytes), &err));
        assert_string_equal(err.text, "stored job specification is damaged");
        if (i == 3)
            mem_free(role.ports);
        buf_release(&bytes);
    }
    parse_free(&p);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_codec),
    cmocka_unit_test(test_codec_damaged),
    cmocka_unit_test(test_codec_unsound),
};
UNIT_FILE(tests, NULL, NULL);
