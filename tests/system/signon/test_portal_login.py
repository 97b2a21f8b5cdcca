"""The portal's login through a real provider, in a real browser.

Covers: web/src/lib/sign-on.ts
"""
import os
import pathlib
import subprocess
import sys
import unittest

import world
import chromium
from provider import SECRET, Provider, missing

WEB = pathlib.Path(__file__).resolve().parents[3] / "web"


class PortalLogin(unittest.TestCase):
    def test_login(self):
        with world.World() as skep:
            if skep.ask("GET", "/", token=False)[0] != 200:
                self.skipTest("skepd was built without the portal")
            public = f"http://127.0.0.1:{skep.port}"
            provider = Provider(public + "/api/v2/authn/oidc/return")
            try:
                provider.control(people={"alice": {"name": "alice", "groups": [], "email": "alice@example.org"},
                                         "admin": {"name": "admin", "groups": [], "email": "x@example.org"}})
                secret = skep.folder / "secret"
                secret.write_text(SECRET + "\n")
                config = skep.folder / "skepd.yaml"
                skep.stop()
                config.write_text(config.read_text() + f"""
api:
  oidc:
    issuer: {provider.issuer}
    clientId: skep
    clientSecretFile: {secret}
    publicUrl: {public}
    createUsers: true
""")
                skep.start()
                subprocess.run(["node", WEB / "build.mjs", "--packages", "--all"], check=True)
                environment = os.environ | {"PORTAL_URL": public, "PORTAL_PASSWORD": skep.admin_password, "PORTAL_PROVIDER": provider.issuer,
                                            "PORTAL_RESULTS": str(skep.folder / "results")}
                done = subprocess.run(["node", WEB / "node_modules/@playwright/test/cli.js", "test", "sign-on.spec.ts"], cwd=WEB,
                                      env=environment, check=False)
                self.assertEqual(done.returncode, 0)
            finally:
                provider.stop()


if __name__ == "__main__":
    reason = missing() or chromium.missing()
    if reason:
        print(f"skip: {reason}")
        sys.exit(77)
    world.main()
