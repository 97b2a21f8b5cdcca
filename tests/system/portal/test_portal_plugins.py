"""Plugins of the portal in a real browser: scripts from another origin, which define OpenPAI's element and call the API.

Covers: src/api/plugin.c, src/server/config_plugins.c, web/src/plugin-frame.ts, web/src/pages/plugin.tsx

usage: test_portal_plugins.py [ARGUMENT…]    further arguments are Playwright's

Exit 77: something that it needs is not installed, or skepd was built without the portal.
"""
import http.server
import sys
import threading

from browser import SKIP, packages_install, playwright, why_not
from world import World, job

# As those of OpenPAI are written: attributes, cookies, storages, globals and the query of the page; and what none may have.
GOOD = """
class PaiPlugin extends HTMLElement {
  async connectedCallback() {
    const server = this.getAttribute('pai-rest-server-uri'), token = this.getAttribute('pai-rest-server-token')
    const query = new URLSearchParams(window.location.search)
    localStorage.setItem('seen', 'yes')
    const say = (name, text) => {
      const line = document.createElement('p')
      line.textContent = name + ': ' + text
      this.append(line)
    }
    say('user', this.getAttribute('pai-user'))
    say('version', this.getAttribute('pai-version'))
    say('config', JSON.stringify(window.PAI_PLUGINS[Number(query.get('index'))].config))
    say('neighbour', JSON.stringify(window.PAI_PLUGINS.map((plugin) => plugin.config).slice(1)))
    say('cookie', String(document.cookie.includes('admin=true') && localStorage.getItem('seen') === 'yes'))
    say('asked', [query.get('op'), query.get('user'), query.get('jobname')].join(' '))
    const ask = (path, options = {}) => fetch(server + path, {...options, headers: {Authorization: 'Bearer ' + token, ...options.headers}})
    const claims = await (await ask('/api/v2/tokens/check')).json()
    say('claims', [claims.username, claims.application, claims.scope].join(' '))
    say('jobs', String((await (await ask('/api/v2/jobs')).json()).length >= 0))
    say('accounts', String((await ask('/api/v2/users', {method: 'POST', headers: {'Content-Type': 'application/json'}, body: '{}'})).status))
    let reached = 'the portal'
    try { reached = String(parent.sessionStorage.getItem('skep.session')) } catch (error) { reached = error.name }
    say('session', reached)
    if (query.get('try') === 'elsewhere') {
      document.addEventListener('securitypolicyviolation', (event) => say('refused', event.effectiveDirective + ' ' + event.blockedURI), {once: true})
      fetch('http://127.0.0.1:9/').catch(() => {})
    }
    const link = document.createElement('a')
    link.href = '/job-list.html?status=Failed'
    link.textContent = 'Failed jobs'
    this.append(link)
  }
}
customElements.define('pai-plugin', PaiPlugin)
"""
PLUGINS = """
portal:
  plugins:
  - {{id: market, title: Market, uri: "{0}/market.js?nfs=a", config: {{repo: lab/pai}}}}
  - {{title: Empty, uri: "{0}/empty.js", config: {{token: of another}}}}
  - {{title: Gone, uri: "{0}/gone.js"}}
"""


def scripts():
    """The other origin."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            text = {"/market.js": GOOD, "/empty.js": ""}.get(self.path.split("?")[0])
            self.send_response(404 if text is None else 200)
            self.send_header("Content-Type", "text/javascript")
            self.send_header("Content-Length", str(len(text or "")))
            self.end_headers()
            self.wfile.write((text or "").encode())

        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server


def main():
    reason = why_not(needs_containers=False)
    if reason:
        print(f"skip: {reason}")
        return SKIP
    packages_install()
    server = scripts()
    world = World(run_ms=100)
    config = world.folder / "skepd.yaml"
    config.write_text(config.read_text() + PLUGINS.format(f"http://127.0.0.1:{server.server_port}"))
    with world:
        submitted = world.skep("submit", world.file(job("cloned", ["true"], extra="extras: {submitFrom: market}\n")))
        assert submitted.returncode == 0, submitted.stderr
        code = playwright(world, "plugins.spec.ts", *sys.argv[1:], PORTAL_PLUGINS="1")
    server.shutdown()
    return code


if __name__ == "__main__":
    sys.exit(main())
