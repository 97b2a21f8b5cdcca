/* The seccomp profile of containers. */
#include "unit.h"

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/json_writer.h"
#include "base/memory.h"
#include "engine/local/document.h"
#include "engine/local/oci.h"

static void test_seccomp(void **state)
{
    (void)state;
    struct buf text = BUF_INIT, bpf = BUF_INIT;
    struct json_writer json;
    struct arena arena;
    struct err err = {0};
    arena_init(&arena);
    json_init(&json, &text);
    json_object(&json);
    oci_seccomp_write(&json, false);
    json_object_end(&json);
    const struct doc *doc = document_read(buf_as_text(&text), false, &arena);
    const struct doc *profile = doc_get(doc, "seccomp");
    assert_string_equal(document_string(profile, "defaultAction"), "SCMP_ACT_ERRNO");
    const struct doc *rules = doc_get(profile, "syscalls");
    size_t count;
    const char *const *names = document_strings(rules->as.list.items[0], "names", &arena, &count);
    assert_true(count > 350);
    static const char *const never[] = {
        "mount",       "umount2",     "unshare",     "setns",
        "bpf",         "kexec_load",  "init_module", "reboot",
        "swapon",      "keyctl",      "add_key",     "perf_event_open",
        "userfaultfd", "clone",       "clone3",      "open_by_handle_at",
        "pivot_root",  "settimeofday"};
    for (size_t i = 0; i < count; i++)
        for (size_t j = 0; j < COUNT_OF(never); j++)
            assert_string_not_equal(names[i], never[j]);
    assert_int_equal(oci_seccomp_bpf(&bpf, &err), 0);
    assert_true(bpf.length > 1000 && bpf.length < 65536);
    assert_int_equal(bpf.length % 4, 0);
    buf_release(&text);
    buf_release(&bpf);
    arena_release(&arena);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_seccomp),
};
UNIT_FILE(tests, NULL, NULL);
