"""Login by OpenID Connect against a real provider, as a browser would do it.

Covers: src/api/oidc.c, src/api/oidc_thread.c, src/api/signon_user.c, src/api/grant.c, src/signon/oidc.c, src/signon/fetch.c
"""
import sys
import unittest

import waits
import world
from browser import Browser, query
from provider import SECRET, Provider, missing

PUBLIC = "https://skep.test"
HOME = PUBLIC + "/home.html"
PEOPLE = {
    "alice": {"name": "alice", "groups": ["ml-team"], "email": "alice@example.org"},
    "bob": {"name": "bob@example.org", "groups": [], "email": "bob@example.org"},
    "admin": {"name": "admin", "groups": [], "email": "x@example.org"},
    "strange": {"name": "Ana María", "groups": ["ml-team"]},
    "empty": {"name": "@nothing", "groups": []},
}


class Oidc(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.provider = Provider(PUBLIC + "/api/v2/authn/oidc/return")
        cls.world = world.World()
        cls.secret = cls.world.folder / "secret"
        cls.secret.write_text(SECRET + "\n")
        cls.config = cls.world.folder / "skepd.yaml"
        cls.base = cls.config.read_text()
        cls.configure()
        cls.world.start()
        cls.world.admin_password = (cls.world.folder / "password").read_text().strip()
        cls.world.login("admin", cls.world.admin_password)

    @classmethod
    def tearDownClass(cls):
        cls.world.__exit__()
        cls.provider.stop()

    @classmethod
    def configure(cls, more="createUsers: true"):
        cls.config.write_text(cls.base + f"""
api:
  oidc:
    issuer: {cls.provider.issuer}
    clientId: skep
    clientSecretFile: {cls.secret}
    publicUrl: {PUBLIC}
    portals: ["https://portal.test"]
    {more}
""")

    def setUp(self):
        self.provider.control(people=PEOPLE, tamper="", alg="RS256", claimsInToken=False)

    def restart(self, more):
        self.world.stop()
        self.configure(more)
        self.world.start()

    def browser(self):
        return Browser({PUBLIC: f"http://127.0.0.1:{self.world.port}"})

    def begin(self, browser, redirect_uri=HOME, **more):
        url = f"{PUBLIC}/api/v2/authn/oidc/login?redirect_uri={redirect_uri}"
        url += "".join(f"&{key}={value}" for key, value in more.items())
        status, location, body = browser.ask("GET", url)
        self.assertEqual(status, 302, body)
        return location

    def login(self, user, browser=None, until=HOME):
        """What the page gets that asked for the login."""
        browser = browser or self.browser()
        end = browser.follow(self.begin(browser), until, user)
        self.assertIsInstance(end, str, end)
        return query(end)

    def fails(self, user, message):
        given = self.login(user)
        self.assertIn(message, given.get("errorMessage", given))
        self.assertNotIn("token", given)

    def info(self, user):
        status, reply = self.world.json("GET", f"/api/v2/users/{user}")
        return reply if status == 200 else None

    # ---- logins ----

    def test_a_login(self):
        browser = self.browser()
        url = self.begin(browser, **{"from": "/jobs%3Fa%3Db"})
        cookie = browser.reply.getheader("Set-Cookie")
        for word in ("HttpOnly", "SameSite=Lax", "Secure", "Max-Age=600"):
            self.assertIn(word, cookie)
        asked = query(url)
        self.assertEqual(asked["code_challenge_method"], "S256")
        self.assertEqual(asked["scope"], "openid profile email")
        self.assertEqual(asked["redirect_uri"], PUBLIC + "/api/v2/authn/oidc/return")
        given = query(browser.follow(url, HOME, "alice"))
        self.assertEqual((given["user"], given["admin"], given["from"]), ("alice", "false", "/jobs?a=b"))
        self.assertEqual(browser.reply.getheader("Referrer-Policy"), "no-referrer")
        self.assertEqual(self.world.json("GET", "/api/v2/tokens/check", token=given["token"])[1]["username"], "alice")
        self.assertEqual(self.info("alice")["email"], "alice@example.org")
        # the second time the user is there
        self.assertEqual(self.login("alice")["user"], "alice")

    def test_what_portals_are_told(self):
        info = self.world.json("GET", "/api/v2/authn/info", token=False)[1]
        self.assertEqual((info["authn_type"], info["loginURI"], info["loginURIMethod"]), ("OIDC", "/api/v2/authn/oidc/login", "get"))
        self.assertEqual([way["type"] for way in info["methods"]], ["OIDC", "basic"])
        self.assertEqual(self.world.json("GET", "/api/v2/info", token=False)[1]["authnMethod"], "OIDC")

    def test_every_algorithm(self):
        for alg in ("RS256", "PS256", "ES256"):
            for in_token in (False, True):
                self.provider.control(alg=alg, claimsInToken=in_token, rotate=f"{alg}-{in_token}")
                waits.until(lambda: "token" in self.login("alice"), lambda: (alg, in_token))

    def test_names(self):
        self.assertEqual(self.login("bob")["user"], "bob")
        self.assertEqual(self.login("strange")["user"], "Ana_Mar__a")
        self.fails("empty", "no name of 1..64 characters")
        # the user is found by the provider's number, not by the name
        self.provider.control(people=PEOPLE | {"bob": {"name": "robert", "groups": []}})
        self.assertEqual(self.login("bob")["user"], "bob")
        # somebody else of the same name is not let in
        self.provider.control(people=PEOPLE | {"bob2": {"name": "bob", "groups": []}})
        self.fails("bob2", "somebody else")
        self.fails("admin", "logs in with a password here")

    def test_groups_follow_the_provider(self):
        for words in (("team", "--external-name", "ml-team"), ("bosses", "--external-name", "ml-admins", "--admin", "yes"), ("local",)):
            done = self.world.skep("group", "add", *words)
            self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(self.login("alice")["admin"], "false")
        self.assertEqual(sorted(self.info("alice")["grouplist"]), ["default", "team"])
        self.assertEqual(self.world.skep("group", "join", "local", "alice").returncode, 0)
        self.provider.control(people=PEOPLE | {"alice": {"name": "alice", "groups": ["ml-admins", "unknown"]}})
        self.assertEqual(self.login("alice")["admin"], "true")
        self.assertEqual(sorted(self.info("alice")["grouplist"]), ["bosses", "default", "local"])
        self.provider.control(people=PEOPLE | {"alice": {"name": "alice", "groups": []}})
        given = self.login("alice")
        self.assertEqual(given["admin"], "false")
        self.assertEqual(sorted(self.info("alice")["grouplist"]), ["default", "local"])

    def test_a_deactivated_user(self):
        self.provider.control(people=PEOPLE | {"eve": {"name": "eve", "groups": []}})
        token = self.login("eve")["token"]
        self.assertEqual(self.world.skep("user", "deactivate", "eve").returncode, 0)
        self.assertEqual(self.world.json("GET", "/api/v2/jobs", token=token)[0], 401)
        self.fails("eve", "deactivated")

    # ---- what is refused ----

    def test_bad_tokens(self):
        self.provider.control(tamper="nothing")
        self.assertIn("token", self.login("alice"))
        for tamper, message in {
            "expired": "expired", "old": "too old", "future": "of the future", "no exp": "not a time", "issuer": "another issuer",
            "audience": "another client", "azp": "another client", "two without azp": "another client", "nonce": "another login",
            "no subject": "names nobody", "other subject": "another user", "none": "algorithm", "HS256": "algorithm",
            "signature": "signature is wrong", "key": "signature is wrong", "crit": "extension", "no dots": "three parts",
        }.items():
            with self.subTest(tamper):
                self.provider.control(tamper=tamper)
                self.fails("alice", message)

    def test_wrong_states(self):
        browser = self.browser()
        back = browser.follow(self.begin(browser), PUBLIC + "/api/", "alice")
        state = query(back)["state"]
        for bad in (back.replace(state, state[:-1] + ("A" if state[-1] != "A" else "B")), back.replace(state, "x"),
                    PUBLIC + "/api/v2/authn/oidc/return?code=x"):
            status, _, body = browser.ask("GET", bad)
            self.assertEqual(status, 400, body)
            self.assertIn("not begun in this browser", body)
        status, _, body = self.browser().ask("GET", back)  # another browser
        self.assertEqual(status, 400, body)
        self.assertIn("token", query(browser.follow(back, HOME)))

    def test_a_code_is_good_once(self):
        browser = self.browser()
        back = browser.follow(self.begin(browser), PUBLIC + "/api/", "alice")
        jar = {host: dict(cookies) for host, cookies in browser.cookies.items()}
        self.assertIn("token", query(browser.follow(back, HOME)))
        self.assertEqual(browser.ask("GET", back)[0], 400)  # the cookie has gone
        thief = self.browser()
        thief.cookies = jar
        given = query(thief.follow(back, HOME))
        self.assertIn("invalid_grant", given["errorMessage"])
        self.assertNotIn("token", given)

    def test_a_code_of_another_login(self):
        one, other = self.browser(), self.browser()
        back = one.follow(self.begin(one), PUBLIC + "/api/", "alice")
        mine = other.follow(self.begin(other), PUBLIC + "/api/", "bob")
        given = query(other.follow(mine.replace(query(mine)["code"], query(back)["code"]), HOME))
        self.assertIn("invalid_grant", given["errorMessage"])

    def test_what_the_provider_refuses(self):
        browser = self.browser()
        state = query(self.begin(browser))["state"]
        given = query(browser.follow(f"{PUBLIC}/api/v2/authn/oidc/return?error=access_denied&state={state}", HOME))
        self.assertIn("access_denied", given["errorMessage"])
        state = query(self.begin(browser))["state"]
        given = query(browser.follow(f"{PUBLIC}/api/v2/authn/oidc/return?code=x&iss=https://evil.test&state={state}", HOME))
        self.assertIn("another provider", given["errorMessage"])

    def test_where_tokens_do_not_go(self):
        for url in ("https://evil.test/", "https://skep.test.evil.test/", "https://skep.test@evil.test/", "http://skep.test/",
                    "http://127.0.0.1/", "http://127.0.0.1:80@evil.test/", "http://localhost:80/", "javascript:alert(1)",
                    "https://skep.test/%23x", "https://skep.test/%0d%0aSet-Cookie:a", "//evil.test/", "/home.html"):
            with self.subTest(url):
                status, location, body = self.browser().ask("GET", f"{PUBLIC}/api/v2/authn/oidc/login?redirect_uri={url}")
                self.assertEqual((status, location), (400, None), body)
        self.assertTrue(self.begin(self.browser(), "https://portal.test/x?y=z"))
        # a program gets no token in its address, and nothing without a challenge
        status, _, body = self.browser().ask("GET", f"{PUBLIC}/api/v2/authn/oidc/login?redirect_uri=http://127.0.0.1:5/")
        self.assertEqual(status, 400, body)
        self.assertIn("code_challenge", body)

    # ---- the provider's side ----

    def test_keys_change(self):
        self.assertIn("token", self.login("alice"))
        for number in (1, 2):
            self.provider.control(rotate=f"next-{number}")
            waits.until(lambda: "token" in self.login("alice"), lambda: f"rotation {number}")
        # one that is not there is asked for, but not each time
        self.provider.control()
        self.provider.control(tamper="key")
        for _ in range(3):
            self.fails("alice", "signature is wrong")
        self.assertEqual(self.provider.control().get("/jwks", 0), 0)

    def test_logout(self):
        browser = self.browser()
        self.login("alice", browser)
        self.assertIn("token", query(browser.follow(self.begin(browser), HOME)))  # without a form
        end = browser.follow(f"{PUBLIC}/api/v2/authn/oidc/logout?redirect_uri={PUBLIC}/bye", PUBLIC + "/bye")
        self.assertEqual(end.split("?")[0], PUBLIC + "/bye")
        browser.visited.clear()
        self.assertEqual(query(browser.follow(self.begin(browser), HOME, "bob"))["user"], "bob")
        self.assertTrue(any("/interaction/" in url for url in browser.visited))

    def test_the_operators_rules(self):
        try:
            self.restart("allowedGroups: [ml-team]")
            self.provider.control(people=PEOPLE | {"carl": {"name": "carl", "groups": ["ml-team"]}})
            self.fails("bob", "none of the groups")
            self.fails("carl", "an administrator must make one")
            status, _ = self.world.json("POST", "/api/v2/users", {"username": "carl", "password": "carls-password"})
            self.assertEqual(status, 201)
            self.fails("carl", "logs in with a password here")
            self.restart("adoptUsers: true")
            self.assertEqual(self.login("carl")["user"], "carl")
        finally:
            self.restart("createUsers: true")

    def test_a_provider_that_is_away(self):
        other = Provider(PUBLIC + "/api/v2/authn/oidc/return")
        other.stop()
        text = self.config.read_text()
        self.world.stop()
        self.config.write_text(text.replace(self.provider.issuer, other.issuer))
        try:
            self.world.start()
            status, _, body = self.browser().ask("GET", f"{PUBLIC}/api/v2/authn/oidc/login?redirect_uri={HOME}")
            self.assertEqual(status, 503, body)
            self.assertIn("provider of the sign-on is away", body)
            self.world.login("admin", self.world.admin_password)
        finally:
            self.world.stop()
            self.config.write_text(text)
            self.world.start()


if __name__ == "__main__":
    reason = missing()
    if reason:
        print(f"skip: {reason}")
        sys.exit(77)
    world.main()
