"""Carries standard input and output to a port, so that what the proxy starts as its server can be a test's own."""

import os
import socket
import sys
import threading


def main(port: int) -> None:
    server = socket.create_connection(("127.0.0.1", port))

    def send() -> None:
        while data := os.read(0, 1 << 16):
            server.sendall(data)
        server.shutdown(socket.SHUT_WR)

    threading.Thread(target=send, daemon=True).start()
    while data := server.recv(1 << 16):
        os.write(1, data)


if __name__ == "__main__":  # pytest imports it, to look for examples
    main(int(sys.argv[1]))
