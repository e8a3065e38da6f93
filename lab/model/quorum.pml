/*
 * A quorum of independent servers (nodes) and time: votes, renewal against expiry,
 * restarts with quarantine. Its fences are in writeback.pml.
 *
 * Each atomic step is one of
 *   a script on one node that takes or keeps the lock for a token: vote.lua (free, and
 *     in no quarantine, or the token has it), renew.lua (the token has it), the vote by
 *     which a renewal fills a node in (quorum_ask.go: fill). Its answer is heard or lost;
 *   a client's decision when a majority has answered (quorum_round.go: win,
 *     quorum_ask.go: renewed), that it gives up, or that a renewal has failed;
 *   something that happens: a tick, a restart that loses what a node had (node.lua), a
 *     token that nobody believes in takes a node or leaves it.
 *
 * Nothing is counted but what is left of each time, so there is no last tick, and no
 * last round, renewal or restart either: any number of each. A client may be slow
 * without limit, which is also how it crashes, how it comes too late, and how a reply
 * does; a request that is late or lost is one that does not run.
 *
 * A token that was given up is OTHER, as is any other that nobody believes in: it may
 * take a free node at any moment (a late vote, or one behind a release), and be gone
 * from it at any moment (leave.lua, a lease that ends). So clients that never have a
 * majority need no process of their own.
 *
 * More than the engine does: a node that a renewal fills in counts for that renewal
 * already; a lease counts however little is left of it. Left out: margins, fences and
 * their write-back, which only keep somebody from holding; the queue and its messages,
 * since they are advice; breaks. Nodes are alike, so their order is none: see order.
 *
 * Property:
 *   overlap  two clients never believe at once that they hold
 *
 * Naive variants:
 *   FRESH_VOTES   a node that has lost its data votes at once
 *   FROM_REPLY    a lease begins when a majority has answered
 *   ONE_RENEWED   a renewal counts from the first node that has renewed: the lease lasts
 *                 until the last of its ends, and not until that of a majority
 *   RENEW_BLIND   a renewal does not compare the token: it takes a node from others
 * What does not help: STEP (a node's clock steps forward, and a lock's end with it).
 */
#ifndef CLIENTS
#define CLIENTS 2
#endif
#ifndef NODES
#define NODES 3
#endif
#ifndef TTL
#define TTL 2
#endif
#define MAJORITY (NODES / 2 + 1)

/* What a client is doing. */
#define IDLE 0
#define ASKS 1   /* votes are under way */
#define HOLDS 2
#define RENEWS 3 /* it holds, and a renewal is under way */

/* Who has a node's vote. */
#define NOBODY 0
#define me(c) ((c) + 1)
#define OTHER (CLIENTS + 1)

byte holder[NODES], left[NODES], quarantine[NODES]
byte state[CLIENTS]
byte age[CLIENTS]         /* since the requests that are under way were sent */
byte valid[CLIENTS]       /* left of the lease, as its owner believes */
bool yes[CLIENTS * NODES] /* the node has answered to these requests that c has it */

hidden byte i, j, k, x

#define said(c, n) yes[(c) * NODES + (n)]
#define less(a, b) ((a) > (b) -> (a) - (b) : 0)
#define most(a, b) ((a) > (b) -> (a) : (b))
#define asked(c) (state[c] == ASKS || state[c] == RENEWS)

#ifdef FRESH_VOTES
#define ABSTAIN 0
#else
#define ABSTAIN TTL
#endif
#ifdef FROM_REPLY
#define since(c) 0
#else
#define since(c) age[c]
#endif
#ifdef ONE_RENEWED
#define enough(c) (k >= (state[c] == RENEWS -> 1 : MAJORITY))
#else
#define enough(c) (k >= MAJORITY)
#endif
#ifdef RENEW_BLIND
#define theirs(c, n) (holder[n] != NOBODY && state[c] == RENEWS)
#else
#define theirs(c, n) false
#endif

/* grants: what node n says when it is asked for c. */
#define grants(c, n) (holder[n] == me(c) || holder[n] == NOBODY && quarantine[n] == 0 || theirs(c, n))

inline swap(a, b) { x = a; a = b; b = x }

#define key(n) ((((holder[n] * (TTL + 1) + left[n]) * (TTL + 1) + quarantine[n]) * 2 + said(0, n)) * 2 + said(CLIENTS - 1, n))

/* order sorts the nodes: states that differ by their order alone become one. */
inline order() {
  i = 1;
  do
  :: i < NODES ->
     j = i;
     do
     :: j > 0 && key(j - 1) > key(j) ->
        swap(holder[j - 1], holder[j]); swap(left[j - 1], left[j]); swap(quarantine[j - 1], quarantine[j]);
        k = 0;
        do :: k < CLIENTS -> swap(said(k, j - 1), said(k, j)); k++ :: else -> break od;
        j--
     :: else -> break
     od;
     i++
  :: else -> break
  od;
  i = 0 /* a d_step must not end with a loop */
}

inline count(c) {
  k = 0; i = 0;
  do :: i < NODES -> if :: said(c, i) -> k++ :: else fi; i++ :: else -> break od
}

inline send(c, what) {
  state[c] = what; age[c] = 0; i = 0;
  do :: i < NODES -> said(c, i) = false; i++ :: else -> break od
}

/* believe: as far as c knows, its lease lasts n ticks more. */
inline believe(c, n) {
  i = 0;
  do
  :: i < CLIENTS -> assert(i == c || n == 0 || valid[i] == 0); i++ /* overlap */
  :: else -> break
  od;
  valid[c] = n; send(c, HOLDS)
}

inline give_up(c) {
  i = 0;
  do
  :: i < NODES -> if :: holder[i] == me(c) -> holder[i] = OTHER; left[i] = 0 :: else fi; i++
  :: else -> break
  od;
  valid[c] = 0; send(c, IDLE)
}

active [CLIENTS] proctype client() {
  byte c = _pid;
end:
  do
  :: d_step { state[c] == IDLE -> send(c, ASKS); order() }
  :: d_step { state[c] == HOLDS && valid[c] > 0 -> send(c, RENEWS); order() }
  :: d_step { state[c] == RENEWS -> send(c, HOLDS); order() } /* failed */
  :: d_step { state[c] != IDLE -> give_up(c); order() }       /* failed, done, lost or over */
  :: d_step { state[c] == ASKS ->
       count(c);
       if :: enough(c) && since(c) < TTL -> believe(c, TTL - since(c)); order() :: else fi }
  :: d_step { state[c] == RENEWS && valid[c] > 0 ->
       count(c);
       if :: enough(c) -> x = most(valid[c], less(TTL, since(c))); believe(c, x); order() :: else fi }
#define node_steps(n) \
  :: d_step { asked(c) && grants(c, n) -> holder[n] = me(c); left[n] = TTL; said(c, n) = true; order() } \
  :: d_step { state[c] != IDLE && grants(c, n) -> holder[n] = me(c); left[n] = TTL; order() } /* not heard */
  node_steps(0)
  node_steps(1)
  node_steps(2)
#if NODES > 3
  node_steps(3)
  node_steps(4)
#endif
  od
}

#ifdef STEP
#define may_step(n) (left[n] > 0)
#else
#define may_step(n) false
#endif

active proctype world() {
end:
  do
#define node_fails(n) \
  :: d_step { holder[n] == OTHER || may_step(n) -> holder[n] = NOBODY; left[n] = 0; order() } \
  :: d_step { holder[n] == NOBODY && quarantine[n] == 0 -> holder[n] = OTHER; order() } \
  :: d_step { true -> holder[n] = NOBODY; left[n] = 0; quarantine[n] = ABSTAIN; order() } /* restart */
  node_fails(0)
  node_fails(1)
  node_fails(2)
#if NODES > 3
  node_fails(3)
  node_fails(4)
#endif
  :: d_step {
       true -> /* a tick */
       i = 0;
       do
       :: i < NODES ->
          quarantine[i] = less(quarantine[i], 1);
          if :: left[i] == 1 -> holder[i] = NOBODY :: else fi;
          left[i] = less(left[i], 1);
          i++
       :: else -> break
       od;
       i = 0;
       do
       :: i < CLIENTS ->
          valid[i] = less(valid[i], 1);
          if :: asked(i) && age[i] < TTL -> age[i]++ :: else fi;
          i++
       :: else -> break
       od;
       order() }
  od
}
