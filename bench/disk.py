"""The rate of random direct reads of a file: 4 MB each, by 4 threads, for some seconds.

    bench/disk.py FILE [--seconds 2] [--threads 4] [--bytes 4194304]

Prints one JSON object. Offsets are random every time, since a disk or its host may cache what was read before.
"""

import argparse
import ctypes
import json
import mmap
import os
import random
import threading
import time
from pathlib import Path

LARGE_PAGE = 2 << 20


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("file", type=Path)
    parser.add_argument("--seconds", type=float, default=2.0)
    parser.add_argument("--threads", type=int, default=4)
    parser.add_argument("--bytes", type=int, default=4 << 20)
    args = parser.parse_args()
    fd = os.open(args.file, os.O_RDONLY | os.O_DIRECT)
    places = os.fstat(fd).st_size // args.bytes
    if places == 0:
        raise SystemExit(f"disk: {args.file} has fewer than {args.bytes} bytes")
    counts = [0] * args.threads
    started = time.perf_counter()
    end = started + args.seconds

    def read(thread):
        # Direct reads need aligned memory; in small pages, which shared memory has, a read would be cut into small requests.
        memory = mmap.mmap(-1, args.bytes + LARGE_PAGE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        memory.madvise(mmap.MADV_HUGEPAGE)
        skip = -ctypes.addressof(ctypes.c_char.from_buffer(memory)) % LARGE_PAGE
        buffer = memoryview(memory)[skip : skip + args.bytes]
        chosen = random.SystemRandom()
        while time.perf_counter() < end:
            counts[thread] += os.preadv(fd, [buffer], chosen.randrange(places) * args.bytes)

    threads = [threading.Thread(target=read, args=(i,)) for i in range(args.threads)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    print(json.dumps({"bytes_per_second": sum(counts) / (time.perf_counter() - started), "bytes": sum(counts)}))


if __name__ == "__main__":
    main()
