/* audit.h — what is written down of a request that changes something.
 *
 * Each such request leaves one record, or more where it does several things: with the change, in
 * its transaction (service_reply.audit), or by itself when nothing was changed. Left out are
 * requests of strangers, except logins whose password was checked or whom the provider of the
 * sign-on was asked about; what is told to come again later (ERR_BUSY, ERR_UNAVAILABLE); dry runs;
 * the parts of an upload, whose begin and end leave one each; and what tasks say at their barriers.
 *
 * A record without a change is handed to the server before the reply, which does not wait for it.
 */
#ifndef API_AUDIT_H
#define API_AUDIT_H
#include "base/text.h"
#include <stdbool.h>
#include <stdint.h>

struct call;
struct store_audit;

/* What is to be written down of the call with a change of it; NULL: nothing. */
const struct store_audit *audit_of(struct call *call);

/* What it is about, where the path does not say it, or not alone. */
void audit_subject(struct call *call, const char *kind, struct text name);
/* {NAME: {KEY: value}} as it is to be. */
void audit_after(struct call *call, struct text name, const char *key, int64_t value);
/* {KEY: word}, as it is to be, or was. */
void audit_word(struct call *call, bool is_after, const char *key, const char *word);

/* Nothing was changed, and why. Any thread, while the call is suspended. */
void audit_refusal(struct call *call, int code, const char *reason);
/* The handler has ended with this code: what has left no record leaves one now. */
void audit_end(struct call *call, int code);

#endif
