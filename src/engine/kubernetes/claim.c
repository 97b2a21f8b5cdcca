#include "engine/kubernetes/claim.h"

#include <stdio.h>
#include <string.h>

#include "base/json_writer.h"
#include "doc/doc.h"
#include "engine/kubernetes/devices.h"
#include "engine/kubernetes/object.h"

static void kind_write(struct json_writer *json)
{
    json_key_string(json, "apiVersion", "resource.k8s.io/v1");
    json_key_string(json, "kind", "ResourceClaim");
}

static void owner_write(struct json_writer *json, const char *pod, const char *uid)
{
    json_key(json, "ownerReferences");
    json_array(json);
    json_object(json);
    json_key_string(json, "apiVersion", "v1");
    json_key_string(json, "kind", "Pod");
    json_key_string(json, "name", pod);
    json_key_string(json, "uid", uid);
    json_key_bool(json, "controller", true);
    json_object_end(json);
    json_array_end(json);
}

void claim_write(const struct claim_of *of, const struct pod_settings *settings, struct buf *out)
{
    char name[OBJECT_NAME_SIZE], number[24];
    struct json_writer json;
    object_name(name, settings->instance, of->attempt);
    snprintf(number, sizeof number, "%llu", (unsigned long long)of->attempt.v);
    json_init(&json, out);
    json_object(&json);
    kind_write(&json);
    json_key(&json, "metadata");
    json_object(&json);
    json_key_string(&json, "name", name);
    json_key_string(&json, "namespace", settings->space);
    json_key(&json, "labels");
    json_object(&json);
    json_key_string(&json, "app.kubernetes.io/managed-by", "skep");
    json_key_string(&json, OBJECT_LABEL_INSTANCE, settings->instance);
    json_key_string(&json, OBJECT_LABEL_ATTEMPT, number);
    json_object_end(&json);
    owner_write(&json, name, of->pod_uid);
    json_object_end(&json);
    json_key(&json, "spec");
    json_object(&json);
    json_key(&json, "devices");
    json_object(&json);
    json_key(&json, "requests");
    json_array(&json);
    json_object(&json);
    json_key_string(&json, "name", CLAIM_REQUEST);
    json_key(&json, "exactly");
    json_object(&json);
    json_key_string(&json, "deviceClassName", settings->device_class);
    json_key_string(&json, "allocationMode", "ExactCount");
    json_key_int(&json, "count", (int64_t)of->pick->count);
    json_object_end(&json);
    json_object_end(&json);
    json_array_end(&json);
    json_object_end(&json);
    json_object_end(&json);
    json_object_end(&json);
}

static void results_write(struct json_writer *json, const struct device_pick *pick)
{
    json_key(json, "devices");
    json_object(json);
    json_key(json, "results");
    json_array(json);
    for (size_t i = 0; i < pick->count; i++) {
        json_object(json);
        json_key_string(json, "request", CLAIM_REQUEST);
        json_key_string(json, "driver", pick->driver);
        json_key_string(json, "pool", pick->items[i].pool);
        json_key_string(json, "device", pick->items[i].name);
        json_object_end(json);
    }
    json_array_end(json);
    json_object_end(json);
}

static void node_write(struct json_writer *json, const char *node)
{
    json_key(json, "nodeSelector");
    json_object(json);
    json_key(json, "nodeSelectorTerms");
    json_array(json);
    json_object(json);
    json_key(json, "matchFields");
    json_array(json);
    json_object(json);
    json_key_string(json, "key", "metadata.name");
    json_key_string(json, "operator", "In");
    json_key_strings(json, "values", &node, 1);
    json_object_end(json);
    json_array_end(json);
    json_object_end(json);
    json_array_end(json);
    json_object_end(json);
}

void claim_status_write(const struct claim_of *of, const struct pod_settings *settings,
                        const struct doc *claim, struct buf *out)
{
    char name[OBJECT_NAME_SIZE];
    struct json_writer json;
    object_name(name, settings->instance, of->attempt);
    json_init(&json, out);
    json_object(&json);
    kind_write(&json);
    json_key(&json, "metadata");
    json_object(&json);
    json_key_string(&json, "name", name);
    json_key_string(&json, "namespace", settings->space);
    json_key_string(&json, "uid", object_string(claim, "metadata.uid"));
    json_key_string(&json, "resourceVersion", object_string(claim, "metadata.resourceVersion"));
    json_object_end(&json);
    json_key(&json, "status");
    json_object(&json);
    json_key(&json, "allocation");
    json_object(&json);
    results_write(&json, of->pick);
    node_write(&json, of->node);
    json_object_end(&json);
    json_key(&json, "reservedFor");
    json_array(&json);
    json_object(&json);
    json_key_string(&json, "resource", "pods");
    json_key_string(&json, "name", name);
    json_key_string(&json, "uid", of->pod_uid);
    json_object_end(&json);
    json_array_end(&json);
    json_object_end(&json);
    json_object_end(&json);
}

enum claim_sight claim_read(const struct doc *claim, const char *instance,
                            struct attempt_id attempt, const char *pod_uid)
{
    const struct doc *owners = doc_get_list(doc_get(claim, "metadata"), "ownerReferences");
    const struct doc *pods = doc_get_list(doc_get(claim, "status"), "reservedFor");
    bool is_owned = false;
    for (size_t i = 0; i < owners->as.list.count; i++)
        is_owned = is_owned || strcmp(object_string(owners->as.list.items[i], "uid"), pod_uid) == 0;
    if (object_attempt(claim, instance).v != attempt.v || !is_owned)
        return CLAIM_FOREIGN;
    if (pods->as.list.count == 0)
        return CLAIM_BARE;
    if (pods->as.list.count > 1 ||
        strcmp(object_string(pods->as.list.items[0], "uid"), pod_uid) != 0)
        return CLAIM_FOREIGN;
    return object_at(claim, "status.allocation") ? CLAIM_READY : CLAIM_BARE;
}
