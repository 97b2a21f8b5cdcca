"""Login by the passwords of a real LDAP directory.

Covers: src/api/directory_login.c, src/api/signon_user.c, src/signon/directory.c
"""
import json
import sys

import waits
import world
from directory import BASE, SEARCHER, SEARCHER_PASSWORD, Directory, group, missing, person, entry
from signon_case import SignonCase

PEOPLE = (person("alice", "alices-password", "alice@example.org") + person("bob", "bobs-password") + person("admin", "of another admin")
          + person("eve", "eves-password") + person("twin", "twins-password") + person("twin", "twins-password", place="others")
          + person("stranger", "strangers-password") + person("guessed", "guesseds-password") + person("old", "olds-password")
          + entry("uid=nobody,ou=people", "objectClass: inetOrgPerson", "uid: nobody", "cn: nobody", "sn: x")
          + entry("cn=elsewhere", "objectClass: referral", "objectClass: extensibleObject", "cn: elsewhere", "ref: ldap://127.0.0.1:1/dc=x")
          + group("ml-team", "alice", "bob") + group("bosses"))


class Ldap(SignonCase):
    @classmethod
    def setUpClass(cls):
        cls.directory = Directory(PEOPLE)
        cls.server_begin(SEARCHER_PASSWORD)
        cls.usual = {
            "url": f"ldap://127.0.0.1:{cls.directory.port}", "caFile": cls.directory.folder / "ca.pem", "base": BASE, "bindDn": SEARCHER,
            "bindPasswordFile": cls.secret, "groupBase": f"ou=groups,{BASE}", "createUsers": "true"}
        cls.server_start()

    @classmethod
    def tearDownClass(cls):
        cls.world.__exit__()
        cls.directory.remove()

    @classmethod
    def configure(cls, **changes):
        keys = {key: value for key, value in (cls.usual | changes).items() if value is not None}
        cls.config.write_text(cls.base + "\napi:\n  ldap:\n" + "".join(f"    {key}: {value}\n" for key, value in keys.items()))

    def setUp(self):
        """Each begins without brakes: they are not kept over a restart."""
        self.restart()

    def login(self, user, password):
        return self.world.json("POST", "/api/v2/authn/basic/login", {"username": user, "password": password}, token=False)

    def good(self, user, password):
        status, reply = self.login(user, password)
        self.assertEqual(status, 200, reply)
        return reply

    def bad(self, user, password, status=400, code="IncorrectPasswordError", message=""):
        given, reply = self.login(user, password)
        self.assertEqual((given, reply["code"]), (status, code), (user, password, reply))
        self.assertIn(message, reply["message"])

    # ---- who is let in ----

    def test_a_login(self):
        reply = self.good("alice", "alices-password")
        self.assertEqual((reply["user"], reply["admin"]), ("alice", False))
        self.assertEqual(self.world.json("GET", "/api/v2/tokens/check", token=reply["token"])[1]["username"], "alice")
        self.assertEqual(self.info("alice")["email"], "alice@example.org")
        done = self.world.skep("login", "--username", "bob", "--password-stdin", user="bob", stdin="bobs-password\n")
        self.assertEqual(done.returncode, 0, done.stderr)
        # what goes over the network is encrypted before a password is said
        waits.until(lambda: "UNBIND" in self.directory.log(), self.directory.log)
        self.assertIn("STARTTLS", self.directory.log())

    def test_wrong_passwords(self):
        self.bad("alice", "bobs-password")
        self.bad("alice", "", 400)  # a directory says yes to a bind without a password
        self.bad("ghost", "alices-password")
        self.bad("nobody", "anything")  # has no password there
        self.bad("twin", "twins-password")  # is two
        self.bad("", "alices-password")
        self.assertIsNone(self.info("ghost"))
        self.good("alice", "alices-password")
        status, reply = self.world.json("GET", "/api/v2/audit?refused=true")
        self.assertEqual((status, "wrong password" in json.dumps(reply), "ghost" in json.dumps(reply)), (200, True, False), reply)

    def test_injections(self):
        for name in ("*", "ali*", "alice)(uid=*", "*)(|(uid=alice", "alice\\2a", "alice\x00", "alice ", " alice", "alicé", "uid=alice",
                     f"alice,ou=people,{BASE}"):
            with self.subTest(name):
                self.bad(name, "alices-password")
        self.restart(bindAs=f"'uid={{user}},ou=people,{BASE}'", bindDn=None, bindPasswordFile=None, groupBase=None)
        self.good("alice", "alices-password")
        for name in ("alice,ou=people", "alice+cn=alice", f"cn=skepd,{BASE}", "\"alice\"", "alice\\", "#alice", "alice,ou=people,ou=others"):
            with self.subTest(name):
                self.bad(name, "alices-password")

    def test_groups_follow_the_directory(self):
        for words in (("team", "--external-name", "ml-team"), ("chiefs", "--external-name", "bosses", "--admin", "yes"), ("local",)):
            done = self.world.skep("group", "add", *words)
            self.assertEqual(done.returncode, 0, done.stderr)
        self.assertFalse(self.good("bob", "bobs-password")["admin"])
        self.assertEqual(sorted(self.info("bob")["grouplist"]), ["default", "team"])
        self.assertEqual(self.world.skep("group", "join", "local", "bob").returncode, 0)
        bob = f"member: uid=bob,ou=people,{BASE}\n"
        self.directory.change(f"dn: cn=bosses,ou=groups,{BASE}\nchangetype: modify\nadd: member\n{bob}\n"
                              f"dn: cn=ml-team,ou=groups,{BASE}\nchangetype: modify\ndelete: member\n{bob}\n")
        self.assertTrue(self.good("bob", "bobs-password")["admin"])
        self.assertEqual(sorted(self.info("bob")["grouplist"]), ["chiefs", "default", "local"])
        self.directory.change(f"dn: cn=bosses,ou=groups,{BASE}\nchangetype: modify\ndelete: member\n{bob}")
        self.assertFalse(self.good("bob", "bobs-password")["admin"])
        self.restart(allowedGroups="[ml-team]")
        self.good("alice", "alices-password")
        self.bad("bob", "bobs-password", 403, "ForbiddenUserError", "none of the groups")

    # ---- who is who ----

    def test_who_has_a_password_here(self):
        self.bad("admin", "of another admin")
        self.assertEqual(self.good("admin", self.world.admin_password)["user"], "admin")
        # written otherwise the directory is asked; but that user is somebody else
        self.bad("Admin", "of another admin", 403, "ForbiddenUserError", "logs in with a password here")
        self.bad("Admin", self.world.admin_password)

    def test_who_is_renamed(self):
        self.good("old", "olds-password")
        self.directory.change(f"dn: uid=old,ou=people,{BASE}\nchangetype: modrdn\nnewrdn: uid=new\ndeleteoldrdn: 1\n")
        self.assertEqual(self.good("new", "olds-password")["user"], "old")
        self.directory.change(person("old", "of a later one").replace("\n", "\nchangetype: add\n", 1))
        self.bad("old", "of a later one", 403, "ForbiddenUserError", "somebody else")

    def test_the_operators_rules(self):
        self.restart(createUsers="false")
        self.bad("stranger", "strangers-password", 403, "ForbiddenUserError", "an administrator must make one")
        self.assertIsNone(self.info("stranger"))
        self.restart(idAttribute="description")
        self.bad("stranger", "strangers-password", 403, "ForbiddenUserError", "has no description")
        self.restart(base=f"ou=others,{BASE}")
        self.bad("stranger", "strangers-password")

    def test_a_deactivated_user(self):
        token = self.good("eve", "eves-password")["token"]
        self.assertEqual(self.world.skep("user", "deactivate", "eve").returncode, 0)
        self.assertEqual(self.world.json("GET", "/api/v2/jobs", token=token)[0], 401)
        self.bad("eve", "eves-password")
        self.bad("EVE", "eves-password", 403, "ForbiddenUserError", "deactivated")
        self.assertEqual(self.world.skep("user", "activate", "eve").returncode, 0)
        self.good("eve", "eves-password")

    def test_guesses_are_slowed_down(self):
        for name in ("guessed", "Guessed", "GUESSED", "gUessed", "guEssed"):
            self.bad(name, "a guess")

        def are_braked():  # the first pause is a second: on a slow machine a guess may come after it, and the next is longer
            return [self.login("gueSsed", "a guess")[0], self.login("guessed", "guesseds-password")[0]] == [429, 429]

        waits.until(are_braked, "guesses are slowed down")

    # ---- the directory's side ----

    def test_ldaps(self):
        self.restart(url=f"ldaps://127.0.0.1:{self.directory.tls_port}")
        self.good("alice", "alices-password")
        self.bad("alice", "wrong")

    def test_certificates(self):
        other = Directory(PEOPLE, names="DNS:other.example.org")
        try:
            for changes in ({"caFile": None}, {"caFile": other.folder / "ca.pem"}, {"url": f"ldap://127.0.0.1:{other.port}", "caFile":
                            other.folder / "ca.pem"}, {"url": f"ldaps://127.0.0.1:{other.tls_port}", "caFile": other.folder / "ca.pem"}):
                with self.subTest(changes):
                    self.restart(**changes)
                    self.bad("alice", "alices-password", 503, "UnavailableError", "the directory is away")
            other.stop()
            self.assertNotIn("BIND dn=", other.log())  # it has heard no password
        finally:
            other.remove()

    def test_a_directory_that_is_away(self):
        self.directory.stop()
        try:
            self.bad("alice", "alices-password", 503, "UnavailableError", "the directory is away")
            self.assertEqual(self.good("admin", self.world.admin_password)["user"], "admin")
            for _ in range(6):  # that is nobody's wrong password
                self.bad("alice", "alices-password", 503, "UnavailableError", "the directory is away")
        finally:
            self.directory.start()
        waits.until(lambda: self.login("alice", "alices-password")[0] == 200, lambda: self.login("alice", "alices-password"))

    def test_a_searcher_who_is_refused(self):
        self.secret.write_text("not it")
        try:
            self.restart()
            self.bad("alice", "alices-password", 503, "UnavailableError", "the directory refuses bindDn")
        finally:
            self.secret.write_text(SEARCHER_PASSWORD)


if __name__ == "__main__":
    reason = missing()
    if reason:
        print(f"skip: {reason}")
        sys.exit(77)
    world.main()
