"""A server whose logins are answered by somebody else: what the tests of such logins begin with."""
import unittest

import world


class SignonCase(unittest.TestCase):
    """A class of tests gives `configure`, which writes cls.config with cls.base and what follows it."""

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
