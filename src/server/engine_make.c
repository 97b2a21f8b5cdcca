/* engine_make.c — an engine as the configuration wants it; see engines.h. */
#include "base/err.h"
#include "engine/fake/fake.h"
#include "server/config.h"
#include "server/engines.h"
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int fake_of(const struct engine_config *config, struct engine_sink sink,
                   struct engine **engine, struct err *err)
{
    struct engine_fake_rule rule = {
        .index = -1, .exit_code = config->fake.exit_code, .log = config->fake.log};
    struct engine_fake_config fake = {
        .node_prefix = config->fake.node_prefix,
        .node_count = config->fake.nodes,
        .cpu = config->fake.cpu,
        .gpu_count = config->fake.gpu_count,
        .memory_mib = config->fake.memory_mib,
        .run_ms = config->fake.run_ms,
        .lose_every_ms = config->fake.lose_every_ms,
        .rules = &rule,
        .rule_count = 1,
    };
    return engine_fake_new(&fake, &sink, engine, err);
}

/* skep-init lies beside skepd, in the build folder and where the package puts it. */
static void init_path_of(char path[PATH_MAX])
{
    static const char *const places[] = {"skep-init", "../init/skep-init", "../lib/skep/skep-init",
                                         "../libexec/skep/skep-init"};
    char self[PATH_MAX - 64];
    ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
    path[0] = '\0';
    if (length <= 0)
        return;
    self[length] = '\0';
    *strrchr(self, '/') = '\0';
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        snprintf(path, PATH_MAX, "%s/%s", self, places[i]);
        if (access(path, X_OK) == 0)
            return;
    }
}

/* A task's log may take eight pieces, two of each of its streams, and one more: for what the task
 * itself writes into the folder. */
enum { LOG_SEGMENTS = 9 };

static int local_of(const struct engine_config *own, const char *data_directory, const char *door,
                    struct engine_sink sink, struct engine **engine, struct err *err)
{
    struct engine_local_config local = own->local;
    char directory[PATH_MAX], init_path[PATH_MAX], images[PATH_MAX];
    const char *roots[] = {images};
    snprintf(directory, sizeof directory, "%s/engine", data_directory);
    local.directory = directory;
    local.log_max_mib = LOG_SEGMENTS * own->log_segment_mib;
    local.door_directory = door;
    local.has_private_network =
        own->network_mode == NETWORK_MODE_PRIVATE || own->network_mode == NETWORK_MODE_AUTO;
    local.is_network_by_job = own->network_mode == NETWORK_MODE_AUTO;
    snprintf(images, sizeof images, "%s/images", data_directory);
    if (local.image_root_count == 0) { /* where images/build puts them */
        local.image_roots = roots;
        local.image_root_count = 1;
    }
    if (!local.init_path) {
        init_path_of(init_path);
        local.init_path = init_path;
    }
    if (access(local.init_path, X_OK) < 0)
        return err_fail(err, ERR_UNSUPPORTED, "engine.initPath",
                        "skep-init is not beside skepd; engine.initPath must name it");
    *engine = engine_local_new(&local, sink, err);
    return *engine ? 0 : err->code;
}

static int kubernetes_of(const struct engine_config *own, const char *data_directory,
                         struct engine_sink sink, struct engine **engine, struct err *err)
{
    struct engine_kubernetes_config config = own->kubernetes;
    char directory[PATH_MAX];
    snprintf(directory, sizeof directory, "%s/kubernetes-%s", data_directory, own->name);
    config.directory = directory;
    config.log_segment_mib = own->log_segment_mib;
    config.log_keep_s = (int64_t)own->local.log_keep_s;
    config.log_keep_mib = own->local.log_keep_mib;
    return engine_kubernetes_new(&config, sink, engine, err);
}

int engine_of_config(const struct engine_config *engine, const char *data_directory,
                     const char *door, struct engine_sink sink, struct engine **out,
                     struct err *err)
{
    switch (engine->kind) {
    case ENGINE_KIND_LOCAL:
        return local_of(engine, data_directory, door, sink, out, err);
    case ENGINE_KIND_FAKE:
        return fake_of(engine, sink, out, err);
    case ENGINE_KIND_KUBERNETES:
        return kubernetes_of(engine, data_directory, sink, out, err);
    }
    return err_fail(err, ERR_INTERNAL, "", "no such engine");
}
