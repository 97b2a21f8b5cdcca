/* Requests of any bytes through router, tokens, bodies and handlers, over a real store and core.
 *
 * Input: METHOD ' ' TARGET '\n' HEADERS '\n' BODY. The first header line is the authorization ("@"
 * stands for a valid token), the second the content type.
 */
#include "../unit/api/world.h"
#include "base/memory.h"
#include <assert.h>
#include <stdlib.h>

static struct world *world;
static const char *token;

static void setup(void)
{
    world = world_new();
    token = world_login(world, "alice");
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
                           text_is(authorization, "@") ? token
                           : header[0]                 ? header
                                                       : NULL,
                           type_copy, body.at ? body : TEXT(""));
    assert(status != 500);
    if (status >= 400)
        assert(world_body_has(world, "\"code\":\"") || status == 503);
    for (int i = 0; world->streaming && i < 100 && world_stream(world) > 0;)
        i++;
    mem_free(target_copy);
    mem_free(type_copy);
    mem_free(header);
    return 0;
}
