/* Early job files in protocol 2: they mean the same, and keep their comments. */
#include "parse.h"
#include "unit.h"

#include "base/err.h"
#include "spec/convert.h"

struct conversion {
    struct parse before, after;
    struct buf out, report;
    struct spec_converted converted;
};

static void convert(struct conversion *c, const char *source)
{
    cleanup_arena struct arena arena;
    cleanup_problems struct problems problems;
    *c = (struct conversion){0};
    arena_init(&arena);
    problems_init(&problems, &arena);
    int code = spec_convert(text_of(source), &arena, &c->out, &problems, &c->converted);
    problems_print(&problems, "job", &c->report);
    parse(&c->before, source);
    parse_text(&c->after, buf_as_text(&c->out));
    if (code || !c->after.spec)
        fail_msg("%s%s\n%s", buf_cstr(&c->report), buf_cstr(&c->after.report), buf_cstr(&c->out));
}

static void convert_free(struct conversion *c)
{
    parse_free(&c->before);
    parse_free(&c->after);
    buf_release(&c->out);
    buf_release(&c->report);
}

/* Everything but names, and commands, which get lines before them. */
static void roles_same(const struct conversion *c)
{
    const struct spec *before = c->before.spec, *after = c->after.spec;
    assert_int_equal(after->role_count, before->role_count);
    assert_int_equal(after->has_start_barrier, before->has_start_barrier);
    assert_int_equal(after->is_gang, before->is_gang);
    assert_int_equal(after->is_debug, before->is_debug);
    assert_string_equal(after->virtual_cluster, before->virtual_cluster);
    for (size_t i = 0; i < after->role_count; i++) {
        const struct spec_role *one = &before->roles[i], *other = &after->roles[i];
        assert_int_equal(other->instances, one->instances);
        assert_int_equal(other->cpu, one->cpu);
        assert_int_equal(other->memory_mib, one->memory_mib);
        assert_int_equal(other->gpu, one->gpu);
        assert_int_equal(other->shm_mib, one->shm_mib);
        assert_int_equal(other->port_count, one->port_count);
        assert_int_equal(other->completion.min_failed, one->completion.min_failed);
        assert_int_equal(other->completion.min_succeeded, one->completion.min_succeeded);
        assert_string_equal(other->placement.sku_type, one->placement.sku_type);
        assert_string_equal(after->images[other->image].uri, before->images[one->image].uri);
    }
}

static void has(const struct buf *text, const char *part)
{
    if (!strstr(buf_cstr(text), part))
        fail_msg("%s\nlacks: %s", buf_cstr(text), part);
}

static void test_v1(void **state)
{
    (void)state;
    struct conversion c;
    convert(
        &c,
        "// what it is\n{\n\"jobName\": \"j\", // name\n\"image\": \"i\",\n\"gpuType\": \"K80\",\n"
        "\"virtualCluster\": \"vc\", \"retryCount\": -1, \"isDebug\": true,\n"
        "\"jobEnvs\": {\"A\": \"it's\"},\n"
        "\"extras\": {\"hang\": {\"afterSeconds\": 9}, \"debug\": true},\n"
        "\"taskRoles\": [ /* roles */\n"
        "{\"name\": \"ps\", \"command\": \"a\\nb\", \"taskNumber\": 2, \"minFailedTaskCount\": "
        "null},\n"
        "// workers\n"
        "{\"name\": \"w\", \"command\": \" c \", \"gpuNumber\": 1, \"shmMB\": 100,\n"
        " \"portList\": [{\"label\": \"tb\", \"portNumber\": 2}]}]}\n// end");
    roles_same(&c);
    assert_string_equal(buf_cstr(&c.report), "");
    assert_int_equal(c.converted.format, SPEC_V1);
    assert_int_equal(c.converted.loss_count, 0);
    assert_int_equal(c.after.spec->retry_count, SPEC_RETRY_MAX);
    assert_int_equal(c.after.spec->hang_after_s, 9);
    assert_string_equal(c.after.spec->roles[0].command,
                        "set +e +u +o pipefail\nexport A='it'\\''s'\na\nb");
    assert_true(c.after.spec->roles[1].is_ssh_enabled);
    has(&c.out, "# what it is\nprotocolVersion: 2\nname: j # name\n");
    has(&c.out, "taskRoles: # roles\n");
    has(&c.out, "  # workers\n  w:\n");
    has(&c.out, "\n# end\n");
    convert_free(&c);
}

static void test_losses(void **state)
{
    (void)state;
    struct conversion c;
    convert(&c,
            "{\"jobName\": \"a.b\", \"image\": \"i\", \"codeDir\": \"/c\", \"retryCount\": -2,\n"
            "\"killAllOnCompletedTaskNumber\": 1, \"jobEnvs\": {\"a.b\": 1, \"1x\": 2},\n"
            "\"taskRoles\": [{\"name\": \"a.b\", \"command\": \"x\"}, {\"name\": \"a_b\", "
            "\"command\": \"x\"},\n"
            "{\"name\": \"1\", \"command\": \"x\", \"portList\": [{\"label\": \"a.b\"},\n"
            "{\"label\": \"a_b\", \"beginAt\": 9}]}]}");
    roles_same(&c);
    assert_int_equal(c.converted.loss_count, 8);
    assert_string_equal(c.after.spec->name, "a_b");
    assert_string_equal(c.after.spec->roles[0].name, "a_b");
    assert_string_equal(c.after.spec->roles[1].name, "a_b_2");
    assert_string_equal(c.after.spec->roles[2].name, "_1");
    has(&c.report, "job:1:45: warning: codeDir: protocol 2 has no file space");
    has(&c.out, "# Lost: codeDir: protocol 2 has no file space");
    has(&c.out, "# Lost: killAllOnCompletedTaskNumber");
    has(&c.out, "# Lost: retryCount");
    has(&c.out, "# Lost: jobEnvs");
    has(&c.out, "# Lost: taskRoles[2].portList[1]: protocol 2 cannot ask");
    convert_free(&c);
}

static void test_market(void **state)
{
    (void)state;
    struct conversion c;
    convert(&c,
            "# head\nprotocol_version: v2\nname: m # the name\ntype: job\nversion: 1.0.0\n"
            "description: ''\ngpuType: K80\nparameters:\n  n: 2 # two\n  s: x y\n  l: [1, 2]\n"
            "tasks:\n# worker\n- role: w\n  data: d\n  script: s\n  output: o\n  dockerimage: i\n"
            "  resource: {instances: $$n$$, resourcePerInstance: {gpu: 1}}\n"
            "  parameters: {p: $$s$$, q: true}\n  command:\n  # why\n  - echo $$p$$ $$n$$ $$q$$ "
            "$$l$$ $$\n"
            "- {role: v, dockerimage: i, command: [ls]}\n"
            "prerequisites:\n# image\n- {name: i, type: dockerimage, uri: u}\n"
            "- {name: d, type: data, uri: x} # data\n- {name: s, type: script, uri: [a, b]}\n"
            "- {name: o, type: output, uri: y, command: [cp]}\n# last\n");
    roles_same(&c);
    assert_int_equal(c.converted.format, SPEC_MARKET);
    assert_int_equal(c.converted.loss_count, 0);
    assert_int_equal(c.after.spec->retry_count, 1);
    assert_int_equal(c.after.spec->roles[0].instances, 2);
    has(&c.out, "# head\nprotocolVersion: 2\nname: m # the name\n");
    has(&c.out, "  # worker\n  w:\n");
    has(&c.out, "      # why\n      - \"echo <% $parameters.s %> <% $parameters.n %> true "
                "<% $parameters.l %> $$\"\n");
    has(&c.out, "  # image\n  - name: i\n");
    has(&c.out, "  - name: d # data\n");
    has(&c.out, "  \"n\": 2 # two\n");
    has(&c.out, "uri: a,b\n");
    has(&c.out, "\n# last\n");
    convert_free(&c);
}

/* The commands are the same once the values are put in, but for the line before them. */
static void commands_same(const struct conversion *c)
{
    for (size_t i = 0; i < c->before.spec->role_count; i++) {
        static const char first[] = "set +e +u +o pipefail\n";
        const char *command = c->after.spec->roles[i].command;
        assert_memory_equal(command, first, strlen(first));
        assert_string_equal(command + strlen(first), c->before.spec->roles[i].command);
    }
}

static void test_market_values(void **state)
{
    (void)state;
    struct conversion c;
    convert(&c, "name: m-1\ntype: job\ncontributor: me\ndescription: 1 of 2\n"
                "parameters: {a: x $$b$$, b: 1, c: [1, null], d: [y, $$b$$], e: [], Z_9: q, image: "
                "img,\n  set: d1, t: true}\n"
                "tasks:\n- role: A-1\n  data: $$set$$\n  dockerimage: $$image$$\n  output: out\n"
                "  parameters: {l: [p, $$a$$, yes, true], f: false}\n"
                "  command:\n  - $$a$$ $$b$$ $$c$$ $$d$$ $$e$$ $$Z_9$$ $$t$$ $$b$\n"
                "  - $$l$$ $$f$$ $$x$$\n  - '  '\n  - $$role$$\n"
                "  resource: {portList: [{label: tb, portNumber: 2}, {label: 9.x}]}\n"
                "- {role: other, dockerimage: j, script: s1, command: [$$b$$]}\n"
                "prerequisites:\n- {name: img, type: dockerimage, uri: u, description: i}\n"
                "- {name: j, type: dockerimage, uri: v}\n"
                "- {name: d1, type: data, command: [echo $$b$$]}\n"
                "- {name: d2, type: data, uri: [x, y]}\n"
                "- {name: s1, type: script, uri: 'x.git,http://y/z.tgz,http://y/a.gz,hdfs://b,'}\n"
                "- {name: out, type: output, uri: '', command: echo $$b$$}\n");
    roles_same(&c);
    commands_same(&c);
    assert_int_equal(c.converted.loss_count, 1);
    has(&c.out, "- \"x <% $parameters.b %> <% $parameters.b %> 1,null y,<% $parameters.b %> "
                "<% $parameters.e %> <% $parameters.Z_9 %> <% $parameters.t %> $$b$\"\n");
    has(&c.out, "- \"p,<% $parameters.a %>,yes,true false $$x$$\"\n");
    has(&c.out, "- \"echo $$b$$\"\n");
    has(&c.out, "    data: d1\n");
    has(&c.out, "contributor: me\n");
    has(&c.report, "tasks[0]: gets another name");
    has(&c.report, "tasks[0].resource.portList[1]: protocol 2 does not allow this label");
    convert_free(&c);
    convert(&c, "name: m\ntype: job\ntasks: [{role: r, dockerimage: i, command: [ls $$x$$]}]\n"
                "prerequisites: [{name: i, type: dockerimage, uri: u}]\n");
    roles_same(&c);
    commands_same(&c);
    convert_free(&c);
}

/* Comments are looked for in what the file was read as. */
static void test_notations(void **state)
{
    (void)state;
    struct conversion c;
    convert(
        &c,
        "\xef\xbb\xbf// head\n{\n\"jobName\": \"J1\", // name\n\"image\": \"i\", \"taskRoles\": "
        "[{\"name\": \"w\", \"command\": \"x\"}]}");
    has(&c.out, "# head\nprotocolVersion: 2\nname: J1 # name\n");
    convert_free(&c);
    convert(&c, "{name: m, type: job, # what it is\n parameters: {u: http://x/y},\n"
                " tasks: [{role: r, dockerimage: i, command: [ls]}], # roles\n"
                " prerequisites: [{name: i, type: dockerimage, uri: http://x/y}]}\n");
    has(&c.out, "name: m # what it is\n");
    has(&c.out, "taskRoles: # roles\n");
    has(&c.out, "parameters:\n  u: http://x/y\n");
    assert_null(strstr(buf_cstr(&c.out), "# x/y"));
    convert_free(&c);
}

/* Extras that would mean something else now are left out; variables that a shell can set are set.
 */
static void test_v1_extras(void **state)
{
    (void)state;
    struct conversion c;
    convert(&c, "{\"jobName\": \"J\", \"image\": \"i\", \"jobEnvs\": {\"_Ab9\": 1, \"a.b\": 2, "
                "\"1\": 3, \"A-\": 4},\n"
                "\"extras\": {\"startBarrier\": false, \"hivedScheduler\": {}, "
                "\"com.microsoft.pai.runtimeplugin\": [], \"gangAllocation\": false,\n"
                " \"storages\": [], \"own\": {\"x\": [1, {\"y\": null}]}},\n"
                "\"taskRoles\": [{\"name\": \"W~1\", \"command\": \"x\"}]}");
    roles_same(&c);
    assert_int_equal(c.converted.loss_count, 3);
    has(&c.out, "- \"export _Ab9='1'\"\n");
    has(&c.out,
        "extras:\n  startBarrier: true\n  own:\n    x:\n      - 1\n      - \"y\": null\n# Lost");
    assert_true(c.after.spec->is_gang);
    convert_free(&c);
}

static void test_others(void **state)
{
    (void)state;
    struct conversion c;
    convert(&c, HELLO "# end\n");
    assert_string_equal(buf_cstr(&c.out), HELLO "# end\n");
    assert_int_equal(c.converted.format, SPEC_V2);
    convert_free(&c);
    cleanup_arena struct arena arena;
    cleanup_problems struct problems problems;
    struct buf out = BUF_INIT;
    struct spec_converted converted;
    arena_init(&arena);
    problems_init(&problems, &arena);
    assert_int_equal(spec_convert(TEXT("{}"), &arena, &out, &problems, &converted), ERR_INVALID);
    assert_int_equal(out.length, 0);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_v1),        cmocka_unit_test(test_losses),
    cmocka_unit_test(test_market),    cmocka_unit_test(test_market_values),
    cmocka_unit_test(test_notations), cmocka_unit_test(test_v1_extras),
    cmocka_unit_test(test_others),
};
UNIT_FILE(tests, NULL, NULL);
