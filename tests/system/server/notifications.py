#!/usr/bin/env python3
"""Messages about jobs and alerts, from a real skepd to a real mail server and to a webhook: usage: notifications.py SKEPD

The mail server is Debian's exim, by STARTTLS and with a login; refusals for now and for good, kills between the end of a job and the
delivery, a certificate of a stranger, and the bounds of what waits; alerts that begin and end, over kills and while the webhook is away
(docs/rfc/0021-notifications.md).

Covers: src/server/notify_watch.c, src/server/notify_alerts.c
"""

import collections
import contextlib
import http.server
import json
import re
import signal
import sqlite3
import subprocess
import sys
import threading
import time

from skepd import Skepd, job_file
import mail_server  # behind skepd, which makes it known where its rooms are
from waits import PATIENCE_S, file_says, until

SKIP = 77
KEEP_HOURS, WAITING_MAX, TOGETHER_MAX, AT_ONCE, EVERY_S = 48, 20000, 100, 20, 180  # of the RFC
ASKS = {"extras": {"jobStatusChangeNotification": dict.fromkeys(("running", "succeeded", "stopped", "failed", "retried"), True)}}
NODE, OPERATOR = "fake0", "ops@example.org"
ALERTS = {"mail": [OPERATOR], "afterSeconds": 0}
CORDONED = re.compile(r"NodeCordoned\nSeverity: +warn\nnode_name: +fake0\nWhat: +no task is started on node fake0: cordoned by admin: a disk\nSince: .*\nPage:")
PARDONED = re.compile(r"NodeCordoned\nSeverity: +warn\nnode_name: +fake0\n.*\nSince: .*\nEnded:")
NO_END = "0001-01-01T00:00:00Z"
CELLS = """\
physicalCluster:
  cellTypes:
    NODE: {childCellType: FAKE, childCellNumber: 4, isNodeLevel: true}
  physicalCells: [{cellType: NODE, cellAddress: fake0}, {cellType: NODE, cellAddress: fake1}]
virtualClusters:
  default: {virtualCells: [{cellType: NODE, cellNumber: 1}]}
  red: {virtualCells: [{cellType: NODE, cellNumber: 1}]}
"""
ONE = {"worker": (1, "true", {"minFailedInstances": 1, "minSucceededInstances": 1})}


class Hook:
    """A receiver of webhooks: keeps the bodies; answers when it may."""

    def __init__(self):
        self.bodies, self.tokens, self.news = [], [], threading.Condition()
        self.may_answer = threading.Event()
        self.may_answer.set()
        self.is_held = lambda body: True  # until it may answer
        self.status, self.cordons = 204, []  # what it answers; and has answered to each alert of a cordon
        hook = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                with hook.news:
                    hook.bodies.append(body)
                    hook.tokens.append(self.headers["Authorization"])
                    hook.news.notify_all()
                if hook.is_held(body):
                    hook.may_answer.wait(PATIENCE_S)
                status = hook.status
                with contextlib.suppress(OSError):  # who asked may have been killed
                    self.send_response(status)
                    self.end_headers()
                hook.cordons += [(alert["status"], status) for alert in body["alerts"] if alert["labels"]["alertname"] == "NodeCordoned"]

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_port}/hooks/skep"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def alerts(self):
        with self.news:
            return [alert for body in self.bodies for alert in body["alerts"]]

    def wait(self, is_enough):
        with self.news:
            enough = self.news.wait_for(lambda: is_enough([alert for body in self.bodies for alert in body["alerts"]]), PATIENCE_S)
        assert enough, self.bodies
        return self.alerts()

    def close(self):
        self.may_answer.set()
        self.server.shutdown()
        self.server.server_close()


class World:
    def __init__(self, program, has_mail=True, alerts=None, has_cells=False, **fake):
        self.more, self.mail, self.hook, self.fake, self.alerts = {}, mail_server.MailServer(), Hook(), fake, alerts
        self.server = Skepd(program, {})
        self.smtp = self.mail.section()
        token = self.server.directory / "token"
        token.write_text("hook-token\n")
        token.chmod(0o600)
        self.hooks = [{"name": "ops", "url": self.hook.url, "tokenFile": str(token), "events": ["failed"], "alerts": bool(alerts)}]
        if has_cells:  # with a virtual cluster for which users ask
            cells = self.server.directory / "cells.yaml"
            cells.write_text(CELLS)
            self.more = {"scheduling": {"policy": "hived", "cellsFile": str(cells)}}
        self.configure()
        if has_mail:
            self.mail.start()

    def configure(self):
        fake = {"nodes": 1, "cpu": 64, "runMilliseconds": 100} | self.fake
        self.server.write_config({"engine": {"kind": "fake", "fake": fake},
                                  "notifications": {"portalUrl": "https://skep.example.org", "smtp": self.smtp, "webhooks": self.hooks} | ({"alerts": self.alerts} if self.alerts else {})} | self.more)

    def reload(self):
        self.configure()
        log = self.server.directory / "log"
        before = log.stat().st_size
        self.server.process.send_signal(signal.SIGHUP)
        file_says(log, '"text":"read again"', before, process=self.server.process)

    def __enter__(self):
        self.server.start()
        self.server.login()
        self.tokens = {}
        for user in ("alice", "bob"):
            self.server.call("POST", "/api/v2/users", json.dumps({"username": user, "password": f"{user}-password", "email": f"{user}@example.org"}))
            answer = self.server.call("POST", "/api/v2/authn/basic/login", json.dumps({"username": user, "password": f"{user}-password"}), token=None)
            self.tokens[user] = answer["token"]
        return self

    def __exit__(self, kind, *_):
        if kind:
            print(self.server.tail(), self.mail.tail(), sep="\n")
        if self.server.process.poll() is None:
            self.server.kill()
        self.server.remove()
        self.mail.remove()
        self.hook.close()

    def submit(self, name, user="alice", **more):
        return self.server.call("POST", "/api/v2/jobs", job_file(name, ONE, extra=ASKS | more), token=self.tokens[user], kind="text/yaml")

    def metric(self, name):
        return int(re.search(rf"^{name} (\d+)$", self.server.call("GET", "/metrics"), re.MULTILINE)[1])

    def wait_metric(self, name, value):
        until(lambda: self.metric(name) == value, lambda: f"{name} is {self.metric(name)}, not {value}\n{self.server.tail()}")

    def log_says(self, words):
        return file_says(self.server.directory / "log", words, process=self.server.process)

    def changes(self):
        """What all mails said: (job, state) → how often."""
        text = "\n".join(mail.get_content() for mail in self.mail.mails())
        return collections.Counter(re.findall(r"^Job: +(\S+)\nState: +(\S+)$", text, re.MULTILINE))

    def cordon(self, reason):
        self.server.call("PUT", f"/api/v2/nodes/{NODE}/cordon", json.dumps({"reason": reason}))

    def uncordon(self):
        self.server.call("PUT", f"/api/v2/nodes/{NODE}/uncordon")

    def cordons(self):
        """What the webhook was told of the node's cordon: (status, startsAt, endsAt, fingerprint), each time."""
        return [(alert["status"], alert["startsAt"], alert["endsAt"], alert["fingerprint"])
                for alert in self.hook.alerts() if alert["labels"]["alertname"] == "NodeCordoned"]

    def wait_cordons(self, count):
        self.hook.wait(lambda alerts: sum(alert["labels"]["alertname"] == "NodeCordoned" for alert in alerts) >= count)
        return self.cordons()

    def wait_mail(self, words):
        """Until mails to the operators say so; how often they do."""
        def texts():
            return [mail.get_content() for mail in self.mail.mails() if mail["Envelope-to"] == OPERATOR]

        self.mail.wait_mails(lambda _: any(re.search(words, text) for text in texts()))
        return sum(len(re.findall(words, text)) for text in texts())

    def wait_changes(self, job, *states):
        """Until mails say all of these, in whichever order they come; what all say then."""
        self.mail.wait_mails(lambda _: all(self.changes()[job, state] for state in states))
        return self.changes()


def a_job_is_told_of(program):
    with World(program) as world:
        world.submit("train")
        told = world.wait_changes("alice~train", "RUNNING", "SUCCEEDED")
        assert told == {("alice~train", "RUNNING"): 1, ("alice~train", "SUCCEEDED"): 1}, told
        for mail in world.mail.mails():
            assert mail["Envelope-to"] == "alice@example.org" and mail["From"] == "Skep <skep@example.org>", mail
            assert mail["Auto-Submitted"] == "auto-generated" and "https://skep.example.org/jobs/alice~train" in mail.get_content(), mail
        world.wait_metric("skep_notices_waiting", 0)
        assert world.hook.alerts() == []  # it asks for failures alone
        said = subprocess.run([program, "--config", world.server.config_path, "--notify-test", "root@example.org"], capture_output=True, text=True)
        assert said.returncode == 0, said
        world.mail.wait_mails(lambda mails: any(mail["Envelope-to"] == "root@example.org" for mail in mails))


def who_has_asked_is_told_of_the_decision(program):
    """At once, over a kill before the delivery, and not who has turned it off."""
    with World(program, has_mail=False, has_cells=True, nodes=2, gpus=4) as world:
        call, tokens = world.server.call, world.tokens

        def ask(user):
            return call("POST", "/api/v2/requests", json.dumps({"virtualCluster": "red", "reason": "a course"}), token=tokens[user])["id"]

        def decide(request, **how):
            call("PUT", f"/api/v2/requests/{request}/status", json.dumps(how))

        call("PUT", "/api/v2/users/bob/extension", json.dumps({"extension": {"requestDecisionNotification": False}}))
        decide(ask("bob"), status="refused", reason="not for bob")
        decide(ask("alice"), status="refused", reason="it is full")
        world.server.kill()  # the mail server is not there yet: rows wait
        world.mail.start()
        world.server.start()
        decide(ask("alice"), status="accepted")
        request = "Request:          for the virtual cluster red"
        mails = world.mail.wait_mails(lambda mails: sum(mail.get_content().count(request) for mail in mails) >= 2)
        said = "\n".join(mail.get_content() for mail in mails)
        assert {mail["Envelope-to"] for mail in mails} == {"alice@example.org"}, mails
        assert said.count(request) == 2 and "Answer:           it is full" in said and "Decision:         accepted" in said, said
        assert "https://skep.example.org/profile" in said and "not for bob" not in said, said
        world.wait_metric("skep_notices_waiting", 0)
        assert world.hook.alerts() == []  # it is nobody's but the user's


def a_failure_says_why(program):
    with World(program, exitCode=3) as world:
        world.submit("breaks", jobRetryCount=1)
        changes = world.wait_changes("alice~breaks", "RETRIED", "FAILED")
        assert changes["alice~breaks", "RETRIED"] == 1, changes
        text = "\n".join(mail.get_content() for mail in world.mail.mails())
        assert re.search(r"^Exit code: +3 \(.*\), of the attempt before$", text, re.MULTILINE), text
        assert re.search(r"^Exit code: +3 \([^)]*\)$", text, re.MULTILINE) and re.search(r"^Why: ", text, re.MULTILINE), text
        world.server.submit(job_file("quiet", ONE))  # of whom nobody asks
        alerts = world.hook.wait(lambda alerts: len(alerts) == 2)
        assert {(alert["labels"]["job_name"], alert["labels"]["state"], alert["labels"]["code"]) for alert in alerts} == \
            {("alice~breaks", "FAILED", "3"), ("admin~quiet", "FAILED", "3")}, alerts
        assert set(world.hook.tokens) == {"Bearer hook-token"}, world.hook.tokens


def a_kill_before_the_delivery_loses_nothing(program):
    """The mail server is not there when the job ends: the message outlives the server, and is sent once."""
    with World(program, has_mail=False) as world:
        world.submit("train")
        world.server.wait_final(["alice~train"])
        world.log_says("mail: messages wait")
        world.server.kill()
        world.mail.start()
        world.server.start()
        world.wait_changes("alice~train", "RUNNING", "SUCCEEDED")
        world.wait_metric("skep_notices_waiting", 0)
        world.server.kill()  # what has been sent is not sent again
        world.server.start()
        world.submit("next")
        changes = world.wait_changes("alice~next", "RUNNING", "SUCCEEDED")
        assert set(changes.values()) == {1} and len(changes) == 4, changes
        ids = [mail["Message-ID"] for mail in world.mail.mails()]
        assert len(set(ids)) == len(ids), ids


def a_kill_during_the_delivery_doubles_and_says_so(program):
    """The receiver has the message, and skepd does not know: it comes once more, with the same identity."""
    with World(program, exitCode=3) as world:
        world.hook.may_answer.clear()
        world.submit("breaks")
        world.hook.wait(lambda alerts: len(alerts) == 1)
        world.server.kill()
        world.hook.may_answer.set()
        world.server.start()
        first, second = world.hook.wait(lambda alerts: len(alerts) == 2)
        assert first == second and first["fingerprint"], (first, second)
        world.wait_metric("skep_notices_waiting", 0)


def who_does_not_take_now_is_asked_again(program):
    """A full mailbox: with pauses that grow; nobody else waits for that."""
    with World(program) as world:
        world.mail.refuse(alice="452 the mailbox is full")
        world.submit("first")
        world.log_says("mail to alice: messages wait: .*452 the mailbox is full")
        world.submit("other", "bob")
        world.wait_changes("bob~other", "SUCCEEDED")
        until(lambda: len(world.mail.refusals("the mailbox is full")) >= 3, world.mail.tail)
        first, second, third = world.mail.refusals("the mailbox is full")[:3]
        assert second - first >= 4.9 and third - second >= 9.9, (first, second, third)  # the pauses begin after these times
        assert world.metric("skep_notice_targets_away") == 0
        world.mail.refuse()
        world.reload()  # at once
        changes = world.wait_changes("alice~first", "RUNNING", "SUCCEEDED")
        assert set(changes.values()) == {1}, changes
        assert world.metric("skep_notices_dropped_total") == 0


def who_never_takes_is_given_up(program):
    with World(program) as world:
        world.mail.refuse(alice="550 no such mailbox")
        world.submit("first")
        world.log_says("a message about alice~first.* is refused: .*550 no such mailbox")
        world.wait_metric("skep_notices_dropped_total", 2)
        world.wait_metric("skep_notices_waiting", 0)
        world.submit("other", "bob")
        changes = world.wait_changes("bob~other", "SUCCEEDED")
        assert ("alice~first", "RUNNING") not in changes, changes
        assert len(world.mail.refusals("no such mailbox")) <= 2


def nothing_goes_to_a_stranger(program):
    """A certificate for which the wrong authority vouches, and a wrong password: the message waits until the configuration is right."""
    with World(program) as world:
        world.smtp = world.mail.section(caFile=str(world.mail.directory / "stranger"))
        world.reload()
        world.submit("train")
        world.log_says("mail: messages wait: .*certificate")
        world.wait_metric("skep_notice_targets_away", 1)
        wrong = world.mail.directory / "wrong-password"
        wrong.write_text("wrong\n")
        wrong.chmod(0o600)
        world.smtp = world.mail.section(passwordFile=str(wrong))
        world.reload()
        world.log_says("mail: messages wait: .*(535|[Ll]ogin denied)")
        assert world.mail.mails() == []
        world.smtp = world.mail.section()
        world.reload()
        assert set(world.wait_changes("alice~train", "RUNNING", "SUCCEEDED").values()) == {1}
        world.wait_metric("skep_notice_targets_away", 0)


def what_waits_is_bounded(program):
    """Age and number of what waits; changes in a mail; mails to one user."""
    many, old = 10, 7
    with World(program, has_mail=False) as world:
        assert world.server.stop() == 0
        now_ms = int(time.time() * 1000)
        with contextlib.closing(sqlite3.connect(world.server.data / "skep.db")) as database, database:
            # a minute more: after a start the server trusts the time that it noted last, and what has passed since
            times = [now_ms - KEEP_HOURS * 3600 * 1000 - 60000] * old + [now_ms] * (WAITING_MAX + many)
            database.executemany("INSERT INTO notices (target, job, attempt, kind, at_ms, user_name, job_name, virtual_cluster, code, phrase, why)"
                                 " VALUES ('mail', ?, 0, 1, ?, 'alice', ?, 'default', 0, '', '')",
                                 [(number + 1, at_ms, f"job{number}") for number, at_ms in enumerate(times)])
        world.server.start()
        world.log_says(f"{old} messages are dropped: they could not be sent for {KEEP_HOURS} hours")
        world.log_says(f"{many} messages are dropped: more than {WAITING_MAX} wait")
        world.wait_metric("skep_notices_waiting", WAITING_MAX)
        assert world.metric("skep_notices_dropped_total") == old + many
        world.mail.start()
        begin = time.monotonic()
        world.reload()
        until(lambda: world.metric("skep_notices_waiting") <= WAITING_MAX - AT_ONCE * TOGETHER_MAX, world.server.tail)
        world.submit("other", "bob")
        world.wait_changes("bob~other", "SUCCEEDED")  # in a round that has nothing for alice, unless it is time for one more
        sent = world.metric("skep_notices_sent_total")
        most = AT_ONCE + int((time.monotonic() - begin) / EVERY_S)
        assert sent <= most * TOGETHER_MAX + 2, (sent, most)
        # the oldest went first, each once
        oldest = [(f"alice~job{number}", "SUCCEEDED") for number in range(old + many, old + many + AT_ONCE * TOGETHER_MAX)]
        world.mail.wait_mails(lambda _: set(oldest) <= set(world.changes()))
        changes = {job: count for (job, _), count in world.changes().items() if job.startswith("alice~")}
        assert changes == {f"alice~job{number}": 1 for number in range(old + many, old + many + len(changes))}, changes
        mails = [mail for mail in world.mail.mails() if mail["Envelope-to"] == "alice@example.org"]
        assert {mail["subject"] for mail in mails} == {f"[Skep] {TOGETHER_MAX} changes of your jobs"}, mails
        assert len(mails) <= AT_ONCE + int((time.monotonic() - begin) / EVERY_S), len(mails)


def operators_are_told_of_an_alert_and_its_end(program):
    with World(program, alerts=ALERTS) as world:
        world.cordon("a disk")
        (status, begin, end, fingerprint), = world.wait_cordons(1)
        assert (status, end) == ("firing", NO_END), world.cordons()
        assert world.wait_mail(CORDONED) == 1
        shown, = [alert for alert in world.server.call("GET", "/api/v2/alerts") if alert["labels"]["alertname"] == "NodeCordoned"]
        assert (shown["startsAt"], shown["fingerprint"]) == (begin, fingerprint), shown
        world.uncordon()
        assert world.wait_mail(PARDONED) == 1
        told = world.wait_cordons(2)
        assert len(told) == 2 and told[1][:2] == ("resolved", begin) and told[1][2] >= begin and told[1][3] == fingerprint, told
        groups = [body for body in world.hook.bodies if body["groupLabels"] == {"alertname": "NodeCordoned"}]
        assert [body["status"] for body in groups] == ["firing", "resolved"], groups
        assert len({body["groupKey"] for body in groups}) == 1, groups
        assert world.wait_mail(CORDONED) == 1
        world.wait_metric("skep_alert_notices_waiting", 0)


def a_kill_repeats_no_alert_and_forgets_no_end(program):
    with World(program, alerts=ALERTS) as world:
        world.cordon("a disk")
        world.wait_cordons(1)
        world.wait_mail(CORDONED)
        world.wait_metric("skep_alert_notices_waiting", 0)  # that it was told is stored
        world.server.kill()
        world.server.start()
        world.uncordon()
        told = world.wait_cordons(2)
        assert [status for status, *_ in told] == ["firing", "resolved"], told
        assert world.wait_mail(PARDONED) == 1 and world.wait_mail(CORDONED) == 1


def an_end_reaches_who_may_have_heard_of_the_beginning(program):
    """Killed before the receiver answers; when the server is back the alert has ended."""
    with World(program, alerts=ALERTS) as world:
        world.hook.is_held = lambda body: body["groupLabels"]["alertname"] == "NodeCordoned"
        world.hook.may_answer.clear()
        world.cordon("a disk")
        (_, begin, _, fingerprint), = world.wait_cordons(1)
        world.server.kill()
        world.hook.may_answer.set()
        with contextlib.closing(sqlite3.connect(world.server.data / "skep.db")) as database, database:
            assert database.execute("UPDATE nodes SET is_closed = 0").rowcount == 1
        world.server.start()
        told = world.wait_cordons(2)
        assert [(status, since, name) for status, since, _, name in told] == [("firing", begin, fingerprint), ("resolved", begin, fingerprint)], told


def a_webhook_that_was_away_is_told_what_stands(program):
    with World(program, alerts=ALERTS) as world:
        world.hook.status = 503
        world.cordon("a disk")
        world.log_says("webhook:ops: messages wait: it answers with status 503")
        assert world.wait_mail(CORDONED) == 1  # others do not wait for it
        world.hook.status = 204
        world.reload()  # at once
        until(lambda: ("firing", 204) in world.hook.cordons, lambda: f"{world.hook.cordons}\n{world.server.tail()}")
        world.uncordon()
        until(lambda: ("resolved", 204) in world.hook.cordons, lambda: f"{world.hook.cordons}\n{world.server.tail()}")


TESTS = [operators_are_told_of_an_alert_and_its_end, a_kill_repeats_no_alert_and_forgets_no_end, an_end_reaches_who_may_have_heard_of_the_beginning,
         a_webhook_that_was_away_is_told_what_stands,
         a_job_is_told_of, who_has_asked_is_told_of_the_decision, a_failure_says_why, a_kill_before_the_delivery_loses_nothing, a_kill_during_the_delivery_doubles_and_says_so,
         who_does_not_take_now_is_asked_again, who_never_takes_is_given_up, nothing_goes_to_a_stranger, what_waits_is_bounded]


def main():
    program, only = sys.argv[1], sys.argv[2:]
    if reason := mail_server.why_not():
        print(f"skipped: {reason}")
        return SKIP
    for test in TESTS:
        if not only or test.__name__ in only:
            print(test.__name__, flush=True)
            test(program)
    return 0


if __name__ == "__main__":
    sys.exit(main())
