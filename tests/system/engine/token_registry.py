"""A registry behind tokens: the real one answers, to those who have a token for its pull, as the specification of
Docker's registry has it. The token is given to bob with the password secret. For repositories whose name begins with "late" the
token service is away, and resets each connection, until somebody else than skopeo has asked it: the engine itself.

    token_registry.py PORT      asks the registry on PORT; prints its own port; then a line for each request that it let pass
"""
import base64
import json
import os
import socket
import struct
import urllib.parse

import played_registry

TOKEN = "a-token"


class Handler(played_registry.Handler):
    late = set()  # repositories for which the token service is there by now

    def is_away(self, query):
        name = query["scope"][0].split(":")[1]
        if not name.startswith("late/") or name in self.late:
            return False
        print("away for", self.headers.get("User-Agent", "the engine"), flush=True)
        if "skopeo" not in self.headers.get("User-Agent", ""):
            self.late.add(name)
        return True

    def answer(self, status, headers, body):
        self.send_response(status)
        for name, value in headers:
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(body)

    def give_token(self, query):
        if self.is_away(query):
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self.close_connection = True
            return os.close(self.connection.detach())
        basic = "Basic " + base64.b64encode(b"bob:secret").decode()
        if self.headers.get("Authorization") != basic or query.get("service") != ["a service"]:
            return self.answer(401, [], b"{}")
        return self.answer(200, [("Content-Type", "application/json")], json.dumps({"token": TOKEN}).encode())

    def do_GET(self):
        url = urllib.parse.urlsplit(self.path)
        if url.path == "/token":
            return self.give_token(urllib.parse.parse_qs(url.query))
        if self.headers.get("Authorization") != f"Bearer {TOKEN}":
            name = "/".join(url.path.split("/")[2:-2])
            challenge = f'Bearer realm="http://127.0.0.1:{self.server.server_port}/token",service="a service",scope="repository:{name}:pull"'
            return self.answer(401, [("WWW-Authenticate", challenge)], b"{}")
        print(self.command, self.path, flush=True)
        status, headers, body = self.asked()
        return self.answer(status, [(name, value) for name, value in headers if name.lower() != "content-length"], body)


played_registry.serve(Handler)
