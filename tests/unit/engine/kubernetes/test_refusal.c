/* The table "What the API server refuses" of docs/rfc/0017-kubernetes-engine.md, row by row. */
#include "unit.h"

#include "base/memory.h"
#include "engine/kubernetes/pod_object.h"
#include "engine/kubernetes/refusal.h"
#include "scratch.h"

#define STATUS(message, more)                                                                      \
    "{\"kind\":\"Status\",\"status\":\"Failure\",\"message\":\"" message "\"" more "}"
#define FORBIDDEN(message)                                                                         \
    STATUS("pods \\\"one-7\\\" is forbidden: " message, ",\"reason\":\"Forbidden\"")

static void who_must_mend_it_is_told_by_the_answer(void **state)
{
    (void)state;
    static const struct {
        int status;
        const char *body, *reason; /* NULL: the job's own */
    } rows[] = {
        {403, FORBIDDEN("exceeded quota: q, requested: pods=1, used: pods=2, limited: pods=2"),
         KUBE_QUOTA},
        {403, FORBIDDEN("failed quota: q: must specify limits.ephemeral-storage"), KUBE_POLICY},
        {403, FORBIDDEN("violates PodSecurity \\\"restricted:latest\\\": host namespaces"),
         KUBE_POLICY},
        {403, FORBIDDEN("maximum cpu usage per Container is 2, but limit is 4"), KUBE_POLICY},
        {403, FORBIDDEN("error looking up service account ns/x: serviceaccount not found"),
         KUBE_POLICY},
        {403, FORBIDDEN("no PriorityClass with name high was found"), KUBE_POLICY},
        {403, FORBIDDEN("pod rejected: RuntimeClass \\\"kata\\\" not found"), KUBE_POLICY},
        {403,
         STATUS("unable to create new content in namespace ns because it is being terminated",
                ",\"reason\":\"Forbidden\",\"details\":{\"name\":\"one-7\",\"kind\":\"pods\","
                "\"causes\":[{\"reason\":\"NamespaceTerminating\",\"field\":"
                "\"metadata.namespace\"}]}"),
         KUBE_SPACE},
        {404,
         STATUS("namespaces \\\"ns\\\" not found",
                ",\"reason\":\"NotFound\",\"details\":{\"name\":\"ns\",\"kind\":\"namespaces\"}"),
         KUBE_SPACE},
        {404,
         STATUS("the server could not find the requested resource",
                ",\"reason\":\"NotFound\",\"details\":{}"),
         KUBE_API},
        {404, "404 page not found", KUBE_API},
        {405, STATUS("", ",\"reason\":\"MethodNotAllowed\""), KUBE_API},
        /* with the status that the webhook chose; 400 when it chose none */
        {400, STATUS("admission webhook \\\"a.b\\\" denied the request: no such team", ""),
         KUBE_POLICY},
        {422, STATUS("admission webhook \\\"a.b\\\" denied the request without explanation", ""),
         KUBE_POLICY},
        {422,
         STATUS("pods \\\"one-7\\\" is forbidden: ValidatingAdmissionPolicy 'p' with binding 'b' "
                "denied request: no hostNetwork",
                ",\"reason\":\"Invalid\""),
         KUBE_POLICY},
        {400,
         STATUS("Pod in version \\\"v1\\\" cannot be handled as a Pod: strict decoding error: "
                "unknown field \\\"spec.x\\\"",
                ",\"reason\":\"BadRequest\""),
         KUBE_POLICY},
        /* what was asked for is itself wrong */
        {400, STATUS("the object provided is unrecognized", ",\"reason\":\"BadRequest\""), NULL},
        {422, STATUS("Pod \\\"one-7\\\" is invalid: spec.x: Required value", ""), NULL},
        {413, STATUS("Request entity too large: limit is 3145728", ""), NULL},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        const char *reason = refusal_read(rows[i].status, text_of(rows[i].body), false, &arena);
        if (!rows[i].reason)
            assert_null(reason);
        else
            assert_string_equal(reason ? reason : "", rows[i].reason);
        assert_true(!reason || refusal_is_operators(reason));
    }
    assert_string_equal(refusal_read(403,
                                     TEXT(STATUS("pods is forbidden: User \\\"u\\\" cannot create "
                                                 "resource \\\"pods\\\"",
                                                 ",\"reason\":\"Forbidden\"")),
                                     true, &arena),
                        KUBE_RIGHT);
}

static void other_words_are_no_operators(void **state)
{
    (void)state;
    assert_true(refusal_is_operators(KUBE_USERS));
    assert_true(refusal_is_operators(POD_INIT_FAILED));
    assert_false(refusal_is_operators("ErrImagePull"));
    assert_false(refusal_is_operators(POD_UNPREPARED));
    assert_false(refusal_is_operators(NULL));
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(who_must_mend_it_is_told_by_the_answer),
    cmocka_unit_test(other_words_are_no_operators),
};

UNIT_FILE(tests, setup, teardown);
