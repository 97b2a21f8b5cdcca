"""How `skep` reaches skepd: by TLS with a certificate that skepd made, by the socket of the machine; and what is refused.

Covers: src/api/http_door.c, src/api/http_tls.c, src/cli/client.c, src/cli/cmd_login.c
"""
import os
import pty
import re
import shutil
import signal
import socket
import ssl
import subprocess
import unittest

import waits
import world


class Doors(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.world = world.World()
        config = cls.world.folder / "skepd.yaml"
        cls.own = cls.world.folder / "own"
        cls.own.mkdir()
        config.write_text(config.read_text() + 'api: {tls: {mode: "on"}}\n')
        cls.world.start()
        cls.world.admin_password = (cls.world.folder / "password").read_text().strip()
        cls.log = (cls.world.folder / "skepd.log").read_text()
        cls.fingerprint = re.search(r"sha256//[\w+/=]+", cls.log)[0]
        cls.url = f"https://127.0.0.1:{cls.world.port}"
        cls.socket = f"unix:{cls.world.folder}/data/socket/api"

    @classmethod
    def tearDownClass(cls):
        cls.world.__exit__()

    def skep(self, user, *words, server=None, stdin=None):
        return self.world.skep(*words, user=user, stdin=stdin, SKEP_SERVER=server or self.url)

    def login(self, user, *words, stdin=None):
        return self.world.skep("login", "--username", "admin", "--password-stdin", *words, self.url, user=user,
                               stdin=stdin or self.world.admin_password + "\n")

    def test_a_stranger_is_not_trusted_without_a_word(self):
        done = self.login("a")
        self.assertEqual(done.returncode, 4)
        self.assertIn(f"--fingerprint {self.fingerprint}", done.stderr)
        done = self.skep("a", "nodes")
        self.assertEqual(done.returncode, 3)
        self.assertIn("nobody vouches", done.stderr)
        done = self.login("a", "--fingerprint", "sha256//nonsense")
        self.assertEqual(done.returncode, 2)

    def test_by_its_fingerprint(self):
        self.assertEqual(self.login("b", "--fingerprint", self.fingerprint).returncode, 0)
        done = self.skep("b", "whoami")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn(self.url, done.stdout)
        # streams as well
        self.assertEqual(self.skep("b", "submit", "--wait", self.world.file(world.job("by-tls", ["true"]))).returncode, 0)
        self.assertIn("Succeeded", self.skep("b", "events", "by-tls").stdout)
        settings = self.world.folder / "config-b/skep/settings"
        settings.write_text(settings.read_text().replace(self.fingerprint, "sha256//" + "A" * 43 + "="))
        done = self.skep("b", "whoami")
        self.assertEqual(done.returncode, 3)
        self.assertIn("another fingerprint", done.stderr)

    def test_asked_on_a_terminal(self):
        for answer, code in (("no", 4), ("yes", 0)):
            master, slave = pty.openpty()
            process = subprocess.Popen([world.SKEP, "login", "--username", "admin", self.url], stdin=slave, stdout=slave,
                                       stderr=slave, env=self.world.environment("c"), start_new_session=True)
            os.close(slave)
            said = b""
            while b"yes or no: " not in said:
                said += os.read(master, 4096)
            self.assertIn(self.fingerprint.encode(), said)
            os.write(master, answer.encode() + b"\n")
            while code == 0 and b"Password: " not in said:
                said += os.read(master, 4096)
            if code == 0:
                os.write(master, self.world.admin_password.encode() + b"\n")
            self.assertEqual(process.wait(60), code, said)
            os.close(master)
        self.assertEqual(self.skep("c", "whoami").returncode, 0)

    def test_plain_http_is_not_spoken(self):
        done = self.world.skep("nodes", user="d", SKEP_SERVER=f"http://127.0.0.1:{self.world.port}")
        self.assertEqual(done.returncode, 3)

    def test_old_versions_are_not_spoken(self):
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        context.set_ciphers("ALL:@SECLEVEL=0")
        context.minimum_version = context.maximum_version = ssl.TLSVersion.TLSv1_1
        with self.assertRaises(OSError):
            with socket.create_connection(("127.0.0.1", self.world.port)) as plain:
                context.wrap_socket(plain)

    @unittest.skipIf(os.geteuid() != 0, "only root can be another user")
    def test_by_the_socket(self):
        done = self.skep("e", "whoami", server=self.socket)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("admin (admin)", done.stdout)
        self.assertEqual(self.skep("e", "user", "list", server=self.socket).returncode, 0)
        # another user of the machine is told to log in, and can
        for path in (self.world.folder, self.world.folder / "data", self.world.folder / "data/socket"):
            path.chmod(0o711)
        nobody = {"user": 65534, "group": 65534, "extra_groups": []}
        done = subprocess.run([world.SKEP, "--server", self.socket, "nodes"], capture_output=True, text=True, **nobody,
                              env={"HOME": "/nonexistent"})
        self.assertEqual(done.returncode, 4, done.stderr)
        self.assertIn(f"skep login {self.socket}", done.stderr)
        self.assertEqual(self.login("f", "--fingerprint", self.fingerprint).returncode, 0)
        done = subprocess.run([world.SKEP, "--server", self.socket, "whoami"], capture_output=True, text=True, **nobody,
                              env={"HOME": "/nonexistent", "SKEP_TOKEN": self.world.token("f")})
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_a_new_certificate_is_read_without_a_restart(self):
        folder = self.world.folder / "data/tls"
        done = subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2",
                               "-subj", "/CN=renewed", "-keyout", self.own / "key.pem", "-out", self.own / "certificate.pem"],
                              capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        before = ssl.get_server_certificate(("127.0.0.1", self.world.port))
        saved = {name: (folder / name).read_bytes() for name in ("key.pem", "certificate.pem")}
        log = self.world.folder / "skepd.log"
        try:
            shutil.copy(self.own / "certificate.pem", folder / "certificate.pem")
            self.reload(log)  # the key is the old one still
            self.assertIn("is not the key of", log.read_text())
            self.assertEqual(ssl.get_server_certificate(("127.0.0.1", self.world.port)), before)
            shutil.copy(self.own / "key.pem", folder / "key.pem")
            self.reload(log)
            self.assertEqual(ssl.get_server_certificate(("127.0.0.1", self.world.port)).split(),
                             (self.own / "certificate.pem").read_text().split())
        finally:
            for name, bytes in saved.items():
                (folder / name).write_bytes(bytes)
            self.reload(log)

    def reload(self, log):
        count = log.read_text().count("read again")
        self.world.process.send_signal(signal.SIGHUP)
        waits.until(lambda: log.read_text().count("read again") > count, log.read_text)


if __name__ == "__main__":
    world.main()
