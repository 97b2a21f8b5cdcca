/* Secrets of a job are stored sealed. */
#include "unit.h"

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/memory.h"
#include "server/container.h"
#include "sys/key_file.h"

static void secrets_are_sealed_and_opened(void **state)
{
    struct spec_pair pairs[] = {{"a.b", "one"}, {"c", ""}}, *opened;
    struct key_file keys = {0}, other = {0};
    struct buf sealed = BUF_INIT;
    struct arena arena;
    struct err err;
    size_t count;
    (void)state;

    arena_init(&arena);
    secret_random(keys.seal, sizeof keys.seal);
    secret_random(other.seal, sizeof other.seal);
    secrets_seal(pairs, 2, keys.seal, &sealed);
    assert_int_equal(secrets_open(buf_as_text(&sealed), &keys, &arena, &opened, &count, &err), 0);
    assert_int_equal(count, 2);
    assert_string_equal(opened[0].name, "a.b");
    assert_string_equal(opened[0].value, "one");
    assert_string_equal(opened[1].value, "");
    assert_int_equal(secrets_open(buf_as_text(&sealed), &other, &arena, &opened, &count, &err),
                     ERR_CORRUPT);
    /* in the midst of a rotation */
    memcpy(other.old_seal, keys.seal, sizeof other.old_seal);
    other.has_old = true;
    assert_int_equal(secrets_open(buf_as_text(&sealed), &other, &arena, &opened, &count, &err), 0);
    assert_int_equal(count, 2);
    buf_clear(&sealed);
    secrets_seal(NULL, 0, keys.seal, &sealed);
    assert_int_equal(sealed.length, 0);
    assert_int_equal(secrets_open(TEXT(""), &keys, &arena, &opened, &count, &err), 0);
    assert_int_equal(count, 0);
    arena_release(&arena);
    buf_release(&sealed);
}

static int begin(void **state)
{
    (void)state;
    return secret_init(NULL);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(secrets_are_sealed_and_opened),
};
UNIT_FILE(tests, begin, NULL);
