#!/usr/bin/env python3
"""Handwritten digits by asynchronous gradient descent with parameter servers.

Every server owns a part of the parameters (a slice of one long vector) and applies the gradients that come; every
worker fetches the parameters, computes a gradient on its part of the pictures and sends it back. Nobody waits for
anybody but for the answer to its own request.
"""
import argparse
import csv
import gzip
import socket
import socketserver
import struct
import threading
import time

import numpy

PIXELS, HIDDEN, DIGITS = 64, 128, 10
SHAPES = [(PIXELS, HIDDEN), (HIDDEN,), (HIDDEN, DIGITS), (DIGITS,)]
SIZE = sum(int(numpy.prod(shape)) for shape in SHAPES)
STEPS, BATCH, RATE, MOMENTUM = 4000, 50, 0.05, 0.9


def slices(servers):
    """The part of the vector that each server owns."""
    bounds = [SIZE * i // servers for i in range(servers + 1)]
    return [slice(a, b) for a, b in zip(bounds, bounds[1:])]


def address(text):
    host, port = text.rsplit(":", 1)
    return host, int(port)


def read_exactly(connection, count):
    parts = bytearray()
    while len(parts) < count:
        part = connection.recv(count - len(parts))
        if not part:
            raise ConnectionError("the other side has gone")
        parts += part
    return bytes(parts)


def message_send(connection, vector):
    body = vector.astype("<f4").tobytes()
    connection.sendall(struct.pack("<I", len(body)) + body)


def message_read(connection):
    length, = struct.unpack("<I", read_exactly(connection, 4))
    return numpy.frombuffer(read_exactly(connection, length), "<f4")


def serve(index, hosts):
    """Answer every message with the own parameters, after applying the gradient in it (empty: none)."""
    own = slices(len(hosts))[index]
    start = numpy.random.default_rng(1).normal(0, 0.1, SIZE)[own].astype("f4")
    state = {"values": start, "speed": numpy.zeros_like(start)}
    lock = threading.Lock()

    class Handler(socketserver.BaseRequestHandler):
        def handle(self):
            try:
                while True:
                    gradient = message_read(self.request)
                    with lock:
                        if len(gradient):
                            state["speed"] = MOMENTUM * state["speed"] - RATE * gradient
                            state["values"] = state["values"] + state["speed"]
                        values = state["values"]
                    message_send(self.request, values)
            except ConnectionError:
                print(f"parameter server {index}: a worker has gone")

    class Server(socketserver.ThreadingTCPServer):
        allow_reuse_address = True
        daemon_threads = True

    print(f"parameter server {index} of {len(hosts)} owns {len(start)} of {SIZE} parameters")
    Server(("", address(hosts[index])[1]), Handler).serve_forever()


def connect(host, patience_s=60):
    """All tasks start together, so that a server may not listen yet."""
    end = time.monotonic() + patience_s
    while True:
        try:
            return socket.create_connection(address(host), timeout=patience_s)
        except OSError:
            if time.monotonic() > end:
                raise
            time.sleep(0.05)


def split(vector):
    parts, at = [], 0
    for shape in SHAPES:
        size = int(numpy.prod(shape))
        parts.append(vector[at:at + size].reshape(shape))
        at += size
    return parts


def forward(vector, x):
    w1, b1, w2, b2 = split(vector)
    hidden = numpy.maximum(x @ w1 + b1, 0)
    scores = hidden @ w2 + b2
    scores = numpy.exp(scores - scores.max(axis=1, keepdims=True))
    return hidden, scores / scores.sum(axis=1, keepdims=True)


def gradient_of(vector, x, y):
    hidden, chances = forward(vector, x)
    _, _, w2, _ = split(vector)
    chances[numpy.arange(len(y)), y] -= 1
    chances /= len(y)
    back = (chances @ w2.T) * (hidden > 0)
    parts = [x.T @ back, back.sum(axis=0), hidden.T @ chances, chances.sum(axis=0)]
    return numpy.concatenate([part.ravel() for part in parts]).astype("f4")


def shifted(x, random):
    """The same pictures moved by at most one pixel: so that few of them teach more."""
    x = numpy.roll(x.reshape(-1, 8, 8), random.integers(-1, 2, size=2), axis=(1, 2))
    return x.reshape(-1, PIXELS)


def train(index, hosts, workers):
    with gzip.open("/usr/share/skep/digits.csv.gz", "rt") as file:
        rows = numpy.array([[float(v) for v in row] for row in csv.reader(file)], "f4")
    pictures, digits = rows[:, :PIXELS] / 16, rows[:, PIXELS].astype(int)
    order = numpy.random.default_rng(7).permutation(len(rows))
    train_rows, test_rows = order[:1400][index::workers], order[1400:]
    parts = slices(len(hosts))
    connections = [connect(host) for host in hosts]
    random = numpy.random.default_rng(100 + index)

    def exchange(gradient):
        for connection, part in zip(connections, parts):
            message_send(connection, gradient[part] if gradient is not None else numpy.zeros(0))
        return numpy.concatenate([message_read(connection) for connection in connections])

    vector = exchange(None)
    for step in range(1, STEPS + 1):
        batch = random.choice(train_rows, BATCH)
        vector = exchange(gradient_of(vector, shifted(pictures[batch], random), digits[batch]))
        if step % 800 == 0:
            right = (forward(vector, pictures[test_rows])[1].argmax(axis=1) == digits[test_rows]).mean()
            print(f"worker {index}: step {step}, test accuracy {100 * right:.1f} %")
    if index == 0:
        assert right > 0.95, "the network has learned too little"
        print(f"final test accuracy: {100 * right:.1f} %")
    print(f"worker {index}: done")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--job_name", choices=["ps", "worker"], required=True)
    parser.add_argument("--task_index", type=int, required=True)
    parser.add_argument("--ps_hosts", type=lambda text: text.split(","), required=True)
    parser.add_argument("--worker_hosts", type=lambda text: text.split(","), required=True)
    options = parser.parse_args()
    if options.job_name == "ps":
        serve(options.task_index, options.ps_hosts)
    else:
        train(options.task_index, options.ps_hosts, len(options.worker_hosts))


if __name__ == "__main__":
    main()
