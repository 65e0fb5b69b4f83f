"""A network of namespaces whose packets pass through this process: delayed, lost or stopped.

Each rank has a namespace of its own with one interface, a TUN device. What it sends is read here,
and written to the device of the rank that it is for. Needs root, but not the kernel's netem.
"""

import fcntl
import heapq
import itertools
import os
import random
import select
import struct
import subprocess
import threading
import time

_TUNSETIFF, _IFF_TUN, _IFF_NO_PI = 0x400454CA, 0x0001, 0x1000
_numbers = itertools.count()


def _ip(*arguments):
    subprocess.run(["ip", *arguments], check=True, capture_output=True)


class Network:
    """Namespaces for some ranks, with addresses 10.77.RANK.1; use in a `with`.

    Args:
        size (int): the number of ranks.
        delay (float): seconds that each packet takes.
        loss (float): the part of the packets that are lost.
    """

    def __init__(self, size, delay=0.0, loss=0.0):
        self.size, self.delay, self.loss = size, delay, loss
        name = f"fac{os.getpid()}n{next(_numbers)}"
        self.names = [f"{name}r{rank}" for rank in range(size)]
        self.interface = "tunfac"
        self._devices, self._cut, self._ends = [], set(), False
        self._thread = threading.Thread(target=self._relay)

    def __enter__(self):
        try:
            for rank, name in enumerate(self.names):
                self._add(rank, name)
        except BaseException:
            self._remove()
            raise
        self._thread.start()
        return self

    def __exit__(self, *error):
        self._ends = True
        self._thread.join()
        self._remove()

    def _add(self, rank, name):
        _ip("netns", "add", name)
        device = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
        self._devices.append(device)
        flags = struct.pack("16sH", name[-14:].encode(), _IFF_TUN | _IFF_NO_PI)
        fcntl.ioctl(device, _TUNSETIFF, flags)
        _ip("link", "set", name[-14:], "netns", name, "name", self.interface)
        _ip("-n", name, "addr", "add", f"10.77.{rank}.1/16", "dev", self.interface)
        _ip("-n", name, "link", "set", self.interface, "up")
        _ip("-n", name, "link", "set", "lo", "up")

    def _remove(self):
        for device in self._devices:
            os.close(device)
        for name in self.names:
            subprocess.run(["ip", "netns", "del", name], check=False, capture_output=True)

    def prefix(self, rank):
        """What comes before the command of a rank."""
        return ["ip", "netns", "exec", self.names[rank]]

    def cut(self, rank):
        """Let nothing pass to or from a rank any more."""
        self._cut.add(rank)

    def mend(self):
        """Let everything pass again."""
        self._cut.clear()

    def _relay(self):
        chance, order = random.Random(0), itertools.count()
        on_the_way = []  # (when it arrives, order, rank, packet)
        poller = select.poll()
        for device in self._devices:
            poller.register(device, select.POLLIN)
        while not self._ends:
            for device, _ in poller.poll(1 if on_the_way else 50):
                packet = os.read(device, 65536)
                to = packet[18] if len(packet) >= 20 and packet[0] >> 4 == 4 else None
                if to is None or to >= self.size or chance.random() < self.loss:
                    continue
                if not self._cut & {to, self._devices.index(device)}:
                    arrival = time.monotonic() + self.delay
                    heapq.heappush(on_the_way, (arrival, next(order), to, packet))
            while on_the_way and on_the_way[0][0] <= time.monotonic():
                _, _, to, packet = heapq.heappop(on_the_way)
                if to not in self._cut:
                    os.write(self._devices[to], packet)


def why_not():
    """Why there can be no such network here; an empty text if there can."""
    try:
        with Network(1):
            return ""
    except (OSError, subprocess.CalledProcessError) as error:
        return f"namespaces and TUN devices are not permitted: {error}"
