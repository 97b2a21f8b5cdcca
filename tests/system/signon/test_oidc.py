"""Login by OpenID Connect against a real provider, as a browser would do it.

Covers: src/cli/login_oidc.c, src/api/oidc.c, src/api/oidc_thread.c, src/api/signon_user.c, src/api/grant.c, src/signon/oidc.c, src/signon/fetch.c
"""
import json
import re
import subprocess
import sys

import waits
import world
from browser import Browser, query
from provider import SECRET, Provider, missing
from signon_case import SignonCase

PUBLIC = "https://skep.test"
HOME = PUBLIC + "/home.html"
PEOPLE = {
    "alice": {"name": "alice", "groups": ["ml-team"], "email": "alice@example.org"},
    "bob": {"name": "bob@example.org", "groups": [], "email": "bob@example.org"},
    "admin": {"name": "admin", "groups": [], "email": "x@example.org"},
    "strange": {"name": "Ana María", "groups": ["ml-team"]},
    "empty": {"name": "@nothing", "groups": []},
}


class Oidc(SignonCase):
    @classmethod
    def setUpClass(cls):
        cls.provider = Provider(PUBLIC + "/api/v2/authn/oidc/return")
        cls.server_begin(SECRET)
        cls.server_start()

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

    def answerer_said(self):
        return f"the provider said:\n{self.provider.said()}"

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
        state = query(self.begin(browser, **{"from": "/jobs%3Fa%3Db"}))["state"]
        given = query(browser.follow(f"{PUBLIC}/api/v2/authn/oidc/return?error=access_denied&state={state}", HOME))
        self.assertIn("access_denied", given["errorMessage"])
        self.assertEqual(given["from"], "/jobs?a=b")  # the page to try again from
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

    # ---- programs ----

    def skep_login(self, *words, user):
        """`skep login` that has printed the page to go to: the process, and the lines until then."""
        opened = self.world.folder / "opened"
        browser = self.world.folder / "browser"
        browser.write_text(f'#!/bin/sh\necho "$1" > {opened}.new && mv {opened}.new {opened}\n')
        browser.chmod(0o755)
        opened.unlink(missing_ok=True)
        environment = self.world.environment(user) | {"BROWSER": str(browser)}
        process = subprocess.Popen([world.SKEP, "login", *words], env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.addCleanup(process.stderr.close)
        self.addCleanup(process.stdout.close)
        lines = []
        while not (lines and lines[-1].startswith("  http")):
            lines.append(process.stderr.readline())
            self.assertTrue(lines[-1], lines)
        return process, lines[-1].strip(), opened

    def whoami(self, user):
        return self.world.skep("whoami", "-o", "json", user=user)

    def test_skep_login_by_a_browser_of_this_machine(self):
        process, url, opened = self.skep_login("--oidc", user="laptop")
        waits.until(opened.exists, lambda: "the browser was not started")
        self.assertEqual(opened.read_text().strip(), url)
        port = query(url)["redirect_uri"].split(":")[2].split("/")[0]
        browser = Browser({PUBLIC: f"http://127.0.0.1:{self.world.port}"})
        # somebody else who finds the port learns nothing, and disturbs nobody
        self.assertEqual(browser.ask("GET", f"http://127.0.0.1:{port}/?code=x")[0], 404)
        status, body = browser.follow(url, "nowhere", "alice")
        self.assertEqual(status, 200, body)
        self.assertIn("Go back to the terminal", body)
        self.assertEqual(process.wait(60), 0, process.stderr.read())
        self.assertIn("as alice", process.stdout.read())
        self.assertEqual(json.loads(self.whoami("laptop").stdout)["username"], "alice")
        self.assertEqual(self.world.skep("logout", user="laptop").returncode, 0)

    def test_skep_login_with_a_code_of_another(self):
        """A code that was given to another program is no good, whoever brings it."""
        one, url, _ = self.skep_login("--oidc", user="one")
        other, place, _ = self.skep_login("--oidc", user="other")
        browser = self.browser()
        mine = browser.follow(url, "http://127.0.0.1:" + query(url)["redirect_uri"].split(":")[2], "alice")
        code = query(mine)["code"]
        self.assertEqual(browser.ask("GET", query(place)["redirect_uri"] + "?code=" + code)[0], 200)
        self.assertEqual(other.wait(60), 4)
        self.assertIn("the code is not one of this login", other.stderr.read())
        self.assertEqual(browser.ask("GET", mine)[0], 200)
        self.assertEqual(one.wait(60), 0, one.stderr.read())

    def test_skep_login_refused(self):
        self.provider.control(people=PEOPLE | {"admin": {"name": "admin", "groups": []}})
        process, url, _ = self.skep_login("--oidc", user="nobody")
        self.assertEqual(self.browser().follow(url, "nowhere", "admin")[0], 200)
        self.assertEqual(process.wait(60), 4)
        self.assertIn("logs in with a password here", process.stderr.read())
        self.assertEqual(self.whoami("nobody").returncode, 4)

    def test_skep_login_by_a_device_code(self):
        self.provider.control(device=True)
        process, url, _ = self.skep_login("--device", user="cluster")
        process.stderr.readline()
        code = re.search(r"with the code (\S+)", process.stderr.readline())[1]
        browser = self.browser()
        status, _, body = browser.ask("GET", url)
        form = {name: value for name, value in re.findall(r'name="(\w+)" value="([^"]*)"', body)} | {"user_code": code}
        status, _, body = browser.ask("POST", url, form)
        self.assertIn(code, body)
        form = {name: value for name, value in re.findall(r'name="(\w+)" value="([^"]*)"', body)} | {"confirm": "yes"}
        status, location, body = browser.ask("POST", url, form)
        self.assertIn(status, (302, 303), body)
        status, body = browser.follow(location, "nowhere", "alice")
        self.assertEqual(status, 200, body)
        self.assertEqual(process.wait(60), 0, process.stderr.read())
        self.assertEqual(json.loads(self.whoami("cluster").stdout)["username"], "alice")

    def test_device_codes_that_are_refused(self):
        self.provider.control(device=True)
        status, given = self.world.json("POST", "/api/v2/authn/oidc/device", token=False)
        self.assertEqual(status, 200, given)
        ask = lambda code: self.world.json("POST", "/api/v2/authn/oidc/token", {"device_code": code}, token=False)
        self.assertEqual(ask(given["device_code"])[0], 202)
        self.assertEqual(ask(("B" if given["device_code"][0] == "A" else "A") + given["device_code"][1:])[0], 400)
        self.assertEqual(ask("x")[0], 400)
        status, reply = self.world.json("POST", "/api/v2/authn/oidc/token", {"device_code": given["device_code"], "wrong": 1}, token=False)
        self.assertEqual(status, 400)
        self.assertIn("there is no 'wrong' here: the body has code and code_verifier, or device_code", reply["message"])
        # the user says no
        browser = self.browser()
        body = browser.ask("GET", given["verification_uri"])[2]
        form = {name: value for name, value in re.findall(r'name="(\w+)" value="([^"]*)"', body)}
        browser.ask("POST", given["verification_uri"], form | {"user_code": given["user_code"]})
        browser.ask("POST", given["verification_uri"], form | {"user_code": given["user_code"], "abort": "yes"})
        status, reply = ask(given["device_code"])
        self.assertEqual((status, reply["code"]), (401, "UnauthorizedUserError"), reply)
        self.assertIn("access_denied", reply["message"])

    def test_a_device_code_that_no_terminal_should_show(self):
        self.provider.control(device=True)
        try:
            for word in ("AB\x1b[2J", "A B", "AB\x7f", "ABé", "AB\n", ""):
                with self.subTest(word):
                    self.provider.control(deviceReply={"user_code": word})
                    status, reply = self.world.json("POST", "/api/v2/authn/oidc/device", token=False)
                    self.assertGreaterEqual(status, 500, reply)
                    self.assertIn("device code makes no sense", reply["message"])
        finally:
            self.provider.control(deviceReply=None)

    def test_a_provider_without_device_codes(self):
        self.provider.control(device=False)
        try:
            done = self.world.skep("login", "--device", user="cluster")
            self.assertEqual(done.returncode, 4)
            self.assertIn("gives no device code: invalid_request", done.stderr)
        finally:
            self.provider.control(device=True)

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

    def test_a_provider_without_logout(self):
        self.provider.control(says={"end_session_endpoint": None})
        self.restart()  # what the provider said before is kept for an hour
        try:
            status, location, body = self.browser().ask("GET", f"{PUBLIC}/api/v2/authn/oidc/logout?redirect_uri={PUBLIC}/bye")
            self.assertEqual((status, location), (302, PUBLIC + "/bye"), body)
        finally:
            self.provider.control(says=None)
            self.restart()

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

    def test_a_visitor_does_not_keep_the_account(self):
        """Who asks for the name of somebody whom the provider knows has the account until that one logs in."""
        try:
            self.restart("adoptUsers: true\nauth: {signUp: request}")
            self.provider.control(people=PEOPLE | {"dora": {"name": "dora", "groups": [], "email": "dora@example.org"}})
            words = {"username": "dora", "password": "visitors-password"}
            asked = self.world.json("POST", "/api/v2/requests/account", words | {"email": "dora@example.net"}, token=False)
            self.assertEqual(asked[0], 202, asked)
            request = self.world.json("GET", "/api/v2/requests?status=open")[1]["data"][0]
            self.assertEqual(self.world.json("PUT", f"/api/v2/requests/{request['id']}/status", {"status": "accepted"})[0], 200)
            token = self.world.json("POST", "/api/v2/authn/basic/login", words, token=False)[1]["token"]
            self.assertEqual(self.world.json("GET", "/api/v2/tokens/check", token=token)[0], 200)
            self.assertEqual(self.login("dora")["user"], "dora")
            self.assertEqual(self.world.json("GET", "/api/v2/tokens/check", token=token)[0], 401)
            self.assertEqual(self.world.json("POST", "/api/v2/authn/basic/login", words, token=False)[0], 400)
            self.assertEqual(self.info("dora")["email"], "dora@example.org")
        finally:
            self.restart("createUsers: true")

    def test_the_name_of_a_removed_user(self):
        """A storage has a folder of hers, which another one of her name would get."""
        self.restart("createUsers: true\nstorages: [{name: home, directory: /srv, share: false}]")
        self.addCleanup(self.restart)
        self.provider.control(people=PEOPLE | {"fay": {"name": "fay", "groups": []}})
        self.assertEqual(self.login("fay")["user"], "fay")
        self.assertEqual(self.world.skep("user", "remove", "fay").returncode, 0)
        self.assertEqual(self.login("fay")["user"], "fay")  # the same one is back
        self.assertEqual(self.world.skep("user", "remove", "fay").returncode, 0)
        self.provider.control(people=PEOPLE | {"fay2": {"name": "fay", "groups": []}})
        self.fails("fay2", "another user fay here before")
        done = self.world.skep("user", "add", "fay", "--no-password", "--reuse-name")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(self.login("fay2")["user"], "fay")

    def test_a_provider_without_a_place_for_claims(self):
        """Then it puts all that it knows into the token."""
        try:
            self.provider.control(people=PEOPLE | {"nameless": {"groups": ["ml-team"]}}, userinfo=False)
            self.restart()  # what it said of itself before is forgotten
            self.assertEqual(self.login("alice")["user"], "alice")
            self.fails("nameless", "it gives no claim preferred_username")
            self.assertNotIn("/me", self.provider.control())
        finally:
            self.provider.control(userinfo=True)
            self.restart()

    def test_a_provider_that_names_its_places_wrongly(self):
        try:
            for says, message in (({"issuer": "https://other.example.org"}, "calls itself https://other.example.org"),
                                  ({"token_endpoint": "http://other.example.org/token"}, "token_endpoint is no URL that may be asked"),
                                  ({"userinfo_endpoint": 5}, "userinfo_endpoint is no URL that may be asked")):
                with self.subTest(says):
                    self.provider.control(says=says)
                    self.restart()
                    status, _, body = self.browser().ask("GET", f"{PUBLIC}/api/v2/authn/oidc/login?redirect_uri={HOME}")
                    self.assertEqual(status, 503, body)
                    self.assertIn(message, body)
                    self.world.login("admin", self.world.admin_password)
        finally:
            self.provider.control(says=None)
            self.restart()

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
            status, location, body = self.browser().ask("GET", f"{PUBLIC}/api/v2/authn/oidc/logout?redirect_uri={PUBLIC}/bye")
            self.assertEqual(status, 302, body)
            self.assertTrue(location.startswith(f"{PUBLIC}/bye?errorMessage="), location)
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
