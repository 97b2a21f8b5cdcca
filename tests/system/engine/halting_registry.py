"""A registry that stops in the middle of a blob, and says no more until it is ended: the real one answers everything else.

    halting_registry.py PORT      asks the registry on PORT; prints its own port; then a line for each blob of which it has sent a part

Of a repository below dribble/ it goes on, by a byte each tenth of a second.
"""
import threading

import played_registry

PART = 1 << 20  # of a blob that is larger, so much is sent


class Handler(played_registry.Handler):
    def do_GET(self):
        status, headers, body = self.asked()
        self.send_response(status)
        for name, value in headers:
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body[:PART])
        self.wfile.flush()
        if len(body) > PART:
            print(self.command, self.path, flush=True)
            self.halt(body[PART:])

    def halt(self, rest):
        for byte in rest:
            threading.Event().wait(0.1 if "/dribble/" in self.path else None)
            try:
                self.wfile.write(bytes([byte]))
                self.wfile.flush()
            except OSError:  # whoever asked has gone
                return


played_registry.serve(Handler)
