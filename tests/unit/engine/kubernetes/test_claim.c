#include "unit.h"

#include <string.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/memory.h"
#include "doc/doc.h"
#include "engine/kubernetes/claim.h"
#include "engine/kubernetes/devices.h"
#include "engine/kubernetes/object.h"
#include "scratch.h"

static const struct pod_settings settings = {
    .instance = "skep", .space = "jobs", .device_class = "gpus"};

static const struct doc *first(const struct doc *doc, const char *path)
{
    const struct doc *list = object_at(doc, path);
    assert_int_equal(list->kind, DOC_LIST);
    return list->as.list.items[0];
}

static void it_has_what_skep_chose(void **state)
{
    (void)state;
    cleanup_buf struct buf made = BUF_INIT, status = BUF_INIT;
    struct device_pick pick;
    assert_true(device_pick_read("gpu.test 1=pool/gpu-1 3=pool/gpu-3", &arena, &pick));
    const struct claim_of of = {{42}, "n7", "pod-uid", &pick};
    claim_write(&of, &settings, &made);
    const struct doc *claim = json(buf_cstr(&made));
    assert_string_equal(object_string(claim, "apiVersion"), "resource.k8s.io/v1");
    assert_string_equal(object_string(claim, "metadata.name"), "skep-42");
    assert_string_equal(object_string(claim, "metadata.namespace"), "jobs");
    assert_int_equal(object_attempt(claim, "skep").v, 42);
    const struct doc *owner = first(claim, "metadata.ownerReferences");
    assert_string_equal(object_string(owner, "kind"), "Pod");
    assert_string_equal(object_string(owner, "name"), "skep-42");
    assert_string_equal(object_string(owner, "uid"), "pod-uid");
    const struct doc *request = first(claim, "spec.devices.requests");
    assert_string_equal(object_string(request, "exactly.deviceClassName"), "gpus");
    assert_int_equal(doc_get_int(object_at(request, "exactly"), "count", 0), 2);

    claim_status_write(&of, &settings,
                       json("{\"metadata\":{\"uid\":\"u\",\"resourceVersion\":\"7\"}}"), &status);
    claim = json(buf_cstr(&status));
    assert_string_equal(object_string(claim, "metadata.uid"), "u");
    assert_string_equal(object_string(claim, "metadata.resourceVersion"), "7");
    const struct doc *results = object_at(claim, "status.allocation.devices.results");
    assert_int_equal(doc_count(results), 2);
    assert_string_equal(object_string(results->as.list.items[1], "driver"), "gpu.test");
    assert_string_equal(object_string(results->as.list.items[1], "pool"), "pool");
    assert_string_equal(object_string(results->as.list.items[1], "device"), "gpu-3");
    assert_string_equal(object_string(results->as.list.items[1], "request"),
                        object_string(request, "name"));
    const struct doc *term = first(claim, "status.allocation.nodeSelector.nodeSelectorTerms");
    const struct doc *field = first(term, "matchFields");
    assert_string_equal(object_string(field, "key"), "metadata.name");
    assert_string_equal(first(field, "values")->as.string.at, "n7");
    const struct doc *consumer = first(claim, "status.reservedFor");
    assert_string_equal(object_string(consumer, "resource"), "pods");
    assert_string_equal(object_string(consumer, "name"), "skep-42");
    assert_string_equal(object_string(consumer, "uid"), "pod-uid");
}

#define OWN                                                                                        \
    "\"metadata\":{\"labels\":{\"skep.internal/instance\":\"skep\",\"skep.internal/"               \
    "attempt\":\"42\"},\"ownerReferences\":[{\"uid\":\"other\"},{\"uid\":\"pod-uid\"}]}"
#define RESERVED "\"reservedFor\":[{\"resource\":\"pods\",\"uid\":\"pod-uid\"}]"

static void a_claim_is_judged_by_whose_it_is(void **state)
{
    (void)state;
    static const struct {
        const char *claim;
        enum claim_sight sight;
    } cases[] = {
        {"{" OWN "}", CLAIM_BARE},
        {"{" OWN ",\"status\":{\"allocation\":{}}}", CLAIM_BARE},
        {"{" OWN ",\"status\":{" RESERVED "}}", CLAIM_BARE},
        {"{" OWN ",\"status\":{\"allocation\":{}," RESERVED "}}", CLAIM_READY},
        {"{" OWN ",\"status\":{\"allocation\":{},\"reservedFor\":[{\"uid\":\"other\"}]}}",
         CLAIM_FOREIGN},
        {"{" OWN ",\"status\":{\"reservedFor\":[{\"uid\":\"pod-uid\"},{\"uid\":\"other\"}]}}",
         CLAIM_FOREIGN},
        {"{\"metadata\":{\"ownerReferences\":[{\"uid\":\"pod-uid\"}]}}", CLAIM_FOREIGN},
        {"{\"metadata\":{\"labels\":{\"skep.internal/instance\":\"skep\",\"skep.internal/"
         "attempt\":\"42\"}}}",
         CLAIM_FOREIGN},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++)
        assert_int_equal(
            claim_read(json(cases[i].claim), "skep", (struct attempt_id){42}, "pod-uid"),
            cases[i].sight);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(it_has_what_skep_chose),
    cmocka_unit_test(a_claim_is_judged_by_whose_it_is),
};

UNIT_FILE(tests, setup, teardown);
