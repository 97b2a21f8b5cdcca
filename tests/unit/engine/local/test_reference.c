/* Names of images: what they mean, which are refused, which may be fetched without TLS. */
#include "unit.h"

#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/memory.h"
#include "engine/local/reference.h"

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

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_references),
    cmocka_unit_test(test_bad_references),
    cmocka_unit_test(test_reference_digest),
    cmocka_unit_test(test_loopback),
};
UNIT_FILE(tests, NULL, NULL);
