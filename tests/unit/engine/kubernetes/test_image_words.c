/* What is said of an image and what is only its name. */
#include "unit.h"

#include <string.h>

#include "base/memory.h"
#include "engine/kubernetes/image_words.h"
#include "scratch.h"

static void names_are_no_words(void **state)
{
    (void)state;
    static const struct {
        const char *image, *message;
    } cases[] = {
        /* kubelet with containerd */
        {"acme/denied-access:1",
         "failed to pull and unpack image \"docker.io/acme/denied-access:1\": failed to resolve "
         "reference \"docker.io/acme/denied-access:1\": failed to do request: Head "
         "\"https://registry-1.docker.io/v2/acme/denied-access/manifests/1\": dial tcp: i/o "
         "timeout"},
        {"acme/denied:1", "docker.io/acme/denied:1: i/o timeout"},
        {"acme/denied:1", "Back-off pulling image \"acme/denied:1\""},
        {"acme/denied@sha256:00", "image \"acme/denied@sha256:00\": i/o timeout"},
        {"acme/denied:1@sha256:00", "\"docker.io/acme/denied@sha256:00\": i/o timeout"},
        {"denied:1", "image \"docker.io/library/denied:1\", from denied:1."},
        {"denied", "Back-off pulling image \"denied\""},
        {"denied", "desc = \\\"denied\\\", 'denied', `denied`: EOF"},
        {"docker.io/library/access-denied", "access-denied: EOF"},
        {"acme/x:Denied-1", "reading manifest Denied-1 in docker.io/acme/x: EOF"},
        {"acme/x:1.0-denied", "reading manifest 1.0-denied in docker.io/acme/x: EOF"},
        {"denied.example.com:5000/x", "dial tcp: lookup denied.example.com on 10.0.0.1:53: EOF"},
        {"x", "lookup auth.denied.lab: no such host"},
        {"acme/denied:1",
         "fetch oauth token: Get \"https://auth.x/token?scope=repository%3Aacme%2Fdenied%3Apull\""},
        {"acme/denied:1", "repository%3Aacme%2Fdenied%3Apull: EOF"},
        {"", "/var/lib/denied: EOF"},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        const char *words = image_words(cases[i].message, cases[i].image, &arena);
        assert_int_equal(strlen(words), strlen(cases[i].message));
        assert_null(strstr(words, "denied"));
    }
}

static void words_stay(void **state)
{
    (void)state;
    static const struct {
        const char *image, *message;
    } cases[] = {
        {"acme/denied:1", "docker.io/acme/denied:1: pull access Denied."},
        {"denied:1", "DENIED: requested access to the resource is granted"},
        {"access:denied", "pull access denied"},
        {"x", "{\"errors\":[{\"code\":\"DENIED\"}]}"},
        {"x", "AccessDeniedException: no"},
        {"x", "reason=denied"},
        {"", "access is denied"},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++)
        assert_non_null(strstr(image_words(cases[i].message, cases[i].image, &arena), "denied"));
    assert_string_equal(image_words("", "x", &arena), "");
    assert_string_equal(image_words("A/B: Not found: x-1", "acme/x-1", &arena),
                        "___: not found: ___");
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(names_are_no_words),
    cmocka_unit_test(words_stay),
};

UNIT_FILE(tests, setup, teardown);
