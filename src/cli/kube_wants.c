#include "cli/kube_wants.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "cli/command.h"
#include "doc/doc.h"
#include "sys/file.h"

/* Of the option, else of the configuration, else what stands there. */
static const char *setting(const struct cli *cli, const char *option, const struct doc *engine,
                           const char *key, const char *otherwise)
{
    const char *value = cli_value(cli, option);
    return value ? value : key ? doc_get_text(engine, key, otherwise).at : otherwise;
}

/* The first engine that is a cluster; NULL: there is none. */
static const struct doc *engine_of(const struct doc *root)
{
    const struct doc *list = doc_get_list(root, "engines");
    for (size_t i = 0; i < list->as.list.count; i++)
        if (text_is(doc_get_text(list->as.list.items[i], "kind", ""), "kubernetes"))
            return doc_get_map(list->as.list.items[i], "kubernetes");
    const struct doc *alone = doc_get(root, "engine");
    return text_is(doc_get_text(alone, "kind", ""), "kubernetes") ? doc_get_map(alone, "kubernetes")
                                                                  : NULL;
}

static int config_read(const char *path, struct arena *arena, const struct doc **engine)
{
    cleanup_buf struct buf source = BUF_INIT;
    cleanup_problems struct problems problems;
    struct err err;
    problems_init(&problems, arena);
    if (file_read(path, DOC_BYTES_MAX, &source, &err) < 0)
        return cli_fail(EXIT_USAGE, "%s", err.text);
    const char *text = arena_copy(arena, buf_as_text(&source));
    const struct doc *root = doc_parse(text_of(text), DOC_YAML, arena, &problems);
    if (!root || problems.error_count > 0)
        return cli_fail(EXIT_USAGE, "%s: %s", path,
                        problems.error_count ? problems_sorted(&problems)[0]->text : "it is empty");
    *engine = engine_of(root);
    return *engine ? 0 : cli_fail(EXIT_USAGE, "%s has no engine of the kind kubernetes", path);
}

/* As kubectl: KUBECONFIG, whose files are one together, or the user's own. False: there is none. */
static bool kubeconfig_read(const char *context, struct arena *arena, struct kube_access *found,
                            int *code, struct err *err)
{
    const char *list = getenv("KUBECONFIG"), *home = getenv("HOME");
    if (list && list[0]) {
        *code = kube_access_of_files(list, context, arena, found, err);
        return true;
    }
    const char *own = arena_format(arena, "%s/.kube/config", home ? home : "");
    if (access(own, R_OK) != 0)
        return false;
    *code = kube_access_of_file(own, context, arena, found, err);
    return true;
}

static int access_read(const struct cli *cli, const struct doc *engine, struct arena *arena,
                       struct kube_wants *wants)
{
    struct err err;
    const char *path = setting(cli, "kubeconfig", engine, "kubeconfig", "");
    const char *context = setting(cli, "kube-context", engine, "context", "");
    int code = 0;
    if (cli_value(cli, "kubeconfig")) /* one file, as kubectl's */
        code = kube_access_of_file(path, context, arena, &wants->access, &err);
    else if (path[0])
        code = kube_access_of_files(path, context, arena, &wants->access, &err);
    /* with a configuration it is asked as the server does: without a kubeconfig, as a pod */
    else if (engine || !kubeconfig_read(context, arena, &wants->access, &code, &err))
        code =
            kube_access_of_pod(getenv("KUBERNETES_SERVICE_HOST"), getenv("KUBERNETES_SERVICE_PORT"),
                               ACCESS_POD_FOLDER, arena, &wants->access, &err);
    return code < 0 ? cli_fail(EXIT_USAGE, "%s%s%s", err.path, err.path[0] ? ": " : "", err.text)
                    : 0;
}

static int account_read(const struct cli *cli, struct arena *arena, struct kube_wants *wants)
{
    const char *account = cli_value(cli, "account");
    if (!account)
        return 0;
    struct text name = text_of(account);
    const struct text space = text_cut(&name, '/');
    if (space.length == 0 || name.length == 0)
        return cli_fail(EXIT_USAGE, "--account: NAMESPACE/NAME, not '%s'", account);
    wants->account_space = arena_copy(arena, space);
    wants->account = arena_copy(arena, name);
    return 0;
}

static int way_read(const struct cli *cli, const struct doc *engine, struct kube_wants *wants)
{
    static const char *const words[] = {
        [KUBE_WAY_DEVICE_PLUGIN] = "device-plugin", [KUBE_WAY_ENV] = "env", [KUBE_WAY_DRA] = "dra"};
    const char *way = setting(cli, "gpus", engine, "gpus", "");
    wants->needs_gpus = way[0] != '\0';
    for (enum kube_way i = KUBE_WAY_DEVICE_PLUGIN; i <= KUBE_WAY_DRA; i++)
        if (strcmp(way, words[i]) == 0 || !way[0]) {
            wants->way = i;
            return 0;
        }
    return cli_fail(EXIT_USAGE, "gpus: env, device-plugin or dra, not '%s'", way);
}

int kube_wants_read(const struct cli *cli, struct arena *arena, struct kube_wants *wants)
{
    const char *config = cli_value(cli, "config");
    const struct doc *engine = NULL;
    int code = config ? config_read(config, arena, &engine) : 0;
    if (code == 0)
        code = access_read(cli, engine, arena, wants);
    if (code == 0)
        code = account_read(cli, arena, wants);
    if (code == 0)
        code = way_read(cli, engine, wants);
    if (code)
        return code;
    const char *space = wants->access.space;
    wants->space = setting(cli, "namespace", engine, "namespace",
                           engine ? space[0] ? space : "default" : "skep-jobs");
    wants->selector = setting(cli, "node-selector", engine, "nodeSelector", "");
    wants->gpu_resource = setting(cli, "gpu-resource", engine, "gpuResource", "nvidia.com/gpu");
    wants->device_driver = setting(cli, "device-driver", engine, "deviceDriver", "gpu.nvidia.com");
    wants->device_class = setting(cli, "device-class", engine, "deviceClass", "gpu.nvidia.com");
    wants->taint = setting(cli, "taint", engine, "taint", "skep.internal/dedicated");
    const struct doc *reserve = doc_get(engine, "nodeReserve");
    wants->reserve = (struct kube_reserve){.cpu = doc_get_int(reserve, "cpu", 0),
                                           .memory_mib = doc_get_int(reserve, "memoryMB", 0),
                                           .pods = doc_get_int(reserve, "pods", 0)};
    wants->runtime_class = setting(cli, "runtime-class", engine, "runtimeClass", "");
    wants->priority_class = setting(cli, "priority-class", engine, "priorityClass", "");
    wants->is_in_pod_network =
        strcmp(setting(cli, "network", engine, "network", "host"), "pod") == 0;
    wants->users = doc_get_text(engine, "userNamespaces", "off").at;
    wants->infiniband_resource = doc_get_text(engine, "infinibandResource", "").at;
    wants->has_metrics = !text_is(doc_get_text(engine, "nodeMetrics", ""), "off");
    wants->has_template = doc_get_text(engine, "podTemplate", "").length > 0;
    wants->service_account = doc_get_text(engine, "serviceAccount", "").at;
    return 0;
}
