"""A resource metrics API (metrics.k8s.io/v1beta1) that tests play: its answers, and a server of it behind an API server's aggregation layer."""
import datetime
import http.server
import json
import ssl
import subprocess
import threading
import urllib.parse

import waits

API = "/apis/metrics.k8s.io/v1beta1"


def node_metrics(name, cpu, memory, labels=None, age_s=0, **more):
    """As metrics-server 0.8 says it of one node."""
    at = datetime.datetime.now(datetime.timezone.utc) - datetime.timedelta(seconds=age_s)
    return {"metadata": {"name": name, "creationTimestamp": at.strftime("%Y-%m-%dT%H:%M:%SZ"), "labels": labels or {}},
            "timestamp": at.strftime("%Y-%m-%dT%H:%M:%SZ"), "window": "15.032s", "usage": {"cpu": cpu, "memory": memory}} | more


def listing(items):
    return {"kind": "NodeMetricsList", "apiVersion": "metrics.k8s.io/v1beta1", "metadata": {}, "items": items}


class MetricsServer(http.server.ThreadingHTTPServer):
    """HTTPS on loopback; `nodes` says what of which: {name: (cpu, memory, labels)}; None: it is not ready."""
    daemon_threads = True

    def __init__(self, cluster, nodes):
        super().__init__(("127.0.0.1", 0), Handler)
        self.nodes = nodes
        self.asked = []  # queries of lists
        certificate = cluster.directory / "metrics.pem"
        subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost", "-keyout", certificate.with_suffix(".key"),
                        "-out", certificate], check=True, capture_output=True)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate, certificate.with_suffix(".key"))
        self.socket = context.wrap_socket(self.socket, server_side=True, do_handshake_on_connect=False)
        threading.Thread(target=self.serve_forever, daemon=True).start()
        cluster.create("/api/v1/namespaces/kube-system/services", {"metadata": {"name": "metrics-server"}, "spec": {
            "type": "ExternalName", "externalName": "localhost", "ports": [{"port": self.server_address[1]}]}})
        cluster.create("/apis/apiregistration.k8s.io/v1/apiservices", {"metadata": {"name": "v1beta1.metrics.k8s.io"}, "spec": {
            "group": "metrics.k8s.io", "version": "v1beta1", "groupPriorityMinimum": 100, "versionPriority": 100, "insecureSkipTLSVerify": True,
            "service": {"namespace": "kube-system", "name": "metrics-server", "port": self.server_address[1]}}})

        def conditions():
            service = cluster.call("GET", "/apis/apiregistration.k8s.io/v1/apiservices/v1beta1.metrics.k8s.io")
            return {each["type"]: each["status"] for each in service.get("status", {}).get("conditions", [])}
        waits.until(lambda: conditions().get("Available") == "True",
                    lambda: f"the API is not offered: {conditions()}\n{cluster.tail('apiserver')}")

    def handle_error(self, request, client_address):
        """A connection that the API server gives up."""

    def stop(self):
        self.shutdown()
        self.server_close()


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def do_GET(self):
        server, url = self.server, urllib.parse.urlsplit(self.path)
        query = dict(urllib.parse.parse_qsl(url.query))
        wanted = dict(part.split("=", 1) for part in query.get("labelSelector", "").split(",") if part)
        body = {"kind": "Status", "code": 404}
        if url.path == API:
            body = {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": "metrics.k8s.io/v1beta1", "resources": [
                {"name": "nodes", "singularName": "", "namespaced": False, "kind": "NodeMetrics", "verbs": ["get", "list"]}]}
        elif server.nodes is None:
            body = {"kind": "Status", "code": 503}
        elif url.path == f"{API}/nodes":
            server.asked.append(query)
            body = listing([node_metrics(name, cpu, memory, labels) for name, (cpu, memory, labels) in server.nodes.items()
                            if wanted.items() <= labels.items()])
        data = json.dumps(body).encode()
        self.send_response(body.get("code", 200))
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)
