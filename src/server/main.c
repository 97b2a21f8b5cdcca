/* main.c — skepd: arguments, signals, start and end. */
#include "api/api.h"
#include "base/buf.h"
#include "base/err.h"
#include "server/audit.h"
#include "server/end_watch.h"
#include "server/notify_watch.h"
#include "server/server.h"
#include "store/sqlite/backup.h"
#include "store/store.h"
#include "sys/cleanup.h"
#include "sys/clock.h"
#include "sys/file.h"
#include "sys/ids.h"
#include "sys/log.h"
#include "sys/log_file.h"
#include "sys/log_ring.h"
#include "sys/process.h"
#include "sys/secret.h"
#include <errno.h>
#include <getopt.h>
#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

enum { EXIT_USAGE = 2, EXIT_CONFIG = 3, EXIT_IN_USE = 4, EXIT_DATA = 5, OOM_SCORE = -500 };
enum { MEMORY_KEEP = 16 << 20 }; /* bytes, of each heap */

struct options {
    const char *config_path, *data_directory, *listen, *password_path, *reset_user;
    const char *backup_path, *restore_path, *portal_folder, *notify_address;
    bool is_check, is_audit, is_rotation, accepts_loss, replaces, takes_clock;
};

static void usage(FILE *out)
{
    fputs(
        "usage: skepd [--config FILE] [--data DIRECTORY] [--listen ADDRESS:PORT]\n"
        "             [--password-file FILE] [--reset-password USER] [--check] [--audit]\n"
        "             [--rotate-key] [--accept-loss] [--backup FILE] [--restore FILE [--replace]]\n"
        "             [--take-clock] [--portal-dir DIR] [--notify-test ADDRESS]\n"
        "             [--version] [--help]\n"
        "\n"
        "  --config FILE         configuration, YAML (docs/operator/configuration.md);\n"
        "                        default: /etc/skep/skepd.yaml when it exists\n"
        "  --data DIRECTORY      where everything is kept (default /var/lib/skep)\n"
        "  --listen ADDR:PORT    where the API listens (default 127.0.0.1:9186)\n"
        "  --password-file FILE  a first start writes the admin's password there, mode 600,\n"
        "                        instead of showing it\n"
        "  --reset-password USER give the user a new random password, show it, revoke all\n"
        "                        tokens of the user, and end\n"
        "  --audit               step through the event log again and compare with the rows,\n"
        "                        while no server runs, and end\n"
        "  --rotate-key          seal all secrets of jobs by a new key, while no server runs, and\n"
        "                        end; one that was ended in between is gone on with\n"
        "  --take-clock          make the next start take the time of the machine's clock, which\n"
        "                        is right, at once, and end; time limits count the difference\n"
        "  --accept-loss         start though the database lacks what had been stored, or is\n"
        "                        another one than was there (docs/operator/backup.md)\n"
        "  --backup FILE         copy the database, and the key, into FILE, and end; a server may\n"
        "                        be at work; not with PostgreSQL (docs/operator/backup.md)\n"
        "  --restore FILE        put a backup into the data directory, and end\n"
        "  --replace             with --restore: put the database away that is there\n"
        "  --portal-dir DIR      serve the portal's files from there instead of the built-in\n"
        "                        ones; for its development\n"
        "  --notify-test ADDRESS send a mail there by notifications.smtp of the configuration, to\n"
        "                        see whether it arrives, and end\n"
        "  --check               read the configuration, check the database, and end\n"
        "\n"
        "exit status: 0 ended as asked; 1 failed; 2 usage; 3 the configuration is wrong;\n"
        "4 the data directory, or the database, is in use; 5 the database is damaged, lacks what\n"
        "had been stored, or is of a newer program\n",
        out);
}

static int options_read(int argc, char **argv, struct options *options)
{
    static const struct option names[] = {
        {"config", required_argument, NULL, 'c'},
        {"data", required_argument, NULL, 'd'},
        {"listen", required_argument, NULL, 'l'},
        {"password-file", required_argument, NULL, 'p'},
        {"reset-password", required_argument, NULL, 'r'},
        {"portal-dir", required_argument, NULL, 'w'},
        {"notify-test", required_argument, NULL, 'n'},
        {"check", no_argument, NULL, 'k'},
        {"audit", no_argument, NULL, 'a'},
        {"rotate-key", no_argument, NULL, 'K'},
        {"take-clock", no_argument, NULL, 'T'},
        {"accept-loss", no_argument, NULL, 'L'},
        {"backup", required_argument, NULL, 'b'},
        {"restore", required_argument, NULL, 'R'},
        {"replace", no_argument, NULL, 'P'},
        {"version", no_argument, NULL, 'v'},
        {"help", no_argument, NULL, 'h'},
        {NULL, 0, NULL, 0},
    };
    int letter;
    while ((letter = getopt_long(argc, argv, "c:d:l:h", names, NULL)) >= 0) {
        switch (letter) {
        case 'c':
            options->config_path = optarg;
            break;
        case 'd':
            options->data_directory = optarg;
            break;
        case 'l':
            options->listen = optarg;
            break;
        case 'p':
            options->password_path = optarg;
            break;
        case 'r':
            options->reset_user = optarg;
            break;
        case 'n':
            options->notify_address = optarg;
            break;
        case 'k':
            options->is_check = true;
            break;
        case 'a':
            options->is_audit = true;
            break;
        case 'K':
            options->is_rotation = true;
            break;
        case 'T':
            options->takes_clock = true;
            break;
        case 'b':
            options->backup_path = optarg;
            break;
        case 'R':
            options->restore_path = optarg;
            break;
        case 'P':
            options->replaces = true;
            break;
        case 'w':
            options->portal_folder = optarg;
            break;
        case 'L':
            options->accepts_loss = true;
            break;
        case 'v':
            puts("skepd " SKEP_VERSION);
            exit(0);
        case 'h':
            usage(stdout);
            exit(0);
        default:
            usage(stderr);
            return -1;
        }
    }
    if (optind < argc) {
        fprintf(stderr, "skepd: %s: no such argument\n", argv[optind]);
        usage(stderr);
        return -1;
    }
    return 0;
}

static int config_load(const struct options *options, struct server_config **config)
{
    const char *path = options->config_path;
    cleanup_buf struct buf report = BUF_INIT;
    if (!path && access("/etc/skep/skepd.yaml", F_OK) == 0)
        path = "/etc/skep/skepd.yaml";
    struct err err;
    int code = server_config_read(path, config, &report, &err);
    for (struct text rest = buf_as_text(&report); rest.length > 0;) {
        struct text line = text_cut(&rest, '\n');
        if (line.length > 0)
            log_line(code < 0 ? LOG_ERROR : LOG_WARNING, "config", "%.*s", TEXT_ARG(line));
    }
    if (code < 0) {
        log_error("config", "%s", err.text);
        return code;
    }
    (*config)->is_data_given = options->data_directory != NULL;
    if (options->data_directory)
        (*config)->data_directory = options->data_directory;
    (*config)->is_listen_given = options->listen != NULL;
    if (options->listen)
        (*config)->listen = options->listen;
    (*config)->accepts_loss = options->accepts_loss;
    return 0;
}

static int exit_status_of(int code)
{
    switch (code) {
    case ERR_INVALID:
        return EXIT_CONFIG;
    case ERR_CONFLICT:
        return EXIT_IN_USE;
    case ERR_CORRUPT:
    case ERR_UNSUPPORTED:
        return EXIT_DATA;
    default:
        return EXIT_FAILURE;
    }
}

/* systemd's protocol: a word on the socket that it names. */
static void tell_systemd(const char *word)
{
    const char *path = getenv("NOTIFY_SOCKET");
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    size_t length = path ? strlen(path) : 0;
    if (!path || (path[0] != '/' && path[0] != '@') || length >= sizeof address.sun_path)
        return;
    memcpy(address.sun_path, path, length);
    if (path[0] == '@')
        address.sun_path[0] = '\0';
    cleanup_close int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return;
    if (sendto(fd, word, strlen(word), MSG_NOSIGNAL, (struct sockaddr *)&address,
               (socklen_t)(offsetof(struct sockaddr_un, sun_path) + strlen(path))) < 0)
        log_warning("server", "systemd cannot be told: %s", strerror(errno));
}

static int tell_password(void *context, const char *user, const char *password, struct err *err)
{
    const struct options *options = context;
    if (!options->password_path) {
        /* not into the log: it is kept and copied */
        printf("user %s has a new password, shown only now: %s\n", user, password);
        fflush(stdout);
        return 0;
    }
    char line[64];
    snprintf(line, sizeof line, "%s\n", password);
    int code = file_write(options->password_path, text_of(line), 0600, err);
    secret_wipe(line, sizeof line);
    return code;
}

static void reload(const struct options *options, struct server *server, struct api *api,
                   const struct server_config *first)
{
    cleanup_buf struct buf keys = BUF_INIT;
    struct server_config *config;
    if (config_load(options, &config) < 0) {
        log_error("config", "the configuration stays as it was");
        return;
    }
    server_config_compare(first, config, &keys);
    if (keys.length)
        log_warning("config", "takes effect only after a restart: %s", buf_cstr(&keys));
    log_setup(config->log_level, config->log_format);
    server_reload(server, config);
    struct err err;
    if (api_reload(api, &err) < 0)
        log_error("api", "the certificate stays as it was: %s", err.text);
    log_info("config", "read again");
}

static void wait_for_signals(const struct options *options, struct server *server, struct api *api,
                             const struct server_config *first, const sigset_t *signals)
{
    int number;
    for (;;) {
        if (sigwait(signals, &number) != 0)
            continue;
        if (number != SIGHUP)
            break;
        reload(options, server, api, first);
    }
    log_info("server", "%s: ending; containers go on", strsignal(number));
}

/* Whoever waits for the end of this process has it; the log says why it was not the usual one. */
static void end_by_force(void *context, const char *stage)
{
    (void)context;
    log_error("server", "ended by force after %d s: still waiting for %s", END_MAX_MS / 1000,
              stage);
    _exit(EXIT_FAILURE);
}

static void end(struct server *server, struct api *api)
{
    const struct end_watch_config bound = {
        .tell_ms = END_TELL_MS, .limit_ms = END_MAX_MS, .give_up = end_by_force};
    struct end_watch *watch = end_watch_start(&bound, "connections and sessions in tasks");
    server_drain(server);
    api_drain(api);
    end_watch_stage(watch, "what was taken, and the launcher");
    server_stop(server);
    end_watch_stage(watch, "requests under way");
    api_stop(api);
    end_watch_stage(watch, "the engines and the store");
    server_free(server);
    end_watch_stop(watch);
}

/* Once the data directory is ours alone. Without it the log goes to standard error all the same. */
static struct log_keeper *log_begin(struct server_config *config)
{
    const char *folder = arena_format(&config->arena, "%s/log", config->data_directory);
    struct log_keeper *file = NULL;
    struct err err;
    if (log_file_open(folder, &file, &err) < 0)
        log_warning("server", "the log has no space of its own: %s", err.text);
    log_keep(file);
    return file;
}

/* As the local engine shows storages to its tasks, and leaves room on their disks. */
static struct api_files files_of(const struct server_config *config)
{
    enum { RESERVE_MIB = 1024 }; /* as the local engine's */
    struct api_files files = {.is_on = config->has_files,
                              .upload_max = (uint64_t)config->upload_max_mib << 20,
                              .reserve = (uint64_t)RESERVE_MIB << 20,
                              .nobody = ID_RANGES_FIRST};
    for (size_t i = 0; i < config->engine_count; i++) {
        const struct engine_config *engine = &config->engines[i];
        if (engine->kind != ENGINE_KIND_LOCAL)
            continue;
        if (engine->local.disk_reserve_mib)
            files.reserve = (uint64_t)engine->local.disk_reserve_mib << 20;
        if (engine->local.first_id)
            files.nobody = engine->local.first_id;
        break;
    }
    return files;
}

static int run(const struct options *options, struct server_config *config, const sigset_t *signals)
{
    struct server_teller teller = {(void *)(uintptr_t)options, tell_password};
    struct server_config *first = NULL;
    struct api *api = NULL;
    /* a copy that outlives reloads, to compare with */
    int code = config_load(options, &first);
    if (code < 0) {
        server_config_free(config);
        return EXIT_CONFIG;
    }
    struct err err;
    struct server *server;
    code = server_new(config, &teller, &server, &err);
    if (code < 0) {
        log_error("server", "%s", err.text);
        server_config_free(first);
        return exit_status_of(code);
    }
    struct log_keeper *kept = log_begin(first);
    struct api_config api_config = {
        .listen = first->listen,
        .tls = first->tls,
        .certificate = first->certificate_path,
        .key = first->key_path,
        .clients = first->tls_clients,
        .tls_folder = arena_format(&first->arena, "%s/tls", first->data_directory),
        .socket = server_socket(first, &first->arena),
        .socket_user = first->admin_name,
        .oidc = first->has_oidc ? &first->oidc : NULL,
        .ldap = first->has_ldap ? &first->ldap : NULL,
        .origins = first->origins,
        .origin_count = first->origin_count,
        .proxies = first->proxies,
        .proxy_count = first->proxy_count,
        .hsts_s = first->hsts_s,
        .files = files_of(first),
        .web_listen = first->web_listen,
        .web_origin = first->web_origin,
        .threads = first->threads,
        .door = server_door(server),
        .service = server_service(server),
        .is_config_shared = first->is_config_shared,
        .is_log_shared = first->is_log_shared,
        .has_sign_up = first->has_sign_up,
        .is_v1_read_open = first->is_v1_read_open,
        .images = first->images,
        .manual_url = first->manual_url,
        .feedback_url = first->feedback_url,
        .plugins = first->plugins,
        .portal_folder = options->portal_folder,
    };
    server_start(server);
    code = api_start(&api_config, &api, &err);
    if (code < 0) {
        log_error("server", "%s", err.text);
        server_free(server);
        log_keep(NULL);
        log_file_close(kept);
        server_config_free(first);
        return EXIT_FAILURE;
    }
    server_listens(server, api_port(api));
    log_info("server", "skepd " SKEP_VERSION " is ready, port %u (%s)", api_port(api),
             api_scheme(api));
    tell_systemd("READY=1");
    wait_for_signals(options, server, api, first, signals);
    tell_systemd("STOPPING=1");
    const int status = server_must_restart(server) ? EXIT_FAILURE : 0;
    end(server, api);
    server_config_free(first);
    log_info("server", "ended");
    log_keep(NULL);
    log_file_close(kept);
    return status;
}

/* When the machine's memory runs out it shall be a task that is killed: tasks get 0, this is what
 * Docker's daemon has. A unit file, or whoever starts us with a lower one, goes first. */
static void protect_from_oom(void)
{
    if (process_oom_score(0) == 0 && !process_oom_score_put(0, OOM_SCORE))
        log_debug("server", "no right to be protected when the machine's memory runs out");
}

static int database_open(const struct server_config *config, struct store **store, struct err *err)
{
    return store_open_with(config->data_directory,
                           &(struct store_opening){.address = config->database}, store, err);
}

static int reset_password(const struct options *options, struct server_config *config)
{
    struct server_teller teller = {(void *)(uintptr_t)options, tell_password};
    struct store *store;
    struct err err;
    int code = database_open(config, &store, &err);
    if (code == 0) {
        code = server_password_reset(store, options->reset_user, &teller, &err);
        store_close(store);
    }
    if (code < 0)
        log_error("server", "%s", err.text);
    else
        log_info("server", "user %s has a new password; all tokens of the user are revoked",
                 options->reset_user);
    server_config_free(config);
    return code < 0 ? exit_status_of(code) : 0;
}

static int notify_test(const struct options *options, struct server_config *config)
{
    struct err err;
    const int code = notify_try(&config->notify, text_of(options->notify_address), &err);
    if (code < 0)
        log_error("notify", "%s", err.text);
    else
        printf("a mail to %s was taken by %s\n", options->notify_address, config->notify.smtp.url);
    server_config_free(config);
    return code < 0 ? EXIT_FAILURE : 0;
}

static int rotate_key(struct server_config *config)
{
    struct store *store;
    struct err err;
    size_t count = 0;
    int code = database_open(config, &store, &err);
    if (code == 0) {
        code = server_key_rotate(store, config->data_directory, &count, &err);
        store_close(store);
    }
    if (code < 0)
        log_error("server", "%s", err.text);
    else
        log_info("server", "the secrets of %zu jobs are sealed by a new key", count);
    server_config_free(config);
    return code < 0 ? exit_status_of(code) : 0;
}

static int take_clock(struct server_config *config)
{
    struct store *store;
    struct err err;
    int code = database_open(config, &store, &err);
    if (code == 0) {
        code = server_clock_forget(store, &err);
        store_close(store);
    }
    if (code < 0)
        log_error("server", "%s", err.text);
    else
        log_info("server", "the next start takes the time of the machine's clock");
    server_config_free(config);
    return code < 0 ? exit_status_of(code) : 0;
}

static int check(struct server_config *config)
{
    const struct store_opening opening = {.address = config->database};
    struct err err;
    bool is_there;
    /* before the first start: nothing is made for a mere look */
    int code = store_find(config->data_directory, &opening, &is_there, &err);
    if (code == 0 && !is_there) {
        log_info("config", "the configuration is sound; there is no database yet");
        server_config_free(config);
        return 0;
    }
    struct store *store;
    if (code == 0)
        code = database_open(config, &store, &err);
    if (code == 0) {
        code = store_check(store, &err);
        store_close(store);
    }
    if (code < 0)
        log_error("store", "%s", err.text);
    else
        log_info("store", "the configuration and the database are sound");
    server_config_free(config);
    return code < 0 ? exit_status_of(code) : 0;
}

/* PostgreSQL has its own means, which know all of it. */
static int refuse_copy(struct server_config *config, const char *advice)
{
    log_error("store", "the database is PostgreSQL's: %s (docs/operator/postgresql.md)", advice);
    server_config_free(config);
    return EXIT_FAILURE;
}

static int backup(const struct options *options, struct server_config *config)
{
    if (config->database[0])
        return refuse_copy(config, "back it up with pg_dump, and copy the file key");
    uint64_t bytes;
    struct err err;
    int code = store_backup(config->data_directory, options->backup_path, &bytes, &err);

    if (code < 0)
        log_error("store", "no backup was made: %s", err.text);
    else
        log_info("store", "%s holds %s, %.1f MiB: whoever reads it reads all secrets",
                 options->backup_path, config->data_directory, (double)bytes / (1 << 20));
    server_config_free(config);
    return code < 0 ? exit_status_of(code) : 0;
}

static int restore(const struct options *options, struct server_config *config)
{
    if (config->database[0])
        return refuse_copy(config, "restore it with pg_restore, and put the file key back");
    struct err err;
    int code = store_restore_backup(options->restore_path, config->data_directory,
                                    options->replaces, &err);

    if (code < 0)
        log_error("store", "the backup is not in place: %s", err.text);
    else
        log_info("store", "%s has been restored from %s", config->data_directory,
                 options->restore_path);
    server_config_free(config);
    return code < 0 ? exit_status_of(code) : 0;
}

static int audit(struct server_config *config)
{
    struct store *store;
    struct audit found = {0};
    struct err err;
    int code = database_open(config, &store, &err);
    if (code == 0) {
        code = server_audit(store, &config->core, &found, &err);
        store_close(store);
    }
    if (code < 0)
        log_error("audit", "%s", err.text);
    else
        log_info("audit", "%llu events of %llu starts give what the rows say of %llu jobs",
                 (unsigned long long)found.events, (unsigned long long)found.restores,
                 (unsigned long long)found.jobs);
    server_config_free(config);
    return code < 0 ? exit_status_of(code) : 0;
}

int main(int argc, char **argv)
{
    struct options options = {0};
    if (options_read(argc, argv, &options) < 0)
        return EXIT_USAGE;
    umask(077);
    /* a big reply's memory serves the next one: giving it back to the kernel each time costs as
     * much as making the reply */
    mallopt(M_MMAP_THRESHOLD, MEMORY_KEEP);
    mallopt(M_TRIM_THRESHOLD, MEMORY_KEEP);
    /* without fast bins: they gather until some free() has to join all of them at once, which takes
     * milliseconds of the core thread when a job of thousands of tasks has ended */
    mallopt(M_MXFAST, 0);
    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN); /* a limit on the size of files is an error like a full disk */
    sigset_t signals;
    /* all threads inherit this; the main thread waits for them */
    sigemptyset(&signals);
    sigaddset(&signals, SIGTERM);
    sigaddset(&signals, SIGINT);
    sigaddset(&signals, SIGHUP);
    pthread_sigmask(SIG_BLOCK, &signals, NULL);
    struct rlimit files;
    if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
        files.rlim_cur = files.rlim_max;
        setrlimit(RLIMIT_NOFILE, &files);
    }
    struct err err;
    if (secret_init(&err) < 0) {
        log_error("server", "%s", err.text);
        return EXIT_FAILURE;
    }
    struct server_config *config;
    if (config_load(&options, &config) < 0)
        return EXIT_CONFIG;
    log_setup(config->log_level, config->log_format);
    if (options.backup_path)
        return backup(&options, config);
    if (options.restore_path)
        return restore(&options, config);
    if (options.is_check)
        return check(config);
    if (options.is_audit)
        return audit(config);
    if (options.is_rotation)
        return rotate_key(config);
    if (options.takes_clock)
        return take_clock(config);
    if (options.notify_address)
        return notify_test(&options, config);
    if (options.reset_user)
        return reset_password(&options, config);
    protect_from_oom();
    log_ring_start(clock_unix_ms());
    const int status = run(&options, config, &signals);
    log_ring_stop();
    return status;
}
