"""Certificates of clients: whom they name, and which are refused, with certificates made by openssl, by curl and by `skep`.

Covers: src/api/tls_client.c, src/api/http_tls.c, src/api/token.c, src/cli/client.c, src/cli/cmd_login.c
"""
import json
import re
import signal
import subprocess
import unittest

import waits
import world

SECTIONS = """[ca]
default_ca = own
[own]
database = {folder}/index.txt
serial = {folder}/serial
new_certs_dir = {folder}
default_md = sha256
default_crl_days = 30
[any]
commonName = supplied
"""


class Authority:
    """One that signs certificates of clients, and takes them back."""

    def __init__(self, folder):
        folder.mkdir()
        self.folder = folder
        (folder / "index.txt").touch()
        (folder / "serial").write_text("1000\n")
        (folder / "ca.conf").write_text(SECTIONS.format(folder=folder))
        self.key, self.certificate, self.revoked = folder / "ca-key.pem", folder / "ca.pem", folder / "crl.pem"
        self.run("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "30",
                 "-subj", f"/CN={folder.name}", "-addext", "keyUsage=critical,keyCertSign,cRLSign", "-keyout", self.key, "-out", self.certificate)
        self.list()

    def run(self, *words):
        done = subprocess.run(["openssl", *map(str, words)], capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, done.stderr

    def make(self, name, subject, names="", purpose="clientAuth", until=None):
        """Certificate and key in one file."""
        key, request, extensions, out = (self.folder / f"{name}.{end}" for end in ("key", "csr", "ext", "pem"))
        extensions.write_text(f"basicConstraints=CA:FALSE\nextendedKeyUsage={purpose}\n" + (f"subjectAltName={names}\n" if names else ""))
        self.run("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj", subject, "-keyout", key, "-out", request)
        if until:  # `openssl x509` knows no past
            self.run("ca", "-config", self.folder / "ca.conf", "-batch", "-notext", "-in", request, "-out", out, "-cert", self.certificate,
                     "-keyfile", self.key, "-startdate", "20200101000000Z", "-enddate", until, "-policy", "any", "-extfile", extensions)
        else:
            self.run("x509", "-req", "-in", request, "-CA", self.certificate, "-CAkey", self.key, "-CAcreateserial", "-days", "10",
                     "-extfile", extensions, "-out", out)
        out.write_text(out.read_text() + key.read_text())
        return out

    def revoke(self, certificate):
        self.run("ca", "-config", self.folder / "ca.conf", "-cert", self.certificate, "-keyfile", self.key, "-revoke", certificate)
        self.list()

    def list(self):
        self.run("ca", "-config", self.folder / "ca.conf", "-cert", self.certificate, "-keyfile", self.key, "-gencrl", "-out", self.revoked)


class Certificates(unittest.TestCase):
    MODE, NAME = "optional", "CN:{user}"

    @classmethod
    def setUpClass(cls):
        cls.world = world.World()
        cls.authority = Authority(cls.world.folder / "authority")
        cls.stranger = Authority(cls.world.folder / "stranger")
        config = cls.world.folder / "skepd.yaml"
        config.write_text(config.read_text() + f"""api:
  tls:
    mode: "on"
    clientCertificates: {cls.MODE}
    clientCaFile: {cls.authority.certificate}
    clientRevocationFile: {cls.authority.revoked}
    clientName: '{cls.NAME}'
""")
        cls.world.start()
        cls.log = cls.world.folder / "skepd.log"
        cls.fingerprint = re.search(r"sha256//[\w+/=]+", cls.log.read_text())[0]
        cls.url = f"https://127.0.0.1:{cls.world.port}"
        cls.socket = f"unix:{cls.world.folder}/data/socket/api"
        for name in ("alice", "bob"):
            done = cls.world.skep("user", "add", name, "--password-stdin", stdin=f"{name}-password\n", SKEP_SERVER=cls.socket)
            assert done.returncode == 0, done.stderr
        cls.alice = cls.authority.make("alice", "/CN=alice", "email:alice@example.org,URI:spiffe://example.org/user/alice")

    @classmethod
    def tearDownClass(cls):
        cls.world.__exit__()

    def curl(self, *words, path="/api/v2/tokens/check"):
        """Status and body."""
        done = subprocess.run(["curl", "-sk", "--pinnedpubkey", self.fingerprint, "-w", "\n%{http_code}", *map(str, words), self.url + path],
                              capture_output=True, text=True, timeout=60)
        self.assertEqual(done.returncode, 0, (done.stdout, done.stderr))
        body, _, status = done.stdout.rpartition("\n")
        return int(status), json.loads(body) if body.startswith("{") else body

    def who(self, *words):
        status, body = self.curl(*words)
        self.assertEqual(status, 200, body)
        return body["username"]

    def refused(self, why, *words, **more):
        status, body = self.curl(*words, **more)
        self.assertEqual(status, 401, body)
        self.assertIn(why, body["message"])

    def token(self, name, *words):
        status, body = self.curl("-d", json.dumps({"username": name, "password": f"{name}-password"}), "-H", "Content-Type: application/json",
                                 *words, path="/api/v2/authn/basic/login")
        self.assertEqual(status, 200, body)
        return body["token"]

    def reload(self):
        count = self.log.read_text().count("read again")
        self.world.process.send_signal(signal.SIGHUP)
        waits.until(lambda: self.log.read_text().count("read again") > count, self.log.read_text)


class Optional(Certificates):
    def test_it_names_a_user(self):
        self.assertEqual(self.who("--cert", self.alice), "alice")
        self.refused("log in first")
        nobody = self.authority.make("nobody", "/CN=nobody")
        self.refused("a user who has no account here", "--cert", nobody)
        two = self.authority.make("two", "/CN=alice/CN=bob")
        self.refused("cannot be told apart by CN:{user}", "--cert", two)
        none = self.authority.make("none", "/O=somewhere")
        self.refused("no name like CN:{user}", "--cert", none)

    def test_a_token_says_more(self):
        bob = self.token("bob")
        self.assertEqual(self.who("-H", f"Authorization: Bearer {bob}"), "bob")
        self.assertEqual(self.who("--cert", self.alice, "-H", f"Authorization: Bearer {bob}"), "bob")
        self.refused("Your token is invalid", "--cert", self.alice, "-H", "Authorization: Bearer forged")

    def test_a_page_of_another_site_cannot_use_it(self):
        self.refused("log in first", "--cert", self.alice, "-H", "Origin: https://evil.example")

    def test_bad_ones(self):
        other = self.stranger.make("other", "/CN=alice")
        self.refused("the client certificate is refused: ", "--cert", other)
        bob = self.token("bob")  # a token does not make up for it
        self.refused("issuer is unknown", "--cert", other, "-H", f"Authorization: Bearer {bob}")
        self.refused("issuer is unknown", "--cert", other, path="/api/v2/info")
        expired = self.authority.make("expired", "/CN=alice", until="20210101000000Z")
        self.refused("expired", "--cert", expired)
        server = self.authority.make("server", "/CN=alice", purpose="serverAuth")
        self.refused("purpose", "--cert", server)
        # the authority's name, another's key
        forger = Authority(self.world.folder / "forger")
        forger.run("req", "-x509", "-key", forger.key, "-days", "30", "-subj", "/CN=authority", "-out", forger.certificate)
        self.refused("the client certificate is refused: ", "--cert", forger.make("forged", "/CN=alice"))

    def test_revoked(self):
        one = self.authority.make("one", "/CN=bob")
        self.assertEqual(self.who("--cert", one), "bob")
        self.authority.revoke(one)
        self.assertEqual(self.who("--cert", one), "bob")  # the list has not been read again
        self.reload()
        self.refused("revoked", "--cert", one)
        self.assertEqual(self.who("--cert", self.alice), "alice")
        saved = self.authority.revoked.read_text()
        self.authority.revoked.write_text(self.stranger.revoked.read_text())
        self.reload()  # it is refused, and the one before counts
        self.assertIn("that none of the authorities has signed", self.log.read_text())
        self.refused("revoked", "--cert", one)
        self.authority.revoked.write_text(saved)

    def test_deactivated(self):
        carol = self.authority.make("carol", "/CN=carol")
        for words in (("add", "carol", "--password-stdin"), ("deactivate", "carol")):
            self.assertEqual(self.world.skep("user", *words, stdin="carol-password\n", SKEP_SERVER=self.socket).returncode, 0)
        self.refused("may not log in", "--cert", carol)

    def test_skep(self):
        by = lambda *words, **more: self.world.skep(*words, user="certified", **{"SKEP_SERVER": ""} | more)  # noqa: E731
        done = by("login", "--client-certificate", self.alice, "--fingerprint", self.fingerprint, self.url)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertIn("as alice", done.stdout)
        self.assertEqual(json.loads(by("whoami", "-o", "json").stdout)["username"], "alice")
        self.assertEqual(by("submit", self.world.file(world.job("certified", ["true"]))).returncode, 0)
        self.assertEqual(by("wait", "--quiet", "certified").returncode, 0)
        done = by("events", "-f", "certified")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        bob = self.authority.make("bobby", "/CN=bob")
        key = self.authority.folder / "bobby.key"
        done = by("--client-certificate", bob, "--client-key", key, "whoami", "-o", "json")
        self.assertEqual(json.loads(done.stdout)["username"], "bob")
        done = by("--client-certificate", bob, "--client-key", self.authority.folder / "alice.key", "whoami")
        self.assertEqual(done.returncode, 3)
        self.assertIn("belong together", done.stderr)
        done = by("--client-certificate", self.stranger.make("other2", "/CN=alice"), "whoami")
        self.assertEqual(done.returncode, 4)
        self.assertIn("the client certificate is refused", done.stderr)


class Required(Certificates):
    MODE, NAME = "required", "uri:spiffe://example.org/user/{user}"

    def test_none_is_refused(self):
        for path in ("/api/v2/tokens/check", "/api/v2/info", "/"):
            self.refused("show a client certificate", path=path)
        self.assertEqual(self.who("--cert", self.alice), "alice")
        machine = self.authority.make("machine", "/CN=machine")
        bob = self.token("bob", "--cert", machine)
        self.assertEqual(self.who("--cert", machine, "-H", f"Authorization: Bearer {bob}"), "bob")
        self.refused("no name like uri:spiffe://example.org/user/{user}", "--cert", machine)
        done = self.world.skep("user", "list", SKEP_SERVER=self.socket)  # the socket of the machine asks for none
        self.assertEqual(done.returncode, 0, done.stderr)


class ByMail(Certificates):
    NAME = "email:{user}@example.org"

    def test_the_address(self):
        self.assertEqual(self.who("--cert", self.alice), "alice")
        other = self.authority.make("elsewhere", "/CN=alice", "email:alice@example.com")
        self.refused("no name like email:{user}@example.org", "--cert", other)


if __name__ == "__main__":
    world.main()
