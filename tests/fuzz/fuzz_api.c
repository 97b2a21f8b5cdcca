/* Requests of any bytes through router, tokens, bodies and handlers, over a real store and core.
 *
 * Input: METHOD ' ' TARGET '\n' HEADERS '\n' BODY. The first header line is the authorization ("@"
 * stands for a valid token of a user, "@admin" for one of an administrator), the second the content
 * type. Visitors may ask for accounts; the user may use the storage `scratch`, which is a folder of
 * its own.
 */
#include "../unit/api/world.h"
#include "api/file_task.h"
#include "base/memory.h"
#include "model/storage.h"
#include "sys/file.h"
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define JOB                                                                                        \
    "protocolVersion: 2\\nname: f\\ntype: job\\nprerequisites: [{name: i, type: dockerimage, "     \
    "uri: "                                                                                        \
    "d}]\\ntaskRoles: {w: {dockerImage: i, resourcePerInstance: {cpu: 1, memoryMB: 1, gpu: 0}, "   \
    "commands: [x]}}\\n"

static struct world *world;
static const char *token, *admin;
static char directory[] = "/tmp/skep-fuzz-api-XXXXXX";
static const struct storage scratch = {.name = "scratch",
                                       .directory = directory,
                                       .type = "directory",
                                       .server = "",
                                       .path = "",
                                       .is_shared = true};
static struct storage_list storages = {(struct storage *)&scratch, 1};

static struct storage_list on_storages(void *context, struct arena *arena)
{
    (void)context;
    return storage_list_copy(storages, arena);
}

static const struct storage *on_storage(void *context, struct text name, struct arena *arena)
{
    return storage_find(on_storages(context, arena), name);
}

static void directory_remove(void)
{
    char command[sizeof directory + 16];
    snprintf(command, sizeof command, "rm -rf '%s'", directory);
    (void)!system(command);
}

static void files_turn_on(void)
{
    const struct api_files config = {.is_on = true, .upload_max = 1 << 16, .nobody = 1};
    char path[sizeof directory + 16];
    struct err err;
    assert(mkdtemp(directory));
    atexit(directory_remove);
    file_write(strcat(strcpy(path, directory), "/words"), TEXT("one two"), 0644, &err);
    file_threads_free(world->api.files);
    world->service.storages = on_storages;
    world->service.storage = on_storage;
    int code = file_threads_start(&config, storages, &world->api.files, &err);
    assert(code == 0);
    code = world_send(world, HTTP_POST, "/api/v2/groups", admin,
                      "{\"groupname\":\"lab\",\"description\":\"\",\"extension\":{\"acls\":"
                      "{\"storageConfigs\":[\"scratch\"]}}}");
    assert(code == 201);
    code =
        world_send(world, HTTP_PUT, "/api/v2/users/alice/group", admin, "{\"groupname\":\"lab\"}");
    assert(code == 201);
}

static void setup(void)
{
    world = world_new();
    world->api.config.has_sign_up = true;
    admin = world_login(world, "admin");
    files_turn_on();
    token = world_login(world, "alice");
    int status = world_send(world, HTTP_POST, "/marketplace/api/items", token,
                            "{\"name\":\"m\",\"protocol\":\"" JOB "\"}");
    assert(status == 201);
    status = world_send(world, HTTP_PUT, "/marketplace/api/items/alice~m", token,
                        "{\"summary\":\"two\"}");
    assert(status == 200);
    (void)status;
    world_run(world, world_submit(world, token, "seed", 2));
}

static enum http_method method_of(struct text name)
{
    static const enum http_method ALL[] = {HTTP_GET,    HTTP_HEAD,    HTTP_POST, HTTP_PUT,
                                           HTTP_DELETE, HTTP_OPTIONS, HTTP_OTHER};
    for (size_t i = 0; i < COUNT_OF(ALL); i++)
        if (text_is(name, http_method_name(ALL[i])))
            return ALL[i];
    return HTTP_OTHER;
}

static char *copy_of(struct text text)
{
    char *copy = mem_alloc(text.length + 1);
    if (text.length)
        memcpy(copy, text.at, text.length);
    copy[text.length] = '\0';
    return copy;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (!world)
        setup();
    struct text body = {(const char *)data, size};
    struct text target = text_cut(&body, '\n');
    struct text authorization = text_cut(&body, '\n');
    struct text type = text_cut(&body, '\n');
    struct text method = text_cut(&target, ' ');
    if (!target.at || text_is(target, ""))
        return 0;
    char *target_copy = copy_of(target), *type_copy = copy_of(type);
    char *header = copy_of(authorization);
    int status = world_ask(world, method_of(method), target_copy,
                           text_is(authorization, "@")        ? token
                           : text_is(authorization, "@admin") ? admin
                           : header[0]                        ? header
                                                              : NULL,
                           type_copy, body.at ? body : TEXT(""));
    assert(status != 500);
    if (status >= 400 && strncmp(target_copy, "/v1/", 4) != 0) /* HiveD's answers have no code */
        assert(world_body_has(world, "\"code\":\"") || status == 503);
    for (int i = 0; world->streaming && i < 100 && world_stream(world) > 0;)
        i++;
    mem_free(target_copy);
    mem_free(type_copy);
    mem_free(header);
    return 0;
}
