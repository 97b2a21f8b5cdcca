"""What the registries that tests play have in common: registry.c runs them as programs of their own."""
import http.client
import http.server
import sys


class Handler(http.server.BaseHTTPRequestHandler):
    """A HEAD is a GET of which only the head is wanted."""

    def do_HEAD(self):
        self.do_GET()

    def log_message(self, *_):
        pass

    def asked(self):
        """What the real registry, on the port of the first argument, says to this request: status, headers, body."""
        connection = http.client.HTTPConnection("127.0.0.1", int(sys.argv[1]))
        connection.request(self.command, self.path, headers={"Accept": ", ".join(self.headers.get_all("Accept", []))})
        response = connection.getresponse()
        headers = [(name, value) for name, value in response.getheaders() if name.lower() not in ("connection", "date")]
        return response.status, headers, response.read()


def serve(handler):
    """On a port of its own, which is printed, until it is ended."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    print(server.server_port, flush=True)
    server.serve_forever()
