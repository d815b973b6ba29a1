"""Names of pods behind headless services: answers queries of type A from the endpoints that the API server has at that moment.
Arguments: ADDRESS (to listen on) SOCKET (of kubectl proxy)."""
import http.client
import json
import socket
import struct
import sys

SUFFIX = ['svc', 'cluster', 'local']


class Proxy(http.client.HTTPConnection):
    def __init__(self, path):
        super().__init__('localhost', timeout=5)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self.path)


def addresses(labels, path):
    """None: there is no such name."""
    labels = [label.lower() for label in labels]
    if labels[-3:] != SUFFIX or len(labels) not in (5, 6):
        return None
    *host, service, namespace = labels[:-3]
    proxy = Proxy(path)
    try:
        proxy.request('GET', f'/apis/discovery.k8s.io/v1/namespaces/{namespace}/endpointslices?labelSelector=kubernetes.io/service-name={service}')
        slices = json.load(proxy.getresponse())
    finally:
        proxy.close()
    found = [each for part in slices.get('items', []) for each in part.get('endpoints') or []]
    chosen = [address for each in found if not host or each.get('hostname') == host[0] for address in each['addresses']]
    return chosen or None


def answer(query, path):
    labels, at = [], 12
    while query[at]:
        labels.append(query[at + 1:at + 1 + query[at]].decode('ascii', 'replace'))
        at += 1 + query[at]
    question = query[12:at + 5]
    kind = struct.unpack('!H', query[at + 1:at + 3])[0]
    try:
        found = addresses(labels, path)
        code = 3 if found is None else 0
    except (OSError, ValueError, http.client.HTTPException):
        found, code = None, 2
    records = [socket.inet_aton(each) for each in found or []] if kind == 1 else []
    header = query[:2] + struct.pack('!HHHHH', 0x8580 | code, 1, len(records), 0, 0)
    return header + question + b''.join(b'\xc0\x0c' + struct.pack('!HHIH', 1, 1, 1, 4) + each for each in records)


def main(address, path):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as server:
        server.bind((address, 53))
        while True:
            query, client = server.recvfrom(512)
            try:
                server.sendto(answer(query, path), client)
            except IndexError:
                continue


main(*sys.argv[1:])
