// A process that locks with a library for node: see doc.go for its orders.
"use strict";

const readline = require("node:readline");
const { setTimeout: sleep } = require("node:timers/promises");
const Redis = require("ioredis");

const [library, addr] = process.argv.slice(2);
const at = addr.lastIndexOf(":");
const db = new Redis(Number(addr.slice(at + 1)), addr.slice(0, at));

const orNot = (promise) => promise.then(() => true, () => false);

// Each library as try, lock, release and extend. The last two say "silent" when
// the library does not tell whether it still held.
const libraries = {
  "redis-semaphore": () => {
    const { Mutex } = require("redis-semaphore");
    const take = async (key, lockTimeout, limit) => {
      // The library puts the "mutex:" there itself.
      const m = new Mutex(db, key.replace(/^mutex:/, ""), {
        lockTimeout, retryInterval: 10, acquireTimeout: 60000, acquireAttemptsLimit: limit, onLockLost: () => {},
      });
      return (await m.tryAcquire()) && m;
    };
    return {
      try: (key, ms) => take(key, ms, 1),
      lock: (key, ms) => take(key, ms, Number.POSITIVE_INFINITY),
      release: (m) => m.release().then(() => "silent"),
      extend: async () => "silent", // it does so by itself
    };
  },
  redlock4: () => {
    const Redlock4 = require("redlock4");
    const once = new Redlock4([db], { retryCount: 0 });
    const often = new Redlock4([db], { retryCount: -1, retryDelay: 10, retryJitter: 5 });
    return {
      try: (key, ms) => once.lock(key, ms).catch(() => null),
      lock: (key, ms) => often.lock(key, ms),
      release: async (lock) => ((await orNot(lock.unlock())) ? "yes" : "no"),
      extend: async (lock, ms) => ((await orNot(lock.extend(ms))) ? "yes" : "no"),
    };
  },
  redlock5: () => {
    const Redlock5 = require("redlock5").default;
    const redlock = new Redlock5([db], { retryCount: 0 });
    redlock.on("error", () => {}); // each refusal is one of these too
    return {
      try: (key, ms) => redlock.acquire([key], ms).catch(() => null),
      lock: (key, ms) => redlock.acquire([key], ms, { retryCount: -1, retryDelay: 10, retryJitter: 5 }),
      release: async (lock) => ((await orNot(lock.release())) ? "yes" : "no"),
      extend: async (lock, ms) => ((await orNot(lock.extend(ms))) ? "yes" : "no"),
    };
  },
};

const lib = libraries[library]();
const held = {}; // by key

const take = async (how, key, ms) => ((held[key] = await lib[how](key, Number(ms))) ? "yes" : "no");

const count = async (key, name) => {
  for (let i = 0; !(await db.exists("stop")); i++) {
    await take("lock", key, 10000);
    const v = Number(await db.get("counter"));
    await sleep(2);
    await db.set("counter", v + 1);
    await db.rpush("turns", name);
    await lib.release(held[key]);
    await sleep(Math.random() * 10);
    if (i % 3 === 2) {
      await sleep(100 + Math.random() * 300); // as in speak_test.go
    }
  }
  return "yes";
};

const orders = {
  try: (key, ms) => take("try", key, ms),
  lock: (key, ms) => take("lock", key, ms),
  release: (key) => lib.release(held[key]),
  extend: (key, ms) => lib.extend(held[key], Number(ms)),
  count,
};

(async () => {
  for await (const line of readline.createInterface({ input: process.stdin })) {
    const [word, ...args] = line.split(" ");
    console.log(await orders[word](...args));
  }
  process.exit(0);
})();
