/* How a server's certificate is known again. */
#include "unit.h"

#include "base/memory.h"
#include "cli/fingerprint.h"

/* openssl x509 -pubkey -noout | openssl pkey -pubin -outform der | openssl dgst -sha256 -binary |
 * base64 says the same of it */
static const char PEM[] = "-----BEGIN CERTIFICATE-----\n"
                          "MIIBhjCCASugAwIBAgIQasF0RV1fi1jVwcdMzNwZATAKBggqhkjOPQQDAjAQMQ4w\n"
                          "DAYDVQQDEwVza2VwZDAeFw0yNjExMjEwNjI5MTFaFw0zNjExMTkwNjI5MTFaMBAx\n"
                          "DjAMBgNVBAMTBXNrZXBkMFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAENkasUvRp\n"
                          "f4MnUOiJrM2gEEiHZ0WQiJ4oOxcRq4HemZUan88lPKYOkj2OIHBcOX8xWM1xfs6l\n"
                          "D3vUHf3Ak1aZLqNnMGUwDAYDVR0TAQH/BAIwADAOBgNVHQ8BAf8EBAMCB4AwEwYD\n"
                          "VR0lBAwwCgYIKwYBBQUHAwEwMAYDVR0RBCkwJ4ICdm2CCWxvY2FsaG9zdIcEfwAA\n"
                          "AYcQAAAAAAAAAAAAAAAAAAAAATAKBggqhkjOPQQDAgNJADBGAiEA02W+K4if4zCu\n"
                          "/C5qpV1O3J9kw8puFE4dDoPJehGQ1UcCIQDwITZnWwVKrY0MtHB9+ovVWdJhuEbT\n"
                          "Lzo9UjekGKJ5cw==\n"
                          "-----END CERTIFICATE-----\n";

static void test_of_a_certificate(void **state)
{
    (void)state;
    char *fingerprint = fingerprint_of(PEM);
    assert_string_equal(fingerprint, "sha256//eWknVyG0POcuu4QR0qNOcLRD6yfEmIMEMGZNqL3doxc=");
    assert_true(fingerprint_is_whole(fingerprint));
    mem_free(fingerprint);
}

static void test_of_nothing(void **state)
{
    (void)state;
    assert_null(fingerprint_of(NULL));
    assert_null(fingerprint_of(""));
    assert_null(fingerprint_of("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"));
    assert_false(fingerprint_is_whole(""));
    assert_false(fingerprint_is_whole("sha256//short"));
    assert_false(fingerprint_is_whole("sha512//AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="));
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_of_a_certificate),
    cmocka_unit_test(test_of_nothing),
};
UNIT_FILE(tests, NULL, NULL);
