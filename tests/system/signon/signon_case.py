"""A server whose logins are answered by somebody else: what the tests of such logins begin with."""
import sys
import unittest

import world


def failed(result):
    return len(result.failures) + len(result.errors)


class SignonCase(unittest.TestCase):
    """A class of tests gives `configure`, which writes cls.config with cls.base and what follows it."""

    def run(self, result=None):
        """A test that fails shows what the server and who answers had to say."""
        result = result or self.defaultTestResult()
        before = failed(result)
        super().run(result)
        if failed(result) > before:
            log = (self.world.folder / "skepd.log").read_text(errors="replace")
            print(f"the end of the server's log after {self.id()}:\n{log[-4000:]}\n{self.answerer_said()}", file=sys.stderr)
        return result

    def answerer_said(self):
        return ""

    @classmethod
    def server_begin(cls, secret):
        """A server of its own; cls.secret is a file with the secret that it shares with who answers."""
        cls.world = world.World()
        cls.secret = cls.world.folder / "secret"
        cls.secret.write_text(secret + "\n")
        cls.config = cls.world.folder / "skepd.yaml"
        cls.base = cls.config.read_text()

    @classmethod
    def server_start(cls):
        cls.configure()
        cls.world.start()
        cls.world.admin_password = (cls.world.folder / "password").read_text().strip()
        cls.world.login("admin", cls.world.admin_password)

    def restart(self, *more, **changes):
        self.world.stop()
        self.configure(*more, **changes)
        self.world.start()

    def info(self, user):
        status, reply = self.world.json("GET", f"/api/v2/users/{user}")
        return reply if status == 200 else None
