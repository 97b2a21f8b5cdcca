"""A mail server of our own for a test: exim, from Debian's package.

The package would take the place of the machine's mail server, so tools/install-deps only unpacks it; here it runs in a
mount namespace, on a layer over the machine's root that nobody else sees, and ends with us. It asks for TLS (a certificate of an authority of our
own) and a login, and takes mail for any NAME@example.org into a maildir.
"""

import contextlib
import datetime
import email
import email.policy
import os
import pathlib
import re
import select
import shutil
import socket
import subprocess
import tempfile
import time

from task_ports import server_port
from waits import PATIENCE_S, changes, ended, until

PACKAGE = pathlib.Path("/usr/local/lib/skep-test/exim4")
MOVED_HERE = 0x80  # inotify: a mail is written in `tmp` and moved to `new`
LOGIN, PASSWORD = "skep", "a password of the test"

# the layer's own: nothing of it is on the machine, and it goes with the shell, the first process of its namespace (exim, which has rights of its own, would not
# end with its parent)
BEGIN = """
set -e
mount --make-rprivate /
mount -t tmpfs -o mode=755 mail-server "$1/layer"
mkdir "$1/layer/upper" "$1/layer/work" "$1/layer/root"
cp -r "$2/usr" "$1/layer/upper/"
mount -t overlay mail-server -o "lowerdir=/,upperdir=$1/layer/upper,workdir=$1/layer/work" "$1/layer/root"
cd "$1/layer/root"
mount --rbind /dev dev
mount -t proc proc proc
mkdir -p mail var/spool/exim4 run etc/exim4
mount --bind "$1/mail" mail
printf 'Debian-exim:x:971:971::/var/spool/exim4:/usr/sbin/nologin\\npostbox:x:973:973::/mail:/usr/sbin/nologin\\n' >> etc/passwd
printf 'Debian-exim:x:971:\\npostbox:x:973:\\n' >> etc/group
cp "$1/exim4.conf" "$1/certificate" "$1/key" etc/exim4/
chown 971:971 var/spool/exim4 etc/exim4/key mail
chown -R 973:973 mail/box
chmod 4755 usr/sbin/exim4
chroot . /usr/sbin/exim4 -bdf
exit
"""

CONFIG = """
primary_hostname = mail.example.org
local_interfaces = 127.0.0.1
daemon_smtp_ports = {port} : {tls_port}
tls_on_connect_ports = {tls_port}
log_file_path = /mail/%slog
log_selector = +millisec
keep_environment =
notifier_socket =
tls_advertise_hosts = *
tls_certificate = /etc/exim4/certificate
tls_privatekey = /etc/exim4/key
auth_advertise_hosts = ${{if def:tls_in_cipher {{*}}}}
acl_smtp_rcpt = check_rcpt
host_lookup =
rfc1413_hosts =
smtp_accept_queue_per_connection = 0

begin acl
check_rcpt:
  deny    !authenticated = *
          message = 550 log in first
  warn    set acl_m_answer = ${{lookup{{$local_part@$domain}}lsearch{{/mail/refuses}}{{$value}}{{}}}}
  defer   condition = ${{if match{{$acl_m_answer}}{{^4}}}}
          logwrite = refuses: $acl_m_answer
          message = $acl_m_answer
  deny    condition = ${{if match{{$acl_m_answer}}{{^5}}}}
          logwrite = refuses: $acl_m_answer
          message = $acl_m_answer
  accept  domains = example.org
  deny    message = 550 not here

begin routers
all:
  driver = accept
  transport = box

begin transports
box:
  driver = appendfile
  directory = /mail/box
  maildir_format
  envelope_to_add
  user = postbox
  group = postbox

begin authenticators
plain:
  driver = plaintext
  public_name = PLAIN
  server_prompts = :
  server_condition = ${{if and {{{{eq{{$auth2}}{{{login}}}}}{{eq{{$auth3}}{{{password}}}}}}}}}
  server_set_id = $auth2
"""


def why_not():
    if os.geteuid() != 0:
        return "needs root"
    if not PACKAGE.exists():
        return "exim is not unpacked (tools/install-deps --test)"
    return None


class MailServer:
    def __init__(self):
        self.directory = pathlib.Path(tempfile.mkdtemp(prefix="skep-mail-"))
        self.directory.chmod(0o755)
        for name in ("layer", "mail", "mail/box"):
            (self.directory / name).mkdir()
        for name in ("cur", "new", "tmp"):
            (self.directory / "mail/box" / name).mkdir()
        self.refuse()
        self.port, self.tls_port = server_port(), server_port()
        self.log = open(self.directory / "log", "ab")
        self.process = None
        self.make_certificates()

    def make_certificates(self):
        """One for localhost, of an authority of ours; and an authority that has nothing to do with it."""
        for name in ("authority", "stranger"):
            self.openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2", "-subj", f"/CN={name}",
                         "-keyout", self.directory / f"{name}-key", "-out", self.directory / name)
        self.openssl("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj", "/CN=localhost",
                     "-keyout", self.directory / "key", "-out", self.directory / "request")
        (self.directory / "names").write_text("subjectAltName=DNS:localhost\n")
        self.openssl("x509", "-req", "-days", "2", "-in", self.directory / "request", "-CA", self.directory / "authority",
                     "-CAkey", self.directory / "authority-key", "-CAcreateserial", "-extfile", self.directory / "names",
                     "-out", self.directory / "certificate")

    @staticmethod
    def openssl(*words):
        subprocess.run(["openssl", *map(str, words)], check=True, capture_output=True)

    def refuse(self, **answers):
        """From now on: what it says to mail for NAME@example.org instead of taking it."""
        beside = self.directory / "mail/refuses.new"
        beside.write_text("".join(f"{name}@example.org: {answer}\n" for name, answer in answers.items()))
        beside.replace(self.directory / "mail/refuses")

    def start(self):
        (self.directory / "exim4.conf").write_text(CONFIG.format(port=self.port, tls_port=self.tls_port, login=LOGIN, password=PASSWORD))
        self.process = subprocess.Popen(
            ["setpriv", "--pdeathsig", "KILL", "unshare", "--mount", "--pid", "--fork", "--kill-child", "sh", "-c", BEGIN, "sh", self.directory, PACKAGE],
            stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log)
        until(self.is_there, lambda: f"the mail server did not start:\n{self.tail()}")

    def is_there(self):
        assert self.process.poll() is None, f"the mail server has ended:\n{self.tail()}"
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self.port), 1):
            return True
        return False

    def tail(self):
        logs = [self.directory / "log", *sorted((self.directory / "mail").glob("*log"))]
        return "\n".join(log.read_text(errors="replace")[-2000:] for log in logs)

    def stop(self):
        if self.process and self.process.poll() is None:
            # the first process of a namespace: it is killed with its parent, and all others there end before it
            child = pathlib.Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text()
            self.process.kill()
            self.process.wait(PATIENCE_S)
            assert not ended(map(int, child.split()), PATIENCE_S), "the mail server does not end"

    def mails(self):
        """Those that have come, oldest first."""
        found = sorted((self.directory / "mail/box/new").iterdir(), key=lambda path: path.stat().st_mtime_ns)
        return [email.message_from_bytes(path.read_bytes(), policy=email.policy.default) for path in found]

    def wait_mails(self, is_enough, limit=PATIENCE_S):
        """Until is_enough(mails): these."""
        end = time.monotonic() + limit
        with changes(self.directory / "mail/box/new", MOVED_HERE) as watch:
            while not is_enough(mails := self.mails()):
                left = max(0, end - time.monotonic())
                assert select.select([watch], [], [], left)[0], f"these mails have come: {[mail['subject'] for mail in mails]}\n{self.tail()}"
                os.read(watch, 65536)
            return mails

    def section(self, **more):
        """notifications.smtp for skepd, by STARTTLS; with files beside the server's own."""
        password = self.directory / "password"
        password.write_text(PASSWORD + "\n")
        password.chmod(0o600)
        return {"url": f"smtp://localhost:{self.port}", "from": "skep@example.org", "user": LOGIN, "passwordFile": str(password),
                "caFile": str(self.directory / "authority")} | more

    def refusals(self, words):
        """When it was about to answer so, in seconds."""
        log = self.directory / "mail/mainlog"
        times = re.findall(rf"^(\S+ \S+) refuses: .*{re.escape(words)}", log.read_text() if log.exists() else "", re.MULTILINE)
        return [datetime.datetime.fromisoformat(time).timestamp() for time in times]

    def remove(self):
        self.stop()
        self.log.close()
        shutil.rmtree(self.directory)
