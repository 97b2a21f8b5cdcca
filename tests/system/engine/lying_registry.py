"""A registry that says what its owner likes: it answers each path with a file, and checks nothing.

    lying_registry.py FOLDER    serves FOLDER/PATH, with "/" in PATH as "_"; prints its port
"""
import json
import pathlib
import sys

import played_registry


class Handler(played_registry.Handler):
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


played_registry.serve(Handler)
