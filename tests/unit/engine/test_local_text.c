/* The parts of the local engine that turn text into data and data into text. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka wants these first */
#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/json_writer.h"
#include "base/memory.h"
#include "engine/local/document.h"
#include "engine/local/oci.h"
#include "engine/local/pull.h"
#include "engine/local/reference.h"
#include "sys/file.h"
#include <cmocka.h>
#include <stdio.h>
#include <string.h>

/* --- references --- */

static void test_references(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        enum reference_kind kind;
        const char *host, *path, *tag, *skopeo;
    } cases[] = {
        {"busybox", REFERENCE_REGISTRY, "docker.io", "library/busybox", "latest",
         "docker://docker.io/library/busybox:latest"},
        {"openpai/standard:python_3.6-pytorch_1.2.0-gpu", REFERENCE_REGISTRY, "docker.io",
         "openpai/standard", "python_3.6-pytorch_1.2.0-gpu",
         "docker://docker.io/openpai/standard:python_3.6-pytorch_1.2.0-gpu"},
        {"localhost/a", REFERENCE_REGISTRY, "localhost", "a", "latest",
         "docker://localhost/a:latest"},
        {"registry.example.com:5000/a/b-c/d__e:1.0", REFERENCE_REGISTRY,
         "registry.example.com:5000", "a/b-c/d__e", "1.0",
         "docker://registry.example.com:5000/a/b-c/d__e:1.0"},
        {"docker://quay.io/x/y", REFERENCE_REGISTRY, "quay.io", "x/y", "latest",
         "docker://quay.io/x/y:latest"},
        {"docker.io/library/x:1", REFERENCE_REGISTRY, "docker.io", "library/x", "1",
         "docker://docker.io/library/x:1"},
        {"docker-archive:/a/b.tar", REFERENCE_DOCKER_ARCHIVE, "", "/a/b.tar", "",
         "docker-archive:/a/b.tar"},
        {"oci-archive:/a/b.tar", REFERENCE_OCI_ARCHIVE, "", "/a/b.tar", "", "oci-archive:/a/b.tar"},
        {"oci:/a/b", REFERENCE_OCI, "", "/a/b", "", "oci:/a/b"},
        {"oci:/a/b:tag", REFERENCE_OCI, "", "/a/b", "tag", "oci:/a/b:tag"},
        {"dir:/a b/c", REFERENCE_DIR, "", "/a b/c", "", "dir:/a b/c"},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct reference reference;
        struct err err = {0};
        char name[2048];
        if (reference_parse(cases[i].text, &reference, &err) < 0)
            fail_msg("%s: %s", cases[i].text, err.text);
        assert_int_equal(reference.kind, cases[i].kind);
        assert_string_equal(reference.host, cases[i].host);
        assert_string_equal(reference.path, cases[i].path);
        assert_string_equal(reference.tag, cases[i].tag);
        reference_skopeo(&reference, NULL, name, sizeof name);
        assert_string_equal(name, cases[i].skopeo);
    }
}

static void test_bad_references(void **state)
{
    (void)state;
    static const struct {
        const char *text, *words;
    } cases[] = {
        {"", "no name"},
        {"Busybox", "lower-case"},
        {"a//b", "lower-case"},
        {"-a", "lower-case"},
        {"a:", "tag"},
        {"a:-x", "tag"},
        {"a@sha256:12", "64 digits"},
        {"a b", "lower-case"},
        {"a;rm -rf", "lower-case"},
        {"ho$st.x/a", "host"},
        {"oci:relative", "absolute"},
        {"oci:/a:b:c", "must not hold"},
        {"dir:/a,b", "must not hold"},
        {"docker-archive:", "absolute"},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct reference reference;
        struct err err = {0};
        assert_int_equal(reference_parse(cases[i].text, &reference, &err), ERR_INVALID);
        if (!strstr(err.text, cases[i].words))
            fail_msg("%s: \"%s\" does not say \"%s\"", cases[i].text, err.text, cases[i].words);
    }
    char longest[REFERENCE_MAX + 1];
    memset(longest, 'a', sizeof longest - 1);
    longest[REFERENCE_MAX - 17] = 0;
    struct reference reference;
    assert_int_equal(reference_parse(longest, &reference, NULL), 0);
    memset(longest, 'a', REFERENCE_MAX - 16);
    longest[REFERENCE_MAX - 16] = 0;
    assert_int_equal(reference_parse(longest, &reference, NULL), ERR_INVALID);
}

static void test_reference_digest(void **state)
{
    (void)state;
    struct reference reference;
    char name[2048], text[200];
    snprintf(text, sizeof text, "a/b:1@sha256:%064d", 7);
    assert_int_equal(reference_parse(text, &reference, NULL), 0);
    assert_false(reference_is_moving(&reference));
    reference_skopeo(&reference, NULL, name, sizeof name);
    assert_non_null(strstr(name, "docker://docker.io/a/b@sha256:000"));
    reference_skopeo(&reference, "sha256:x", name, sizeof name);
    assert_string_equal(name, "docker://docker.io/a/b@sha256:x");
    assert_int_equal(reference_parse("a/b", &reference, NULL), 0);
    assert_true(reference_is_moving(&reference));
    assert_int_equal(reference_parse("a/b:2", &reference, NULL), 0);
    assert_false(reference_is_moving(&reference));
}

static void test_loopback(void **state)
{
    (void)state;
    static const char *const yes[] = {"localhost", "localhost:5000", "127.0.0.1", "127.9.9.9:1",
                                      "[::1]:5000"};
    static const char *const no[] = {"docker.io",     "127.0.0.1.example.com",
                                     "10.0.0.1:5000", "localhost.example.com",
                                     "[::2]",         "1270.0.0.1",
                                     "127.0.0"};
    for (size_t i = 0; i < COUNT_OF(yes); i++)
        assert_true(reference_is_loopback(yes[i]));
    for (size_t i = 0; i < COUNT_OF(no); i++)
        assert_false(reference_is_loopback(no[i]));
}

/* --- what programs say --- */

static void test_complaints(void **state)
{
    (void)state;
    static const struct {
        const char *text, *words, *reason;
        bool is_final;
    } cases[] = {
        {"time=\"2026-01-01T00:00:00Z\" level=fatal msg=\"initializing source docker://x: reading "
         "manifest v9 in x: manifest unknown\"\n",
         "initializing source docker://x: reading manifest v9 in x: manifest unknown",
         "ImageNotFound", true},
        {"some progress\ntime=\"t\" level=fatal msg=\"pinging: Get \\\"http://x/v2/\\\": dial tcp: "
         "connect: connection refused\"",
         "pinging: Get \"http://x/v2/\": dial tcp: connect: connection refused",
         "RegistryUnavailable", false},
        {"msg=\"unauthorized: authentication required\"", "unauthorized: authentication required",
         "ImagePullUnauthorized", true},
        {"write /x: no space left on device", "write /x: no space left on device", "DiskFull",
         true},
        {"something new", "something new", "ImagePullError", false},
        {"", "", "ImagePullError", false},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        char words[512];
        bool is_final;
        pull_complaint(cases[i].text, words, sizeof words);
        assert_string_equal(words, cases[i].words);
        assert_string_equal(pull_reason(words, "", &is_final), cases[i].reason);
        assert_int_equal(is_final, cases[i].is_final);
    }
    /* a name is the user's: it says nothing about what went wrong */
    bool is_final;
    const char *refused = "pinging registry for team/denied: connection refused";
    assert_string_equal(pull_reason(refused, "", &is_final), "ImagePullUnauthorized");
    assert_string_equal(pull_reason(refused, "team/denied", &is_final), "RegistryUnavailable");
    assert_false(is_final);
    char small[8];
    pull_complaint("msg=\"a long complaint\"", small, sizeof small);
    assert_string_equal(small, "a long ");
}

static void test_documents(void **state)
{
    (void)state;
    struct arena arena;
    size_t count;
    arena_init(&arena);
    assert_null(document_read(TEXT("{\"a\":"), false, &arena));
    const struct doc *doc = document_read(
        TEXT("{\"s\":\"x\",\"n\":7,\"b\":true,\"l\":[\"p\",1,\"q\"]}"), false, &arena);
    assert_string_equal(document_string(doc, "s"), "x");
    assert_string_equal(document_string(doc, "n"), "");
    assert_string_equal(document_string(doc, "absent"), "");
    assert_int_equal(document_int(doc, "n"), 7);
    assert_int_equal(document_int(doc, "s"), 0);
    assert_true(document_bool(doc, "b"));
    assert_false(document_bool(doc, "n"));
    const char *const *list = document_strings(doc, "l", &arena, &count);
    assert_int_equal(count, 2);
    assert_string_equal(list[1], "q");
    document_strings(doc, "absent", &arena, &count);
    assert_int_equal(count, 0);
    assert_string_equal(document_string(NULL, "s"), "");
    arena_release(&arena);
}

/* --- OCI configuration --- */

static void golden_compare(const char *name, const struct buf *text)
{
    char path[512];
    struct buf wanted = BUF_INIT;
    struct err err = {0};
    snprintf(path, sizeof path, "%s/%s", GOLDEN_DIRECTORY, name);
    if (getenv("SKEP_GOLDEN_UPDATE"))
        assert_int_equal(file_write(path, buf_as_text(text), 0644, &err), 0);
    assert_int_equal(file_read(path, 1 << 20, &wanted, &err), 0);
    if (!text_equal(buf_as_text(&wanted), buf_as_text(text)))
        fail_msg("%s differs:\n%s", name, buf_cstr(text));
    buf_release(&wanted);
}

static void test_config_golden(void **state)
{
    (void)state;
    const char *argv[] = {"/skep/init"}, *env[] = {"PATH=/bin", "A=\"b\"\n"};
    const char *options[] = {"ro", "nosuid", "rbind"}, *args[] = {"hook", "x"};
    const uint32_t groups[] = {4, 27};
    const struct oci_mount mounts[] = {
        {.source = "/data/17/skep", .target = "/skep", .is_read_only = true},
        {.source = "/srv/data", .target = "/mnt/data"},
        {.source = "/usr/lib/x", .target = "/usr/lib/x", .options = options, .option_count = 3},
    };
    const struct oci_device devices[] = {
        {.path = "/dev/nvidia0", .type = 'c', .major = 195, .mode = 0666, .access = "rw"}};
    const struct oci_hook hooks[] = {{.kind = "createContainer",
                                      .path = "/usr/bin/hook",
                                      .args = args,
                                      .arg_count = 2,
                                      .timeout_s = 10}};
    const struct oci_rlimit limits[] = {{"RLIMIT_NOFILE", 1024, 20000},
                                        {"RLIMIT_MEMLOCK", UINT64_MAX, UINT64_MAX}};
    const char *annotations[] = {"skep.job", "alice~train"};
    struct oci_config config = {.rootfs = "/data/17/merged",
                                .rights = 1u << RIGHT_SYS_ADMIN | 1u << RIGHT_LOCK_MEMORY |
                                          1u << RIGHT_NEW_PRIVILEGES,
                                .argv = argv,
                                .argv_count = 1,
                                .env = env,
                                .env_count = 2,
                                .cwd = "/work",
                                .uid = 1000,
                                .gid = 100,
                                .groups = groups,
                                .group_count = 2,
                                .cgroup_path = "/skep/1a2b/17",
                                .is_cgroup_v2 = true,
                                .has_swap = true,
                                .cpu = 4,
                                .memory_mib = 8192,
                                .shm_mib = 512,
                                .pids_max = 32768,
                                .mounts = mounts,
                                .mount_count = COUNT_OF(mounts),
                                .devices = devices,
                                .device_count = 1,
                                .hooks = hooks,
                                .hook_count = 1,
                                .rlimits = limits,
                                .rlimit_count = 2,
                                .has_oom_score = true,
                                .annotations = annotations,
                                .annotation_count = 1,
                                .seccomp_bpf = "AAAA"};
    struct buf text = BUF_INIT;
    oci_config_write(&config, &text);
    buf_char(&text, '\n');
    golden_compare("oci-full.json", &text);
    buf_clear(&text);
    config = (struct oci_config){.rootfs = "r",
                                 .argv = argv,
                                 .argv_count = 1,
                                 .env = env,
                                 .env_count = 1,
                                 .cwd = "/",
                                 .cgroup_path = "/skep/x",
                                 .pids_max = 10,
                                 .seccomp_bpf = "AAAA"};
    oci_config_write(&config, &text);
    buf_char(&text, '\n');
    golden_compare("oci-least.json", &text);
    buf_release(&text);
}

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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_references),       cmocka_unit_test(test_bad_references),
        cmocka_unit_test(test_reference_digest), cmocka_unit_test(test_loopback),
        cmocka_unit_test(test_complaints),       cmocka_unit_test(test_documents),
        cmocka_unit_test(test_config_golden),    cmocka_unit_test(test_seccomp),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
