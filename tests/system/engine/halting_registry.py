"""A registry that stops in the middle of a blob, and says no more until it is ended: the real one answers everything else.

    halting_registry.py PORT      asks the registry on PORT; prints its own port; then a line for each blob of which it has sent a part
"""
import http.client
import http.server
import sys
import threading

PART = 1 << 20  # of a blob that is larger, so much is sent


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        connection = http.client.HTTPConnection("127.0.0.1", int(sys.argv[1]))
        connection.request(self.command, self.path, headers={"Accept": ", ".join(self.headers.get_all("Accept", []))})
        response = connection.getresponse()
        body = response.read()
        self.send_response(response.status)
        for name, value in response.getheaders():
            if name.lower() not in ("connection", "date"):
                self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body[:PART])
        self.wfile.flush()
        if len(body) > PART:
            print(self.command, self.path, flush=True)
            threading.Event().wait()

    do_HEAD = do_GET

    def log_message(self, *_):
        pass


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
print(server.server_port, flush=True)
server.serve_forever()
