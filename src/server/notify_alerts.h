/* notify_alerts.h — tells operators of alerts, by mail and by webhooks
 * (docs/rfc/0021-notifications.md, section Alerts).
 *
 * A part of the thread of notify_watch.h, which calls its rounds. Each compares what stands
 * (alert_watch.h) with what each target was told (model/told_book.h); that is the setting
 * "alerts.told", and nothing is sent before what is to be sent is durable.
 */
#ifndef SERVER_NOTIFY_ALERTS_H
#define SERVER_NOTIFY_ALERTS_H

struct buf;
struct err;
struct notify_alerts;
struct notify_sender;
struct server;
struct store_reader;

/* Borrows the server. */
struct notify_alerts *notify_alerts_new(struct server *server);
void notify_alerts_free(struct notify_alerts *alerts);
/* What was told before the start. What is damaged is said and passed over. */
int notify_alerts_load(struct notify_alerts *alerts, struct store_reader *reader, struct err *err);

void notify_alerts_round(struct notify_alerts *alerts, struct notify_sender *sender);

void notify_alerts_metrics_write(const struct notify_alerts *alerts, struct buf *out);

#endif
