/* engine_in.c — what the engine says, as facts for the core. Exits are judged here, on the engine's
 * thread: searching 10 MiB of log must not hold up the core.
 */
#include "base/err.h"
#include "base/memory.h"
#include "base/printable.h"
#include "engine/translate.h"
#include "exits/judge.h"
#include "job/blame.h"
#include "server/state.h"
#include "sys/file.h"
#include <assert.h>
#include <stdio.h>
#include <string.h>

enum { RULES_BYTES_MAX = 4 << 20, TAIL_RAW_MAX = 16 * STORE_TAIL_MAX };

void server_post_fact(struct server *server, struct server_mail *mail)
{
    atomic_fetch_add(&server->metrics.facts, 1);
    /* refused only at the end; the engine tells it again to the next server */
    if (mailbox_post_wait(&server->mailbox, &mail->mail, NULL) < 0)
        mail_free(mail);
}

struct node_known *server_node_find(struct server *server, const char *name)
{
    uint32_t at = text_map_get(&server->node_names, text_of(name));
    return at == MAP_NONE ? NULL : &server->nodes.items[at];
}

struct node_known *server_node(struct server *server, const char *name)
{
    struct node_known *node = server_node_find(server, name);
    if (node)
        return node;
    node = ARRAY_ADD(&server->nodes);
    node->engine = ENGINE_NONE;
    node_facts_copy(&node->facts, &(struct node_facts){.name = name});
    text_map_set(&server->node_names, text_of(node->facts.name),
                 (uint32_t)(server->nodes.count - 1));
    return node;
}

bool server_node_is_simulated(struct server *server, const char *name)
{
    pthread_mutex_lock(&server->state_lock);
    bool is_simulated = server_node(server, name)->is_gpu_simulated;
    pthread_mutex_unlock(&server->state_lock);
    return is_simulated;
}

/* Under the lock. Of two engines that tell of one name the second is not heard. */
static bool node_take(struct server_engine *own, struct node_known *known)
{
    struct server *server = own->server;
    if (known->engine == ENGINE_NONE || known->is_engine_guessed)
        known->engine = own->number;
    known->is_engine_guessed = false;
    if (known->engine == own->number)
        return true;
    snprintf(own->trouble, sizeof own->trouble, "its node %.100s is one of the engine \"%s\"",
             known->facts.name, server->engines.items[known->engine].name);
    if (!known->is_contested)
        log_error("engine", "%s: %s, and is not taken: names must be unique", own->name,
                  own->trouble);
    known->is_contested = true;
    return false;
}

/* False: it is another engine's. */
static bool node_seen(struct server_engine *own, const struct engine_event *event)
{
    struct server *server = own->server;
    const struct node_facts *node = event->node;
    pthread_mutex_lock(&server->state_lock);
    struct node_known *known = server_node(server, node->name);
    bool is_own = node_take(own, known);
    if (is_own && event->kind == ENGINE_NODE) {
        node_facts_copy(&known->facts, node);
        known->is_gpu_simulated = node->is_gpu_simulated;
        known->is_seen = true;
        known->is_lost = false;
    }
    if (is_own && event->kind == ENGINE_NODE_LOST)
        known->is_lost = true;
    pthread_mutex_unlock(&server->state_lock);
    if (is_own && event->kind == ENGINE_NODE && !node->is_healthy)
        log_warning("engine", "node %s is not healthy: %s", node->name,
                    node->reason ? node->reason : "no reason given");
    return is_own;
}

/* The last lines that it wrote. */
static struct text tail_of(struct arena *arena, struct text log)
{
    cleanup_buf struct buf shown = BUF_INIT;
    /* a terminal shows less than was written: colours, progress bars */
    if (log.length > TAIL_RAW_MAX)
        log = (struct text){log.at + log.length - TAIL_RAW_MAX, TAIL_RAW_MAX};
    printable_put(&shown, log);
    struct text tail = printable_tail(buf_as_text(&shown), STORE_TAIL_MAX);
    tail.at = arena_copy(arena, tail);
    return tail;
}

/* The rule by which it was recognised; the rules are locked. */
static void end_rule(struct server *server, const struct exit_verdict *verdict, struct arena *arena,
                     struct store_attempt_end *end)
{
    const struct exit_source source =
        exit_rules_source(server->rules, verdict->rule, verdict->pattern);
    const bool is_user = verdict->user_text.length > 0;
    const struct text found = is_user ? verdict->user_text : verdict->platform_text;
    cleanup_buf struct buf shown = BUF_INIT;
    printable_put(&shown, found);
    end->rule.code = verdict->completion.code;
    end->rule.phrase = arena_copy(arena, text_of(verdict->completion.phrase));
    end->rule.number = source.number;
    end->rule.pattern = source.pattern;
    end->rule.line = source.line;
    end->rule.file = arena_copy(arena, text_of(source.is_operators ? server->rules_path : ""));
    end->rule.log = found.length == 0 ? "" : is_user ? "user" : "platform";
    end->rule.text = text_trim(printable_head(buf_as_text(&shown), STORE_MATCH_MAX));
    end->rule.text.at = arena_copy(arena, end->rule.text);
}

/* What is kept of the end travels with the exit: one transaction has both, or neither. */
static struct server_mail *mail_of_exit(struct server *server, const struct engine_event *event)
{
    struct server_mail *mail = mail_new(MAIL_EVENT);
    struct store_attempt_end end = {.attempt = event->attempt, .rule = {.phrase = "", .file = ""}};
    cleanup_buf struct buf log = BUF_INIT;
    struct exit_report report = *event->exit;
    printable_strip(&log, report.log_tail);
    end.tail = tail_of(&mail->arena, report.log_tail);
    report.log_tail = buf_as_text(&log);
    pthread_rwlock_rdlock(&server->rules_lock);
    struct exit_verdict verdict;
    exit_judge(server->rules, &report, &verdict);
    struct exit_meaning meaning;
    meaning.completion = verdict.completion;
    meaning.blame = blame_weight(&verdict.completion, verdict.spec->type, verdict.evidence);
    if (verdict.is_matched)
        end_rule(server, &verdict, &mail->arena, &end);
    pthread_rwlock_unlock(&server->rules_lock);
    engine_event_translate(event, &meaning, &mail->arena, &mail->event);
    mail->has_change = end.tail.length > 0 || end.rule.number > 0;
    mail->change = (struct store_change){.kind = CHANGE_ATTEMPT_END, .attempt_end = end};
    return mail;
}

static void sink_post(void *context, const struct engine_event *event)
{
    struct server_engine *own = context;
    struct engine_event named = *event;
    struct node_facts facts;
    if (event->node) {
        if (!node_seen(own, event))
            return;
        facts = *event->node;
        facts.engine = own->name;
        named.node = &facts;
    }
    struct server_mail *mail;
    if (event->kind == ENGINE_EXITED) {
        mail = mail_of_exit(own->server, event);
    } else {
        mail = mail_new(MAIL_EVENT);
        engine_event_translate(&named, NULL, &mail->arena, &mail->event);
    }
    mail->engine = own->number;
    server_post_fact(own->server, mail);
}

static int64_t sink_trusted(void *context)
{
    const struct server_engine *own = context;
    return atomic_load(&own->server->trusted_ms);
}

struct engine_sink server_sink(struct server *server, size_t number)
{
    assert(number < server->engines.count);
    return (struct engine_sink){
        .context = &server->engines.items[number], .post = sink_post, .trusted_ms = sink_trusted};
}

int server_rules_load(struct server *server, const char *path, struct err *err)
{
    cleanup_buf struct buf content = BUF_INIT, report = BUF_INIT;
    struct exit_rules *rules = NULL, *old;
    int code = 0;
    cleanup_arena struct arena arena;
    arena_init(&arena);
    cleanup_problems struct problems problems;
    problems_init(&problems, &arena);
    if (path[0])
        code = file_read(path, RULES_BYTES_MAX, &content, err);
    if (code == 0) {
        rules = exit_rules_new(buf_as_text(&content), &problems);
        problems_print(&problems, path, &report);
        if (!rules)
            code = err_fail(err, ERR_INVALID, "", "%s", buf_cstr(&report));
    }
    if (rules) {
        pthread_rwlock_wrlock(&server->rules_lock);
        old = server->rules;
        server->rules = rules;
        mem_free(server->rules_path);
        server->rules_path = mem_copy(path);
        pthread_rwlock_unlock(&server->rules_lock);
        exit_rules_free(old);
    }
    return code;
}
