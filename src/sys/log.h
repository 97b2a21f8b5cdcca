/* log.h — the server's log: one line an event, to standard error.
 *
 * Edge. On a terminal text for people, otherwise one JSON object a line ({"time","level","part",
 * "text"}), unless told otherwise. Each line is one write, so that lines of several threads never
 * mix. Lines longer than LOG_LINE_MAX are cut. Never give it a secret.
 */
#ifndef SYS_LOG_H
#define SYS_LOG_H
#include <stdarg.h>

enum { LOG_LINE_MAX = 8192 };

enum log_level { LOG_ERROR, LOG_WARNING, LOG_INFO, LOG_DEBUG };
enum log_format { LOG_AUTO, LOG_TEXT, LOG_JSON };

/* May be called again at any time: the configuration was reloaded. Default: LOG_INFO, LOG_AUTO. */
void log_setup(enum log_level level, enum log_format format);

/* Beside standard error, from now on; NULL: not any more. The caller closes it then, once no other
 * thread writes lines. */
struct log_keeper;
void log_keep(struct log_keeper *file);

/* For tests: where lines go, 2 by default. */
void log_to(int fd);

/* `part`: the module that speaks, "core", "engine". */
void log_line(enum log_level level, const char *part, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
void log_vline(enum log_level level, const char *part, const char *format, va_list args)
    __attribute__((format(printf, 3, 0)));

#define log_error(part, ...)   log_line(LOG_ERROR, (part), __VA_ARGS__)
#define log_warning(part, ...) log_line(LOG_WARNING, (part), __VA_ARGS__)
#define log_info(part, ...)    log_line(LOG_INFO, (part), __VA_ARGS__)
#define log_debug(part, ...)   log_line(LOG_DEBUG, (part), __VA_ARGS__)

#endif
