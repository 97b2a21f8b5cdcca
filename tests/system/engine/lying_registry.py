"""A registry that says what its owner likes: it answers each path with a file, and checks nothing.

    lying_registry.py FOLDER    serves FOLDER/PATH, with "/" in PATH as "_"; prints its port
"""
import http.server
import json
import pathlib
import sys


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        file = pathlib.Path(sys.argv[1]) / self.path.strip("/").replace("/", "_")
        body = b"{}" if self.path == "/v2/" else file.read_bytes() if file.is_file() else None
        self.send_response(404 if body is None else 200)
        if body:
            self.send_header("Content-Type", json.loads(body).get("mediaType", "application/json"))
        self.send_header("Content-Length", str(len(body or b"")))
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(body or b"")

    do_HEAD = do_GET

    def log_message(self, *_):
        pass


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
print(server.server_port, flush=True)
server.serve_forever()
