"""As much of a browser as a login needs: cookies, redirections, one form."""
import http.client
import http.cookies
import re
import urllib.parse


class Browser:
    def __init__(self, hosts=None):
        self.hosts = hosts or {}  # "https://name" → "http://127.0.0.1:port" where it really is
        self.cookies = {}  # by host and port
        self.visited = []

    def place(self, url):
        for name, real in self.hosts.items():
            if url == name or url.startswith((name + "/", name + "?")):
                return real + url[len(name):]
        return url

    def ask(self, method, url, form=None):
        """Status, Location (absolute, or None), body."""
        self.visited.append(url)
        parts = urllib.parse.urlsplit(self.place(url))
        jar = self.cookies.setdefault(parts.netloc, {})
        connection = http.client.HTTPConnection(parts.netloc, timeout=60)
        headers = {"Cookie": "; ".join(f"{k}={v}" for k, v in jar.items())} if jar else {}
        if form is not None:
            headers["Content-Type"] = "application/x-www-form-urlencoded"
        target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        connection.request(method, target, urllib.parse.urlencode(form) if form is not None else None, headers)
        reply = connection.getresponse()
        body = reply.read().decode(errors="replace")
        connection.close()
        for line in reply.headers.get_all("Set-Cookie") or []:
            for key, morsel in http.cookies.SimpleCookie(line).items():
                if morsel["max-age"] == "0" or morsel["expires"].startswith("Thu, 01 Jan 1970") or not morsel.value:
                    jar.pop(key, None)
                else:
                    jar[key] = morsel.coded_value
        self.reply = reply
        location = reply.getheader("Location")
        return reply.status, location and urllib.parse.urljoin(url, location), body

    def follow(self, url, until, user=None):
        """Go where the replies lead, fill in the provider's forms as `user`, until a URL that begins with `until`: that URL,
        which is not asked. A page that is no form: its status and text."""
        form = None
        for _ in range(20):
            if form is None and url.startswith(until):
                return url
            status, location, body = self.ask("GET" if form is None else "POST", url, form)
            form = None
            if location:
                url = location
                continue
            action = re.search(r'<form[^>]* action="([^"]*)"', body)
            if not action:
                return status, body
            url, form = urllib.parse.urljoin(url, action[1]), {}
            for kind, value in re.findall(r'<input type="hidden" name="(\w+)" value="([^"]*)"', body):
                form[kind] = value
            if form.get("prompt") == "login":
                form |= {"login": user, "password": "anything"}
            if "xsrf" in form:  # the provider asks whether to log out
                form["logout"] = "yes"
        raise AssertionError(f"the redirections do not end: {self.visited}")


def query(url):
    return dict(urllib.parse.parse_qsl(urllib.parse.urlsplit(url).query, keep_blank_values=True))
