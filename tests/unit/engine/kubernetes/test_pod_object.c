/* The table "life of a pod" of docs/rfc/0017-kubernetes-engine.md, row by row. */
#include "unit.h"

#include <string.h>

#include "base/arena.h"
#include "base/memory.h"
#include "doc/doc.h"
#include "engine/kubernetes/pod_object.h"
#include "scratch.h"

/* `deleted`: a deletionTimestamp; `spec` and `status` without their braces. */
static struct pod_object pod_with(const char *spec, const char *status, bool is_deleting,
                                  enum pod_sight sight, bool is_ours)
{
    cleanup_problems struct problems problems;
    struct pod_object out;
    problems_init(&problems, &arena);
    const char *text =
        arena_format(&arena,
                     "{\"metadata\":{\"name\":\"skep-7\",\"uid\":\"u-1\",\"resourceVersion\":"
                     "\"99\"%s},\"spec\":{\"nodeName\":\"n1\"%s%s},"
                     "\"status\":{%s}}",
                     is_deleting ? ",\"deletionTimestamp\":\"2026-11-22T10:00:00Z\"" : "",
                     spec[0] ? "," : "", spec, status);
    const struct doc *doc = doc_parse(text_of(text), DOC_JSON, &arena, &problems);
    assert_non_null(doc);
    pod_object_read(doc, sight, is_ours, &arena, &out);
    assert_string_equal(out.name, "skep-7");
    return out;
}

static struct pod_object pod(const char *status, bool is_deleting, enum pod_sight sight,
                             bool is_ours)
{
    return pod_with("", status, is_deleting, sight, is_ours);
}

static struct pod_object seen(const char *status)
{
    return pod(status, false, POD_SEEN, false);
}

#define TASK(state)       "\"containerStatuses\":[{\"name\":\"task\",\"state\":{" state "}}]"
#define INIT(state)       "\"initContainerStatuses\":[{\"name\":\"skep\",\"state\":{" state "}}]"
#define ENDED(code, more) "\"terminated\":{\"exitCode\":" #code more "}"
#define WAITING(reason)   "\"waiting\":{\"reason\":\"" reason "\"}"
#define RUNNING           "\"running\":{\"startedAt\":\"2026-11-22T10:00:00Z\"}"
#define TARGET(reason)                                                                             \
    "\"conditions\":[{\"type\":\"Ready\",\"status\":\"False\"},{\"type\":\"DisruptionTarget\","    \
    "\"status\":\"True\",\"reason\":\"" reason "\","                                               \
    "\"message\":\"why\"}]"

static void a_pod_waits_runs_and_ends(void **state)
{
    (void)state;
    struct pod_object out = seen("\"phase\":\"Pending\"");
    assert_int_equal(out.stage, POD_WAITING);
    assert_int_equal(out.patience, POD_WAIT);
    assert_string_equal(out.uid, "u-1");
    assert_string_equal(out.version, "99");
    assert_string_equal(out.node, "n1");
    out = seen("\"phase\":\"Pending\"," INIT(RUNNING) "," TASK(WAITING("PodInitializing")));
    assert_int_equal(out.stage, POD_WAITING);
    assert_false(out.has_started);
    assert_string_equal(out.reason, "PodInitializing");
    assert_string_equal(out.address, "");
    out = seen("\"phase\":\"Running\",\"podIP\":\"10.1.0.7\"," TASK(RUNNING));
    assert_string_equal(out.address, "10.1.0.7");
    assert_int_equal(out.stage, POD_RUNNING);
    assert_true(out.has_started);
    /* its container has ended, but kubelet has not said yet that the pod is over */
    out = seen("\"phase\":\"Running\"," TASK(ENDED(0, "")));
    assert_int_equal(out.stage, POD_RUNNING);
    out = seen("\"phase\":\"Succeeded\"," TASK(ENDED(0, ",\"reason\":\"Completed\"")));
    assert_int_equal(out.stage, POD_ENDED);
    assert_true(out.exit.is_user_command);
    assert_int_equal(out.exit.exit_code, 0);
    assert_string_equal(out.exit.reason, "");
    assert_string_equal(out.exit.name, "skep-7");
}

static void a_code_is_the_tasks_own(void **state)
{
    (void)state;
    struct pod_object out =
        seen("\"phase\":\"Failed\"," TASK(ENDED(3, ",\"reason\":\"Error\",\"message\":\"boom\"")));
    assert_int_equal(out.exit.exit_code, 3);
    assert_int_equal(out.exit.signal, 0);
    assert_true(out.exit.is_user_command);
    assert_string_equal(out.exit.reason, "");
    assert_string_equal(out.exit.message, "boom");
    out = seen("\"phase\":\"Failed\"," TASK(ENDED(139, ",\"reason\":\"Error\"")));
    assert_int_equal(out.exit.exit_code, 139);
    assert_int_equal(out.exit.signal, 11);
    out = seen("\"phase\":\"Failed\"," TASK(ENDED(137, ",\"signal\":9")));
    assert_int_equal(out.exit.signal, 9);
    out = seen("\"phase\":\"Failed\"," TASK(ENDED(255, "")));
    assert_int_equal(out.exit.signal, 0);
}

static void skep_init_says_where_it_ended(void **state)
{
    (void)state;
    struct pod_object out = seen(
        "\"phase\":\"Failed\"," TASK(ENDED(1, ",\"message\":\"skep-exit 1\\nstage setup\\ncode "
                                              "250\\nsignal 0\\nmessage the barrier failed\\n\"")));
    assert_false(out.exit.is_user_command);
    assert_int_equal(out.exit.exit_code, 250);
    assert_string_equal(out.exit.message, "the barrier failed");
    out = seen("\"phase\":\"Failed\"," TASK(
        ENDED(134, ",\"message\":\"skep-exit 1\\nstage user\\ncode 134\\nsignal 6\\n\"")));
    assert_true(out.exit.is_user_command);
    assert_int_equal(out.exit.signal, 6);
}

static void out_of_memory_is_told_by_its_word(void **state)
{
    (void)state;
    struct pod_object out = seen(
        "\"phase\":\"Failed\"," TASK(ENDED(137, ",\"reason\":\"OOMKilled\",\"message\":\"skep-exit "
                                                "1\\nstage user\\ncode 1\\nsignal 0\\n\"")));
    assert_true(out.exit.is_oom_killed);
    assert_string_equal(out.exit.reason, "OOMKilled");
    assert_int_equal(out.exit.exit_code, 137);
}

#define MEMORY(code, word)                                                                         \
    "\"phase\":\"Failed\"," TASK(                                                                  \
        ENDED(code, ",\"reason\":\"Error\",\"message\":\"skep-exit 1\\nstage user\\ncode " #code   \
                    "\\nmemory " word "\\n\""))

static void out_of_memory_is_told_by_skep_init(void **state)
{
    (void)state;
    struct pod_object out = seen(MEMORY(137, "limit"));
    assert_true(out.exit.is_oom_killed);
    assert_string_equal(out.exit.reason, "OOMKilled");
    assert_int_equal(out.exit.signal, 9);
    assert_true(seen(MEMORY(1, "limit")).exit.is_oom_killed); /* of a child */
    assert_string_equal(seen(MEMORY(1, "machine")).exit.reason, "NodeOutOfMemory");
    assert_false(seen(MEMORY(1, "machine")).exit.is_oom_killed);
    assert_string_equal(seen(MEMORY(1, "else")).exit.reason, "");
    out = seen("\"phase\":\"Succeeded\"," TASK(
        ENDED(0, ",\"message\":\"skep-exit 1\\nstage user\\ncode 0\\nmemory limit\\n\"")));
    assert_false(out.exit.is_oom_killed);
}

static void that_memory_ran_out_may_be_told_later(void **state)
{
    (void)state;
    static const char *const killed =
        "\"phase\":\"Failed\"," TASK(ENDED(137, ",\"reason\":\"Error\""));
    assert_true(seen(killed).is_word_open);
    assert_false(pod(killed, true, POD_SEEN, true).is_word_open);
    assert_false(seen(MEMORY(137, "else")).is_word_open); /* skep-init outlived it */
    assert_false(
        seen("\"phase\":\"Failed\"," TASK(ENDED(137, ",\"reason\":\"OOMKilled\""))).is_word_open);
    assert_false(seen("\"phase\":\"Failed\"," TASK(ENDED(1, ""))).is_word_open);
    assert_false(
        seen("\"phase\":\"Failed\",\"reason\":\"Evicted\"," TASK(ENDED(137, ""))).is_word_open);
    assert_false(
        seen("\"phase\":\"Failed\"," TASK(ENDED(137, ",\"reason\":\"ContainerStatusUnknown\"")))
            .is_word_open);
    assert_false(seen("\"phase\":\"Failed\"," INIT(ENDED(137, ""))).is_word_open);
}

static void a_container_that_kubelet_lost_was_not_killed(void **state)
{
    (void)state;
    struct pod_object out = seen("\"phase\":\"Failed\"," TASK(
        ENDED(137, ",\"reason\":\"ContainerStatusUnknown\",\"message\":\"could not be located\"")));
    assert_false(out.exit.is_oom_killed);
    assert_string_equal(out.exit.reason, "NodeRestarted");
    assert_string_equal(out.exit.message, "could not be located");
}

static void a_container_that_cannot_run_is_no_users_command(void **state)
{
    (void)state;
    static const char *const words[] = {"StartError", "ContainerCannotRun"};
    for (size_t i = 0; i < COUNT_OF(words); i++) {
        struct pod_object out =
            seen(arena_format(&arena,
                              "\"phase\":\"Failed\",\"containerStatuses\":[{\"name\":\"task\","
                              "\"state\":{\"terminated\":{"
                              "\"exitCode\":128,\"reason\":\"%s\",\"message\":\"no such file\"}}}]",
                              words[i]));
        assert_false(out.exit.is_user_command);
        assert_string_equal(out.exit.reason, "ContainerCannotRun");
        assert_int_equal(out.exit.exit_code, 128);
    }
}

static void what_the_platform_took_has_its_word(void **state)
{
    (void)state;
    static const struct {
        const char *status, *reason;
    } cases[] = {
        {"\"phase\":\"Failed\",\"reason\":\"Evicted\",\"message\":\"why\"", "Evicted"},
        {"\"phase\":\"Failed\",\"reason\":\"Preempting\",\"message\":\"why\"", "Preempting"},
        {"\"phase\":\"Failed\",\"reason\":\"Terminated\",\"message\":\"why\"," TASK(ENDED(143, "")),
         "NodeLost"},
        {"\"phase\":\"Failed\",\"reason\":\"DeadlineExceeded\",\"message\":\"why\"," TASK(
             ENDED(143, "")),
         "DeadlineExceeded"},
        {"\"phase\":\"Failed\",\"reason\":\"NodeLost\",\"message\":\"why\"", "NodeLost"},
        {"\"phase\":\"Failed\"," TARGET("PreemptionByScheduler") "," TASK(ENDED(143, "")),
         "Preempting"},
        {"\"phase\":\"Failed\"," TARGET("DeletionByTaintManager") "," TASK(ENDED(143, "")),
         "NodeLost"},
        {"\"phase\":\"Failed\"," TARGET("EvictionByEvictionAPI") "," TASK(ENDED(137, "")),
         "Evicted"},
        {"\"phase\":\"Failed\"," TARGET("TerminationByKubelet") "," TASK(ENDED(137, "")),
         "Evicted"},
        /* the node has gone: what is left still says that it runs */
        {"\"phase\":\"Failed\"," TARGET("DeletionByPodGC") "," TASK(RUNNING), "NodeLost"},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct pod_object out = seen(cases[i].status);
        assert_int_equal(out.stage, POD_ENDED);
        assert_string_equal(out.exit.reason, cases[i].reason);
        assert_string_equal(out.exit.message, "why");
        assert_false(out.exit.is_missing);
    }
}

/* Kubelet has one word for what it takes because the node is short of something, and for what has
 * gone beyond its own limit; its messages tell them apart. */
static void a_task_beyond_its_own_disk_is_not_evicted(void **state)
{
    (void)state;
    static const struct {
        const char *message, *reason;
    } cases[] = {
        {"Pod ephemeral local storage usage exceeds the total limit of containers 1Gi. ",
         "TaskDiskFull"},
        {"Container task exceeded its local ephemeral storage limit \\\"1Gi\\\". ", "TaskDiskFull"},
        {"Usage of EmptyDir volume \\\"log\\\" exceeds the limit \\\"96Mi\\\". ", "TaskDiskFull"},
        {"The node was low on resource: ephemeral-storage. Threshold quantity: 1Gi, available: "
         "900Mi. Container task was using 7Gi, request is 0, has larger consumption of "
         "ephemeral-storage. ",
         "Evicted"},
        {"The node was low on resource: memory. ", "Evicted"},
        {"", "Evicted"},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct pod_object out = seen(
            arena_format(&arena,
                         "\"phase\":\"Failed\",\"reason\":\"Evicted\",\"message\":\"%s\"," TASK(
                             ENDED(137, ",\"reason\":\"Error\"")),
                         cases[i].message));
        assert_int_equal(out.stage, POD_ENDED);
        assert_string_equal(out.exit.reason, cases[i].reason);
        assert_int_equal(strlen(out.exit.message) > 0, strlen(cases[i].message) > 0);
        assert_false(out.is_word_open);
    }
    /* an eviction that somebody asked for has a condition, and its words are not kubelet's */
    assert_string_equal(
        seen("\"phase\":\"Failed\",\"message\":\"Usage of EmptyDir volume exceeds the "
             "limit\"," TARGET("EvictionByEvictionAPI") "," TASK(ENDED(137, "")))
            .exit.reason,
        "Evicted");
}

static void work_that_was_done_stays_done(void **state)
{
    (void)state;
    struct pod_object out =
        pod("\"phase\":\"Succeeded\"," TARGET("EvictionByEvictionAPI") "," TASK(ENDED(0, "")), true,
            POD_REMOVED, false);
    assert_int_equal(out.stage, POD_ENDED);
    assert_int_equal(out.exit.exit_code, 0);
    assert_string_equal(out.exit.reason, "");
    assert_false(out.exit.is_missing);
}

/* Failed, but a container runs still: its GPUs must not be given away yet. */
static void a_pod_ends_when_nothing_of_it_runs(void **state)
{
    (void)state;
    struct pod_object out = seen("\"phase\":\"Failed\",\"reason\":\"Evicted\"," TASK(RUNNING));
    assert_int_equal(out.stage, POD_RUNNING);
    out = seen("\"phase\":\"Failed\",\"reason\":\"Evicted\"," INIT(RUNNING));
    assert_int_equal(out.stage, POD_RUNNING);
}

static void a_refusal_is_no_end(void **state)
{
    (void)state;
    static const char *const reasons[] = {"OutOfcpu",        "OutOfmemory",
                                          "OutOfpods",       "OutOfnvidia.com/gpu",
                                          "NodeAffinity",    "NodePorts",
                                          "TaintToleration", "UnexpectedAdmissionError",
                                          "NodeShutdown",    "TopologyAffinityError",
                                          "Evicted"};
    for (size_t i = 0; i < COUNT_OF(reasons); i++) {
        struct pod_object out = seen(arena_format(
            &arena, "\"phase\":\"Failed\",\"reason\":\"%s\",\"message\":\"Pod was rejected\"",
            reasons[i]));
        assert_int_equal(out.stage, POD_REFUSED);
        assert_string_equal(out.reason, reasons[i]);
        assert_string_equal(out.message, "Pod was rejected");
    }
    /* the same word about what has run is an end */
    assert_int_equal(
        seen("\"phase\":\"Failed\",\"reason\":\"NodeShutdown\"," TASK(ENDED(143, ""))).stage,
        POD_ENDED);
    assert_int_equal(seen("\"phase\":\"Failed\",\"reason\":\"Evicted\"").stage, POD_ENDED);
}

/* A kubelet that begins anew refuses what it had admitted, and its status names no containers. */
static void what_ran_before_was_not_refused(void **state)
{
    (void)state;
    struct pod_object out = seen("\"phase\":\"Failed\",\"reason\":\"UnexpectedAdmissionError\","
                                 "\"message\":\"Pod was rejected\"");
    assert_int_equal(out.stage, POD_REFUSED);
    pod_object_had_started(&out);
    assert_int_equal(out.stage, POD_ENDED);
    assert_string_equal(out.exit.name, "skep-7");
    assert_string_equal(out.exit.reason, "NodeRestarted");
    assert_string_equal(out.exit.message, "Pod was rejected");
    assert_int_equal(out.exit.exit_code, 137);
    assert_false(out.exit.is_missing);
    out = seen("\"phase\":\"Failed\"," TASK(ENDED(3, "")));
    pod_object_had_started(&out);
    assert_int_equal(out.exit.exit_code, 3);
    assert_string_equal(out.exit.reason, "");
}

static void what_others_delete_is_not_the_tasks_failure(void **state)
{
    (void)state;
    static const char status[] = "\"phase\":\"Failed\"," TASK(ENDED(143, ""));
    struct pod_object out = pod(status, true, POD_SEEN, false);
    assert_true(out.is_deleting);
    assert_true(out.exit.is_missing);
    out = pod(status, true, POD_SEEN, true);
    assert_false(out.exit.is_missing);
    assert_int_equal(out.exit.exit_code, 143);
    /* removed by force: the last state still says that it runs */
    out = pod("\"phase\":\"Running\"," TASK(RUNNING), false, POD_REMOVED, false);
    assert_int_equal(out.stage, POD_ENDED);
    assert_true(out.exit.is_missing);
    out = pod("\"phase\":\"Pending\"", true, POD_REMOVED, true);
    assert_int_equal(out.stage, POD_ENDED);
    assert_int_equal(out.exit.exit_code, 137);
    assert_false(out.exit.is_missing);
    assert_false(out.exit.is_user_command);
}

static void what_brings_skep_init_is_the_platforms(void **state)
{
    (void)state;
    struct pod_object out = seen(
        "\"phase\":\"Failed\"," INIT(ENDED(127, ",\"reason\":\"Error\",\"message\":\"cp: not "
                                                "found\"")) "," TASK(WAITING("PodInitializing")));
    assert_int_equal(out.stage, POD_ENDED);
    assert_false(out.exit.is_user_command);
    assert_string_equal(out.exit.reason, "CreationError");
    assert_non_null(strstr(out.exit.message, "cp: not found"));
    out = seen("\"phase\":\"Failed\"," INIT(ENDED(0, "")));
    assert_string_equal(out.exit.reason, "CreationError");
    out = seen("\"phase\":\"Failed\",\"reason\":\"DeadlineExceeded\",\"message\":\"Pod was active "
               "too long\"");
    assert_string_equal(out.exit.reason, "DeadlineExceeded");
    assert_string_equal(out.exit.message, "Pod was active too long");
}

/* Before its volumes are mounted and its sandbox is made nothing is pulled for the task. */
static void a_pod_that_is_not_prepared_is_not_waited_for_long(void **state)
{
    (void)state;
    static const char conditions[] =
        "\"conditions\":[{\"type\":\"PodReadyToStartContainers\",\"status\":\"%s\"}],";
    static const char rest[] = "\"phase\":\"Pending\"," TASK(WAITING("ContainerCreating"));
    static const char refused[] = "\"phase\":\"Pending\"," TASK(WAITING("InvalidImageName"));
    const char *no = arena_format(&arena, conditions, "False");
    struct pod_object out = seen(arena_format(&arena, "%s%s", no, rest));
    assert_int_equal(out.stage, POD_WAITING);
    assert_int_equal(out.patience, POD_WAIT_SHORTLY);
    assert_string_equal(out.reason, POD_UNPREPARED);
    assert_int_equal(out.patience_ms, POD_PATIENCE_MS);
    out = seen(arena_format(&arena, "%s%s", arena_format(&arena, conditions, "True"), rest));
    assert_int_equal(out.patience, POD_WAIT);
    assert_string_equal(out.reason, "ContainerCreating");
    out = seen(arena_format(&arena, "%s%s", no, refused));
    assert_int_equal(out.patience, POD_GIVE_UP);
}

/* Kubelets before 1.29 do not tell it: then a pod that its kubelet knows has no sandbox as long as
 * nothing of it has begun and it has no address of its own. That may be a long pull as well. */
static void a_pod_of_an_old_kubelet_is_not_waited_for_for_ever(void **state)
{
    (void)state;
#define SCHEDULED "\"conditions\":[{\"type\":\"PodScheduled\",\"status\":\"True\"}],"
#define WAITS     "\"phase\":\"Pending\"," TASK(WAITING("PodInitializing"))
    struct pod_object out = seen(SCHEDULED WAITS "," INIT(WAITING("PodInitializing")));
    assert_int_equal(out.patience, POD_WAIT_SHORTLY);
    assert_int_equal(out.patience_ms, POD_PATIENCE_UNTOLD_MS);
    assert_string_equal(out.reason, POD_UNPREPARED);
    static const char *const prepared[] = {
        WAITS, /* its kubelet does not know it yet */
        SCHEDULED WAITS "," INIT(RUNNING),
        SCHEDULED WAITS "," INIT(ENDED(0, "")),
        SCHEDULED WAITS ",\"podIP\":\"10.1.0.7\"",
    };
    for (size_t i = 0; i < COUNT_OF(prepared); i++)
        assert_int_equal(seen(prepared[i]).patience, POD_WAIT);
    /* the address of a pod in its node's network says nothing */
    cleanup_problems struct problems problems;
    problems_init(&problems, &arena);
    const struct doc *doc =
        doc_parse(TEXT("{\"spec\":{\"hostNetwork\":true},\"status\":{" SCHEDULED WAITS
                       ",\"podIP\":\"10.0.0.1\"}}"),
                  DOC_JSON, &arena, &problems);
    pod_object_read(doc, POD_SEEN, false, &arena, &out);
    assert_int_equal(out.patience_ms, POD_PATIENCE_UNTOLD_MS);
    /* a reason of its own is not hidden */
    out = seen(SCHEDULED "\"phase\":\"Pending\"," TASK(WAITING("InvalidImageName")));
    assert_int_equal(out.patience, POD_GIVE_UP);
}

static void waiting_has_its_patience(void **state)
{
    (void)state;
    static const struct {
        const char *reason, *message;
        enum pod_patience patience;
    } cases[] = {
        {"ContainerCreating", "", POD_WAIT},
        {"PodInitializing", "", POD_WAIT},
        {"InvalidImageName", "", POD_GIVE_UP},
        {"ErrImageNeverPull", "", POD_GIVE_UP},
        {"CreateContainerConfigError", "secret \\\"x\\\" not found", POD_GIVE_UP},
        {"ErrImagePull", "rpc error: code = NotFound desc = x: not found", POD_GIVE_UP},
        {"ErrImagePull", "pull access denied", POD_GIVE_UP},
        {"ErrImagePull", "failed with status code [manifests 1]: 401 Unauthorized", POD_GIVE_UP},
        {"ErrImagePull", "failed with status code [manifests 1]: 403 Forbidden", POD_GIVE_UP},
        {"ErrImagePull", "dial tcp: i/o timeout", POD_WAIT_SHORTLY},
        {"ImagePullBackOff", "Back-off pulling image", POD_WAIT_SHORTLY},
        {"ImageInspectError", "", POD_WAIT_SHORTLY},
        {"CreateContainerError", "", POD_WAIT_SHORTLY},
        {"RunContainerError", "", POD_WAIT_SHORTLY},
        {"CreatePodSandboxError", "", POD_WAIT_SHORTLY},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        const char *waiting =
            arena_format(&arena, "\"waiting\":{\"reason\":\"%s\",\"message\":\"%s\"}",
                         cases[i].reason, cases[i].message);
        struct pod_object out = seen(arena_format(
            &arena,
            "\"phase\":\"Pending\",\"containerStatuses\":[{\"name\":\"task\",\"state\":{%s}}]",
            waiting));
        assert_int_equal(out.stage, POD_WAITING);
        assert_string_equal(out.reason, cases[i].reason);
        assert_int_equal(out.patience, cases[i].patience);
    }
}

/* A user's image may have any name: only what is said of it counts. */
static void the_name_of_an_image_refuses_nothing(void **state)
{
    (void)state;
    static const struct {
        const char *image, *told, *message;
        enum pod_patience patience;
    } cases[] = {
        {"acme/forbidden-city:1", "acme/forbidden-city",
         "Head \\\"https://registry-1.docker.io/v2/acme/forbidden-city\\\": i/o timeout",
         POD_WAIT_SHORTLY},
        {"acme/forbidden-city:1", "acme/forbidden-city:1",
         "image \\\"docker.io/acme/forbidden-city:1\\\": not found", POD_GIVE_UP},
        {"unauthorized", "\"unauthorized\"", "image \\\"unauthorized\\\": EOF", POD_WAIT_SHORTLY},
        {"unauthorized", "\"unauthorized\"", "image \\\"unauthorized\\\": 401 Unauthorized",
         POD_GIVE_UP},
        {"x:1-denied", "1-denied", "reading manifest 1-denied in docker.io/library/x: EOF",
         POD_WAIT_SHORTLY},
        {"x:1-denied", "1-denied", "reading manifest 1-denied in docker.io/library/x: denied",
         POD_GIVE_UP},
    };
    static const char *const kinds[][3] = {{"containers", "containerStatuses", "task"},
                                           {"initContainers", "initContainerStatuses", "skep"}};
    for (size_t i = 0; i < COUNT_OF(cases); i++)
        for (size_t k = 0; k < COUNT_OF(kinds); k++) {
            struct pod_object out = pod_with(
                arena_format(&arena,
                             "\"%s\":[{\"name\":\"other\",\"image\":\"y\"},"
                             "{\"name\":\"%s\",\"image\":\"%s\"}]",
                             kinds[k][0], kinds[k][2], cases[i].image),
                arena_format(
                    &arena,
                    "\"phase\":\"Pending\",\"%s\":[{\"name\":\"%s\",\"state\":{\"waiting\":"
                    "{\"reason\":\"ErrImagePull\",\"message\":\"%s\"}}}]",
                    kinds[k][1], kinds[k][2], cases[i].message),
                false, POD_SEEN, false);
            assert_int_equal(out.stage, POD_WAITING);
            assert_int_equal(out.patience, cases[i].patience);
            /* people are told the name all the same */
            assert_non_null(strstr(out.message, cases[i].told));
        }
}

/* The image of skep-init is the operator's: what is wrong with it is no failure of the user's. */
static void trouble_of_skep_inits_image_is_the_operators(void **state)
{
    (void)state;
    static const struct {
        const char *reason, *message;
        enum pod_patience patience;
    } cases[] = {
        {"InvalidImageName", "", POD_GIVE_UP},
        {"ErrImagePull", "rpc error: code = NotFound desc = x: not found", POD_GIVE_UP},
        {"ErrImagePull", "dial tcp: i/o timeout", POD_WAIT_SHORTLY},
        {"ImagePullBackOff", "Back-off pulling image", POD_WAIT_SHORTLY},
        {"CreateContainerConfigError", "secret \\\"x\\\" not found", POD_GIVE_UP},
        {"RunContainerError", "", POD_WAIT_SHORTLY},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct pod_object out = seen(arena_format(
            &arena,
            "\"phase\":\"Pending\",\"initContainerStatuses\":[{\"name\":\"skep\",\"state\":{"
            "\"waiting\":{\"reason\":\"%s\",\"message\":\"%s\"}}}]," TASK(
                WAITING("PodInitializing")),
            cases[i].reason, cases[i].message));
        assert_int_equal(out.stage, POD_WAITING);
        assert_int_equal(out.patience, cases[i].patience);
        assert_string_equal(out.reason, POD_INIT_FAILED);
        assert_non_null(strstr(out.message, "initImage"));
        assert_non_null(strstr(out.message, cases[i].reason));
    }
    assert_non_null(strstr(
        seen("\"phase\":\"Pending\",\"initContainerStatuses\":[{\"name\":\"skep\",\"state\":{"
             "\"waiting\":{\"reason\":\"ErrImagePull\",\"message\":\"pull access denied\"}}}]")
            .message,
        "pull access denied"));
}

/* kubelet says the same of a container that it has lost and of one that never began; only the
 * former has the time at which it began. */
static void a_container_that_never_began_has_not_started(void **state)
{
    (void)state;
    const char *unknown = TASK(ENDED(137, ",\"reason\":\"ContainerStatusUnknown\"")),
               *lost = TASK(ENDED(137, ",\"reason\":\"ContainerStatusUnknown\","
                                       "\"startedAt\":\"2026-11-22T10:00:00Z\""));
    assert_false(pod(unknown, true, POD_REMOVED, true).has_started);
    assert_true(pod(lost, true, POD_REMOVED, true).has_started);
    assert_true(seen(TASK(ENDED(1, ""))).has_started);
    assert_true(seen(TASK(RUNNING)).has_started);
    assert_false(seen(TASK(WAITING("x"))).has_started);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_pod_waits_runs_and_ends),
    cmocka_unit_test(a_code_is_the_tasks_own),
    cmocka_unit_test(skep_init_says_where_it_ended),
    cmocka_unit_test(out_of_memory_is_told_by_its_word),
    cmocka_unit_test(out_of_memory_is_told_by_skep_init),
    cmocka_unit_test(that_memory_ran_out_may_be_told_later),
    cmocka_unit_test(a_container_that_kubelet_lost_was_not_killed),
    cmocka_unit_test(a_container_that_cannot_run_is_no_users_command),
    cmocka_unit_test(what_the_platform_took_has_its_word),
    cmocka_unit_test(a_task_beyond_its_own_disk_is_not_evicted),
    cmocka_unit_test(work_that_was_done_stays_done),
    cmocka_unit_test(a_pod_ends_when_nothing_of_it_runs),
    cmocka_unit_test(a_refusal_is_no_end),
    cmocka_unit_test(what_ran_before_was_not_refused),
    cmocka_unit_test(what_others_delete_is_not_the_tasks_failure),
    cmocka_unit_test(what_brings_skep_init_is_the_platforms),
    cmocka_unit_test(a_pod_that_is_not_prepared_is_not_waited_for_long),
    cmocka_unit_test(a_pod_of_an_old_kubelet_is_not_waited_for_for_ever),
    cmocka_unit_test(waiting_has_its_patience),
    cmocka_unit_test(the_name_of_an_image_refuses_nothing),
    cmocka_unit_test(trouble_of_skep_inits_image_is_the_operators),
    cmocka_unit_test(a_container_that_never_began_has_not_started),
};

UNIT_FILE(tests, setup, teardown);
