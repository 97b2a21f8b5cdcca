/* One alert: what it is known by, its copies, and its bytes. */
#include "unit.h"

#include <string.h>

#include "base/arena.h"
#include "base/memory.h"
#include "model/alert.h"

static const struct alert lost = {.name = "NvidiaGpuLost",
                                  .severity = "error",
                                  .labels = {{"node_name", "n1"}, {"minor_number", "3"}},
                                  .summary = "GPU 3 of node n1 is lost",
                                  .since_ms = 5,
                                  .ended_ms = 7};
static const struct alert degraded = {
    .name = "Check", .severity = "warn", .labels = {{"name", "store"}}, .summary = "slow"};

static void it_is_known_by_its_name_and_values(void **state)
{
    struct alert other = lost;
    (void)state;
    assert_int_equal(alert_label_count(&lost), 2);
    assert_int_equal(alert_label_count(&degraded), 1);
    assert_true(alert_is_error(&lost));
    assert_false(alert_is_error(&degraded));
    other.severity = "warn";
    other.summary = "other words";
    other.since_ms = 9;
    assert_true(alert_fingerprint(&lost) == alert_fingerprint(&other));
    other.labels[1].value = "4";
    assert_false(alert_fingerprint(&lost) == alert_fingerprint(&other));
    other = lost;
    other.name = "NvidiaSmiDoubleEccError";
    assert_false(alert_fingerprint(&lost) == alert_fingerprint(&other));
    /* receivers keep it, so that it must stay what it is */
    assert_true(alert_fingerprint(&lost) == UINT64_C(0xe5ced04eee8550a8));
}

static void is_like(const struct alert *alert, const struct alert *wanted)
{
    const size_t labels = alert_label_count(wanted);
    assert_string_equal(alert->name, wanted->name);
    assert_string_equal(alert->severity, wanted->severity);
    assert_string_equal(alert->summary, wanted->summary);
    assert_int_equal(alert_label_count(alert), labels);
    for (size_t i = 0; i < labels; i++) {
        assert_string_equal(alert->labels[i].key, wanted->labels[i].key);
        assert_string_equal(alert->labels[i].value, wanted->labels[i].value);
        assert_ptr_not_equal(alert->labels[i].value, wanted->labels[i].value);
    }
}

static void a_copy_owns_its_strings(void **state)
{
    struct alert_copy copy = {0};
    cleanup_buf struct buf key = BUF_INIT;
    (void)state;
    alert_copy_set(&copy, &lost);
    is_like(&copy.alert, &lost);
    assert_int_equal(copy.alert.since_ms, 5);
    assert_int_equal(copy.alert.ended_ms, 7);
    alert_key_put(&lost, &key);
    assert_true(text_equal(copy.key, buf_as_text(&key)));
    struct alert milder = copy.alert; /* its strings are the copy's own */
    milder.severity = "warn";
    alert_copy_set(&copy, &milder);
    assert_string_equal(copy.alert.severity, "warn");
    assert_string_equal(copy.alert.summary, lost.summary);
    alert_copy_set(&copy, &degraded);
    is_like(&copy.alert, &degraded);
    alert_copy_release(&copy);
    assert_null(copy.strings);
}

static void bytes_hold_its_words(void **state)
{
    static const struct alert *const alerts[] = {&lost, &degraded};
    (void)state;
    for (size_t i = 0; i < COUNT_OF(alerts); i++) {
        cleanup_buf struct buf bytes = BUF_INIT;
        cleanup_arena struct arena arena;
        arena_init(&arena);
        alert_words_write(alerts[i], &bytes);
        struct alert read = {0};
        struct cursor cursor = cursor_of(buf_as_text(&bytes));
        assert_true(alert_words_read(&cursor, &arena, &read));
        assert_ptr_equal(cursor.at, cursor.end);
        is_like(&read, alerts[i]);
        for (size_t length = 0; length < bytes.length; length++) {
            cursor = cursor_of((struct text){bytes.at, length});
            assert_false(alert_words_read(&cursor, &arena, &(struct alert){0}));
        }
    }
}

static void more_labels_than_there_may_be_are_damage(void **state)
{
    cleanup_buf struct buf bytes = BUF_INIT;
    cleanup_arena struct arena arena;
    (void)state;
    arena_init(&arena);
    for (int i = 0; i < 3; i++)
        buf_put_text(&bytes, TEXT("x"));
    buf_put_u8(&bytes, ALERT_LABELS + 1);
    for (int i = 0; i < 2 * (ALERT_LABELS + 1); i++)
        buf_put_text(&bytes, TEXT("y"));
    struct cursor cursor = cursor_of(buf_as_text(&bytes));
    assert_false(alert_words_read(&cursor, &arena, &(struct alert){0}));
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(it_is_known_by_its_name_and_values),
    cmocka_unit_test(a_copy_owns_its_strings),
    cmocka_unit_test(bytes_hold_its_words),
    cmocka_unit_test(more_labels_than_there_may_be_are_damage),
};
UNIT_FILE(tests, NULL, NULL);
