"""A process that locks with Python's redis.lock: see doc.go for its orders."""

import random
import sys
import time

import redis
from redis.exceptions import LockError
from redis.lock import Lock

host, port = sys.argv[1].rsplit(":", 1)
db = redis.Redis(host=host, port=int(port))
held = {}  # by key


def new(key, ms):
    # Without a timeout the key has no TTL: that is this library's default.
    held[key] = Lock(db, key, timeout=int(ms) / 1000 if ms != "0" else None, sleep=0.01)
    return held[key]


def mine(act):
    try:
        act()
        return "yes"
    except LockError:
        return "no"


def count(key, name):
    i = 0
    while not db.exists("stop"):
        with new(key, "10000"):
            v = int(db.get("counter") or 0)
            time.sleep(0.002)
            db.set("counter", v + 1)
            db.rpush("turns", name)
        time.sleep(random.uniform(0, 0.01))
        if i % 3 == 2:  # as in speak_test.go
            time.sleep(random.uniform(0.1, 0.4))
        i += 1
    return "yes"


orders = {
    "try": lambda key, ms: "yes" if new(key, ms).acquire(blocking=False) else "no",
    "lock": lambda key, ms: "yes" if new(key, ms).acquire() else "no",
    "release": lambda key: mine(held[key].release),
    "extend": lambda key, ms: mine(lambda: held[key].extend(int(ms) / 1000, replace_ttl=True)),
    "count": count,
}

for line in sys.stdin:
    word, *args = line.split()
    print(orders[word](*args), flush=True)
