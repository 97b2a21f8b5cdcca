/* registry.h — registries of images on this machine, for system tests. */
#ifndef TESTS_SYSTEM_ENGINE_REGISTRY_H
#define TESTS_SYSTEM_ENGINE_REGISTRY_H
#include <stdbool.h>
#include <sys/types.h>

struct registry {
    pid_t pid;
    unsigned port;
    char folder[300];
    bool has_password;
};

/* A port of this machine that nobody listens on, this process's own until it ends: neither the
 * servers of other tests take it (task_ports.py has the same marks), nor is it one of those that
 * the kernel gives to clients. */
unsigned free_port(void);

/* docker-registry in FOLDER/NAME, at a free port; with a password it knows bob, whose is "secret".
 */
void registry_make(struct registry *registry, const char *folder, const char *name,
                   bool has_password);
/* One that was made, once more. */
void registry_start(struct registry *registry);
void registry_stop(struct registry *registry);
/* "127.0.0.1:PORT/NAME"; one of the last eight. */
const char *image_name(const struct registry *registry, const char *name);

/* A server of ours, in Python, that tells its port on its first line: that. What it tells goes to
 * FOLDER/OUTPUT. */
unsigned script_start(const char *folder, const char *script, const char *argument,
                      const char *output, pid_t *pid);

#endif
