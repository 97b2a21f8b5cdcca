#include "cli/kube_daemons.h"

#include <string.h>

#include "base/text.h"
#include "cli/print.h"
#include "kube/quantity.h"

enum { MILLI = 1000 };

static bool is_word(const json_t *object, const char *key, const char *word)
{
    const char *text = field_text(object, key);
    return text && strcmp(text, word) == 0;
}

static bool tolerates(const json_t *spec, const char *taint)
{
    const json_t *toleration;
    size_t i;
    json_array_foreach (json_object_get(spec, "tolerations"), i, toleration) {
        const char *key = field_text(toleration, "key"), *effect = field_text(toleration, "effect");
        const bool is_of_effect = !effect || !effect[0] || strcmp(effect, "NoSchedule") == 0;
        const bool is_of_key =
            key && key[0] ? strcmp(key, taint) == 0 : is_word(toleration, "operator", "Exists");
        if (is_of_effect && is_of_key)
            return true;
    }
    return false;
}

static bool selects(const json_t *spec, const json_t *labels)
{
    const char *key;
    const json_t *value;
    json_object_foreach ((json_t *)json_object_get(spec, "nodeSelector"), key, value)
        if (!json_is_string(value) || !is_word(labels, key, json_string_value(value)))
            return false;
    return true;
}

/* In thousandths. What is limited and not requested is requested as far as it is limited. */
static int64_t request_of(const json_t *container, const char *resource)
{
    const json_t *resources = json_object_get(container, "resources");
    const char *amount = field_text(json_object_get(resources, "requests"), resource);
    int64_t milli = 0;
    if (!amount)
        amount = field_text(json_object_get(resources, "limits"), resource);
    return amount && quantity_read(text_of(amount), &milli) ? milli : 0;
}

/* Containers run together, and so do those of the init containers that go on beside them; the
 * others run one after another, before. */
static int64_t pod_request(const json_t *spec, const char *resource)
{
    int64_t sum = 0, most = 0;
    const json_t *container;
    size_t i;
    json_array_foreach (json_object_get(spec, "initContainers"), i, container) {
        const int64_t own = request_of(container, resource);
        if (is_word(container, "restartPolicy", "Always"))
            sum += own;
        else if (sum + own > most)
            most = sum + own;
    }
    json_array_foreach (json_object_get(spec, "containers"), i, container)
        sum += request_of(container, resource);
    return sum > most ? sum : most;
}

struct kube_daemons kube_daemons_of(const json_t *sets, const json_t *labels, const char *taint)
{
    struct kube_daemons daemons = {0};
    const json_t *set;
    size_t i;
    json_array_foreach (sets, i, set) {
        const json_t *spec =
            json_object_get(json_object_get(json_object_get(set, "spec"), "template"), "spec");
        const json_t *wanted =
            json_object_get(json_object_get(set, "status"), "desiredNumberScheduled");
        if (json_integer_value(wanted) == 0 || (taint && !tolerates(spec, taint)) ||
            !selects(spec, labels))
            continue;
        daemons.cpu_milli += pod_request(spec, "cpu");
        daemons.memory += pod_request(spec, "memory") / MILLI;
        daemons.pods++;
    }
    return daemons;
}
