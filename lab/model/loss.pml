/*
 * One server that loses data: a wipe, a restart from an old snapshot, a failover
 * that lost the last writes; what quarantine and the fence make of it.
 *
 * Each atomic step is one of
 *   a script of internal/lua: acquire.lua with fence.lua (and node.lua with
 *     -DQUARANTINE), renew.lua, release.lua;
 *   a client's reaction to a reply, its deadline, its write to a resource that
 *     compares fences (docs/fencing.md), also long after its lease;
 *   something that happens: time, a snapshot (what a replica or a disk has), a
 *     loss (the snapshot becomes what the server has, another process runs), a
 *     wipe (nothing is left, the same process runs).
 *
 * A tick of time is for the ends of leases; now is the clock for fences, which a
 * tick, a grant and a loss each move by one at least: no two of these happen in
 * the same microsecond.
 *
 * Left out: the queue, and losses of replies; blocks of fences. There are at most
 * LOSSES losses, and time stops at LAST. QUARANTINE is for as long as the longest lease.
 *
 * Properties:
 *   overlap  two clients never believe at once that they hold (-DOVERLAP)
 *   stale    no write of an older lease is accepted after one of a newer lease
 *   refused  no write of a lease is refused while no newer one has written
 *
 * The naive variant: COUNTER (fence = last + 1).
 * What nothing here helps against: BACK (the clock goes back with a loss), STEP
 * (the clock steps forward, and a lease's key with it).
 */
#ifndef ROUNDS
#define ROUNDS 2
#endif
#ifndef LOSSES
#define LOSSES 1
#endif
#ifndef LAST
#define LAST 8 /* when time stops */
#endif
#define CLIENTS 2
#define TTL 2
#define IDLE 0
#define ASKS 1
#define HOLDS 2
#define ENDED 3

byte holder, left, counter, stamp = 1, quarantine
byte old_holder, old_left, old_counter, old_stamp, old_quarantine
byte process = 1, losses, now = 1

byte state[CLIENTS], round[CLIENTS], age[CLIENTS], valid[CLIENTS]
bool asked[CLIENTS]
byte reply_left[CLIENTS] /* of a grant on its way back */
byte fence[CLIENTS], order[CLIENTS] /* of its last grant; order is the true one */
byte grants, high, high_order /* the resource */

hidden byte i, f, refuses

#define token(c) ((c) * ROUNDS + round[c] + 1)
#define less(a, b) ((a) > (b) -> (a) - (b) : 0)
#define most(a, b) ((a) > (b) -> (a) : (b))

inline acquire(c) {
  refuses = 0;
#ifdef QUARANTINE
  if :: stamp != process -> stamp = process; quarantine = TTL :: else fi;
  refuses = quarantine;
#endif
  if
  :: holder == 0 && refuses == 0 ->
#ifdef COUNTER
     f = counter + 1;
#else
     f = most(counter + 1, now);
#endif
     now++; counter = f;
     holder = token(c); left = TTL;
     grants++; fence[c] = f; order[c] = grants;
     reply_left[c] = less(TTL, age[c])
  :: else -> state[c] = ENDED
  fi;
  age[c] = 0
}

inline believe(c, n) {
  valid[c] = n;
#ifdef OVERLAP
  assert(n == 0 || valid[1 - c] == 0) /* overlap */
#endif
}

inline lose(h, l, k, s, q) {
  losses++; holder = h; left = l; counter = k; stamp = s; quarantine = q;
#ifdef BACK
  now = less(now, 2);
#else
  now++
#endif
}

active [CLIENTS] proctype client() {
  byte c = _pid;
end:
  do
  :: d_step { (state[c] == IDLE || state[c] == ENDED && round[c] + 1 < ROUNDS) ->
       if :: state[c] == ENDED -> round[c]++ :: else fi;
       state[c] = ASKS; age[c] = 0; asked[c] = true; reply_left[c] = 0 }
  :: d_step { state[c] == ASKS && asked[c] -> asked[c] = false; acquire(c) }
  :: d_step { state[c] == ASKS && !asked[c] && reply_left[c] > 0 ->
       state[c] = HOLDS; f = reply_left[c]; believe(c, f); reply_left[c] = 0 }
  :: d_step { state[c] == ASKS && !asked[c] && reply_left[c] == 0 -> state[c] = ENDED }
  /* Renewal: sent, and run later. Its reply is taken at once. */
  :: d_step { state[c] == HOLDS && valid[c] > 0 && !asked[c] -> asked[c] = true; age[c] = 0 }
  :: d_step { state[c] == HOLDS && asked[c] ->
       asked[c] = false;
       if
       :: holder == token(c) ->
          left = TTL;
          f = most(valid[c], less(TTL, age[c]));
          if :: valid[c] > 0 -> believe(c, f) :: else fi
       :: else -> valid[c] = 0
       fi;
       age[c] = 0 }
  :: d_step { state[c] == HOLDS ->
       if :: holder == token(c) -> holder = 0; left = 0 :: else fi;
       state[c] = ENDED; valid[c] = 0; asked[c] = false; age[c] = 0 }
  /* It writes, having held, whatever has happened since. */
  :: d_step { order[c] > 0 && (state[c] == HOLDS || state[c] == ENDED) && order[c] != high_order ->
       if
       :: fence[c] >= high ->
#ifndef ONLY_REFUSED
          assert(order[c] > high_order); /* stale */
#endif
          high = fence[c]; high_order = order[c]
       :: else -> assert(order[c] < high_order) /* refused */
       fi }
  od
}

active proctype world() {
end:
  do
  :: d_step { now < LAST ->
       now++;
       left = less(left, 1); if :: left == 0 -> holder = 0 :: else fi;
       old_left = less(old_left, 1); if :: old_left == 0 -> old_holder = 0 :: else fi;
       quarantine = less(quarantine, 1); old_quarantine = less(old_quarantine, 1);
       i = 0;
       do
       :: i < CLIENTS ->
          valid[i] = less(valid[i], 1); reply_left[i] = less(reply_left[i], 1);
          if :: asked[i] && age[i] < TTL -> age[i]++ :: else fi;
          i++
       :: else -> break
       od }
  :: d_step { losses < LOSSES ->
       old_holder = holder; old_left = left; old_counter = counter; old_stamp = stamp; old_quarantine = quarantine }
  :: d_step { losses < LOSSES ->
       lose(old_holder, old_left, old_counter, old_stamp, old_quarantine);
#ifdef QUARANTINE
       process++
#endif
     }
  :: d_step { losses < LOSSES -> lose(0, 0, 0, 0, 0) }
#ifdef STEP
  :: d_step { holder != 0 -> holder = 0; left = 0 }
#endif
  od
}
