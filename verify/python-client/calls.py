"""Calls one gRPC method many times on one connection, under any :authority.

    calls.py SOCKET AUTHORITY METHOD COUNT

SOCKET is the path of a Unix socket, METHOD a path such as /v1.Filesystem/PathExists. Each request is an empty message,
so no stubs are needed. Prints one line per status code, `CODE COUNT`, such as `OK 200`. AUTHORITY may contain any bytes
but NUL; they are sent unchanged.
"""

import collections
import os
import sys

import grpc

DEADLINE_SECONDS = 30


def outcome(call):
    """Makes one call and returns the name of its status code."""
    try:
        call(b"", timeout=DEADLINE_SECONDS)
        return grpc.StatusCode.OK.name
    except grpc.RpcError as error:
        return error.code().name


def main(socket, authority, method, count):
    options = [("grpc.default_authority", os.fsencode(authority)), ("grpc.use_local_subchannel_pool", 1)]
    with grpc.insecure_channel(f"unix:{socket}", options=options) as channel:
        call = channel.unary_unary(method, request_serializer=bytes, response_deserializer=bytes)
        outcomes = collections.Counter(outcome(call) for _ in range(int(count)))
    for code, times in sorted(outcomes.items()):
        print(code, times)


if __name__ == "__main__":
    if len(sys.argv) != 5:
        sys.exit(__doc__)
    main(*sys.argv[1:])
