/* machine.h — parts of a machine that is made of files, for the tests of the local engine. */
#ifndef TESTS_ENGINE_LOCAL_MACHINE_H
#define TESTS_ENGINE_LOCAL_MACHINE_H
#include "folder.h"
#include "unit.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/text.h"

/* A mount table; '@' stands for the folder. */
static inline struct text mountinfo(const char *lines)
{
    static char text[4096];
    size_t used = 0;
    for (const char *at = lines; *at; at++)
        if (*at == '@')
            used += (size_t)snprintf(text + used, sizeof text - used, "%s", in_folder(""));
        else
            text[used++] = *at;
    return (struct text){text, used};
}

/* A CDI specification of GPUs. */
static const char specification[] =
    "cdiVersion: 0.6.0\nkind: nvidia.com/gpu\n"
    "devices:\n"
    "- name: '0'\n  containerEdits: {deviceNodes: [{path: /dev/null}], env: [ONE=1]}\n"
    "- name: '1'\n  containerEdits: {deviceNodes: [{path: /dev/gpu1, hostPath: /dev/zero, "
    "permissions: rw}]}\n"
    "- name: gone\n  containerEdits: {deviceNodes: [{path: /dev/no-such-device}]}\n"
    "containerEdits:\n  env: [ALL=yes]\n"
    "  deviceNodes: [{path: /dev/nvidiactl, type: c, major: 195, minor: 255}]\n"
    "  mounts: [{hostPath: /usr/lib/libcuda.so, containerPath: /usr/lib/libcuda.so, "
    "options: [ro, nosuid]}]\n"
    "  hooks: [{hookName: createContainer, path: /bin/hook, args: [hook, ldcache]}]\n";

/* What the stand-in for NVML reads, replaced whole. */
static inline void state_put(const char *text)
{
    folder_put("state~", text);
    assert_int_equal(rename(in_folder("state~"), in_folder("state")), 0);
}

/* Of each test file with GPUs: the library reads the file that state_put() writes. */
static inline int gpus_setup(void **state)
{
    if (folder_setup(state) < 0)
        return -1;
    return setenv("FAKE_NVML_STATE", in_folder("state"), 1);
}

/* Of each test: nothing is wrong with the GPUs. */
static inline int gpus_well(void **state)
{
    (void)state;
    state_put("");
    return 0;
}

#endif
