#include "answers.h"
#include "line.h"
#include "unit.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

/* The head, and a body as long as it says. */
static void request_read(int fd, char request[ANSWERS_REQUEST_MAX])
{
    size_t length = 0, wanted = ANSWERS_REQUEST_MAX - 1;
    while (length < wanted) {
        ssize_t got = read(fd, request + length, ANSWERS_REQUEST_MAX - 1 - length);
        assert_true(got > 0);
        length += (size_t)got;
        request[length] = '\0';
        const char *end = strstr(request, "\r\n\r\n");
        const char *body = strstr(request, "Content-Length: ");
        if (end)
            wanted = (size_t)(end - request) + 4 + (body ? strtoul(body + 16, NULL, 10) : 0);
    }
}

static void *answers_run(void *context)
{
    struct answers *answers = context;
    while (answers->asked < answers->count) {
        const int at = answers->asked;
        int fd = accept(answers->fd, NULL, NULL);
        if (fd < 0)
            break; /* answers_join waits for no more */
        request_read(fd, answers->requests[at]);
        if (answers->items[at].status)
            dprintf(fd, "HTTP/1.1 %s\r\nContent-Length: %zu\r\nConnection: close\r\n\r\n%s",
                    answers->items[at].status, strlen(answers->items[at].body),
                    answers->items[at].body);
        close(fd);
        answers->asked++;
    }
    shutdown(answers->fd, SHUT_RDWR); /* who asks once more is refused */
    return NULL;
}

void answers_start(struct answers *answers)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof address;
    answers->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(answers->fd, (const struct sockaddr *)&address, size), 0);
    assert_int_equal(listen(answers->fd, 8), 0);
    assert_int_equal(getsockname(answers->fd, (struct sockaddr *)&address, &size), 0);
    snprintf(answers->url, sizeof answers->url, "http://127.0.0.1:%u", ntohs(address.sin_port));
    assert_int_equal(pthread_create(&answers->thread, NULL, answers_run, answers), 0);
}

void answers_join(struct answers *answers)
{
    shutdown(answers->fd, SHUT_RDWR); /* what has not been asked by now is not asked any more */
    pthread_join(answers->thread, NULL);
    close(answers->fd);
    assert_int_equal(answers->asked, answers->count);
}

int answers_run_line(struct answers *answers, const char *line,
                     int (*run)(struct cli *cli, const void *context), const void *context,
                     char *printed, size_t size)
{
    struct cli cli;
    int to = memfd_create("printed", MFD_CLOEXEC), saved = dup(STDOUT_FILENO);
    assert_true(to >= 0 && saved >= 0);
    answers->asked = 0;
    assert_int_equal(parse(&cli, line), 0);
    answers_start(answers);
    cli.client = client_new(answers->url, NULL, NULL);
    fflush(stdout);
    dup2(to, STDOUT_FILENO);
    int code = run(&cli, context);
    fflush(stdout);
    dup2(saved, STDOUT_FILENO);
    answers_join(answers);
    ssize_t length = pread(to, printed, size - 1, 0);
    assert_true(length >= 0);
    printed[length] = '\0';
    client_free(cli.client);
    mem_free(cli.arguments);
    close(to);
    close(saved);
    return code;
}

static int command_run(struct cli *cli, const void *context)
{
    (void)context;
    cli_output_choose(cli);
    return cli->command->run(cli);
}

int answers_command(struct answers *answers, const char *line, char *printed, size_t size)
{
    return answers_run_line(answers, line, command_run, NULL, printed, size);
}

void answers_header(const struct answers *answers, int request, const char *name, char *value,
                    size_t size)
{
    char label[64];
    snprintf(label, sizeof label, "\r\n%s: ", name);
    const char *at = strstr(answers->requests[request], label);
    at = at ? at + strlen(label) : "";
    snprintf(value, size, "%.*s", (int)strcspn(at, "\r"), at);
}
