/*
 * One lock on one server: acquire, expiry, the queue, hand-over, renewal, and
 * what the network and crashes make of them.
 *
 * Each atomic step is one of
 *   a script of internal/lua, which a server runs alone: acquire.lua (with
 *     enqueue.lua and handover.lua), release.lua, renew.lua;
 *   a client's reaction to a reply, a message, a timer or its deadline
 *     (acquire.go, wait.go, renew.go, release.go of the root);
 *   something that happens: a tick of time, a crash, a request, reply or message
 *     that is lost, a request that comes late, a subscription that is lost.
 *
 * Time is counted in ticks that all clocks count alike, and only what is left is
 * kept, so there is no last tick. A client may be slow without limit: that is a
 * pause, a crash when it is for ever, and a lost reply or message when only this
 * is. Who is heard is chosen anew for each script. With -DWITHIN everybody who
 * lives acts before the next tick instead, is heard as long as it lives, and
 * crashes and losses are counted.
 *
 * Left out: margins, readers, blocks of fences, MinHold, breaks, resume.lua, and what
 * clusters need (let_go.lua); quarantine (loss.pml); tickets (one
 * that was dropped comes back at the end of the queue); the message "next" (all
 * who wait ask every POLL ticks); of two messages to one client the older is
 * lost; a grant for a token that has ended is not abandoned again (its time ends);
 * a release that comes late (it compares the token, as the one in time does).
 *
 * Properties:
 *   overlap    two clients never believe at once that they hold
 *   fence      who comes to hold has a larger fence than all before, and nobody goes on
 *              after one with a larger fence has held (-DFENCES=n: up to n + 1 grants)
 *   unheard    nobody is given the lock by a hand-over when the server knows that
 *              nobody hears its inbox
 *   starved    (-DWITHIN=n) while somebody who lives waits, the lock is without a
 *              living holder for at most n ticks
 *
 * Naive variants, each a known mistake:
 *   PUBLISH_REACHED  PUBLISH's count says who is alive; a subscriber to a pattern
 *                    makes it 1 for all
 *   PUBLISH_NONE     PUBLISH's count 0 says who is dead, after the message has
 *                    gone to one who hears it elsewhere
 *   NO_TIMER         a waiter relies on its message
 *   FROM_ARRIVAL     a lease begins when its message arrives
 *   FROM_REPLY       a lease begins when the reply arrives
 *   REVIVES          the reply to a renewal counts also when the deadline has passed
 *   RENEW_BLIND      with REVIVES: nor does a renewal compare the token. Alone it costs no
 *                    exclusion here: before its deadline nobody else can have the lock
 *   RELEASE_BLIND    a release does not compare the token
 */
#ifndef CLIENTS
#define CLIENTS 2
#endif
#ifndef ROUNDS
#define ROUNDS 2
#endif
#ifndef TTL
#define TTL 3
#endif
#define GRANT 2 /* what a hand-over gives until the first renewal */
#define POLL 1
#define TOKENS (CLIENTS * ROUNDS)

/* Requests and replies. */
#define NONE 0
#define ACQUIRE 1
#define RENEW 2
#define RELEASE 3
#define GRANTED 1
#define WAITS 2
#define DONE 3
#define GONE 4
#define LOST 5

/* What a client is doing. */
#define IDLE 0
#define ASKS 1
#define WAITING 2
#define HOLDS 3
#define GIVES 4
#define DEAD 5

/* The server. */
byte holder, left, queue[TOKENS], queued
#ifdef FENCES
byte counter, fence, highest, rep_fence[CLIENTS], msg_fence[CLIENTS], mine[CLIENTS]
#endif

/* Clients. What is left of a lease is counted from the client's own begin of it. */
byte state[CLIENTS], round[CLIENTS]
byte valid[CLIENTS]                    /* left of the lease, as its owner believes */
byte request[CLIENTS], age[CLIENTS]    /* on its way to the server, and since when */
byte reply[CLIENTS], rep_left[CLIENTS] /* on its way back, and what is left of that lease */
byte behind[CLIENTS]                   /* ticks from sending until the script ran: the pair (t0, s0) */
byte late[CLIENTS]                     /* the token of an acquire that is still on its way */
byte msg[CLIENTS], msg_left[CLIENTS]   /* a grant on its way, and what is left of it */
#ifdef WITHIN
byte timer[CLIENTS], renewals[CLIENTS], losses, crashes, idle
#endif

/* Registers of the scripts: no part of the state. */
hidden byte who, x, i, j, ms, answer
hidden byte hears

#define token(c) ((c) * ROUNDS + round[c] + 1)
#define owner(t) (((t) - 1) / ROUNDS)
#define less(a, b) ((a) > (b) -> (a) - (b) : 0)
#define most(a, b) ((a) > (b) -> (a) : (b))
#define lives(c) (state[c] != DEAD)
#ifdef FENCES
#define fences(f) f
#else
#define fences(f) 0
#endif

/* ear is what PUBSUB NUMSUB says. */
#ifdef WITHIN
#define ear(t) lives(owner(t))
#else
#define ear(t) hears
#endif
#ifdef RENEW_BLIND
#define owns(t) (holder != 0)
#else
#define owns(t) (holder == t)
#endif
#ifdef PUBLISH_REACHED
#define heard(t) true
#else
#define heard(t) ear(t)
#endif

inline give(t, n) {
  holder = t; left = n;
#ifdef FENCES
  counter++; fence = counter
#endif
}

inline publish(t) {
  if
  :: lives(owner(t)) ->
     msg[owner(t)] = t; msg_left[owner(t)] = GRANT;
#ifdef FENCES
     msg_fence[owner(t)] = fence
#endif
  :: else
  fi
}

inline remove(t) {
  i = 0; j = 0;
  do
  :: i < queued ->
     if :: queue[i] != t -> queue[j] = queue[i]; j++ :: else fi;
     i++
  :: else -> break
  od;
  do
  :: queued > j -> queued--; queue[queued] = 0
  :: else -> break
  od
}

/* hand_over gives a free lock to the first who is heard, or leaves it to me. */
inline hand_over(me) {
  who = 0;
  do
  :: queued > 0 && who == 0 ->
     x = queue[0];
     remove(x);
     if
     :: x == me -> who = x
     :: x != me && heard(x) ->
        who = x;
        assert(ear(x)); /* unheard */
        give(x, GRANT);
        publish(x)
     :: else ->
#ifdef PUBLISH_NONE
        give(x, GRANT); publish(x); holder = 0; left = 0
#endif
     fi
  :: else -> break
  od
}

inline acquire(t) {
  answer = WAITS;
  if
  :: holder == t -> answer = GRANTED; left = most(left, TTL)
  :: else ->
     i = 0;
     do :: i < queued && queue[i] != t -> i++ :: else -> break od;
     if :: i == queued -> queue[queued] = t; queued++ :: else fi;
     if
     :: holder == 0 ->
        hand_over(t);
        if :: who == t -> answer = GRANTED; give(t, TTL) :: else fi
     :: else
     fi
  fi;
  ms = (answer == GRANTED -> left : 0)
}

inline renew(t) {
  answer = GONE; ms = 0;
  if
  :: owns(t) ->
     left = most(left, TTL); ms = left; answer = DONE
  :: else
  fi
}

inline release(t) {
  remove(t);
#ifdef RELEASE_BLIND
  holder = 0; left = 0;
#else
  if :: holder == t -> holder = 0; left = 0 :: else fi;
#endif
  if :: holder == 0 -> hand_over(0) :: else fi
}

/* believe: as far as c knows, its lease lasts n ticks more. */
inline believe(c, n) {
  i = 0;
  do
  :: i < CLIENTS -> assert(i == c || n == 0 || valid[i] == 0); i++ /* overlap */
  :: else -> break
  od;
  valid[c] = n
}

inline comes_to_hold(c, n, f) {
  believe(c, n);
#ifdef FENCES
  assert(f > highest); /* fence */
  highest = f; mine[c] = f;
#endif
#ifdef WITHIN
  idle = 0;
#endif
  state[c] = HOLDS; behind[c] = 0
}

inline send(c, what, next) {
  request[c] = what; reply[c] = NONE; rep_left[c] = 0; age[c] = 0; behind[c] = 0;
#ifdef FENCES
  rep_fence[c] = 0;
#endif
  state[c] = next
}

inline give_up(c) {
  valid[c] = 0;
#ifdef FENCES
  mine[c] = 0;
#endif
#ifdef WITHIN
  renewals[c] = 0;
#endif
  send(c, RELEASE, GIVES)
}

inline answered(c) {
  reply[c] = NONE; rep_left[c] = 0;
#ifdef FENCES
  rep_fence[c] = 0
#endif
}

/* reply_with sends back what a script answered. Its lease began when the request was sent. */
inline reply_with(c) {
  request[c] = NONE; reply[c] = answer;
#ifdef FROM_REPLY
  rep_left[c] = ms;
#else
  rep_left[c] = less(ms, age[c]);
#endif
#ifdef FENCES
  rep_fence[c] = (answer == GRANTED -> fence : 0);
#endif
  behind[c] = (answer == WAITS -> age[c] : 0);
  age[c] = 0
}

inline forget(c) {
  msg[c] = 0; msg_left[c] = 0;
#ifdef FENCES
  msg_fence[c] = 0
#endif
}

inline next_round(c) {
  request[c] = NONE; age[c] = 0;
  round[c]++; state[c] = IDLE
}

#ifdef WITHIN
#define may_lose (losses < LOSSES)
#define lose losses++
#define may_renew(c) (renewals[c] == 0)
#else
#define may_lose true
#define lose skip
#define may_renew(c) true
#endif
#ifdef NO_TIMER
#define due(c) false
#elif defined(WITHIN)
#define due(c) (timer[c] == 0)
#else
#define due(c) true
#endif
#ifdef REVIVES
#define goes_on(c) true
#else
#define goes_on(c) (valid[c] > 0)
#endif
/* Fences are numbers, so with them there are only so many grants. */
#ifdef FENCES
#define may_ask (counter < FENCES)
#else
#define may_ask true
#endif

active [CLIENTS] proctype client() {
  byte c = _pid;
end:
  do
  /* What the client does. */
  :: d_step { state[c] == IDLE && round[c] < ROUNDS -> send(c, ACQUIRE, ASKS) }
  :: d_step { state[c] == ASKS && reply[c] == GRANTED ->
       if
       :: rep_left[c] > 0 -> comes_to_hold(c, rep_left[c], fences(rep_fence[c])); answered(c)
       :: else -> give_up(c)
       fi }
  :: d_step { state[c] == ASKS && reply[c] == WAITS ->
#ifdef WITHIN
       timer[c] = POLL;
#endif
       answered(c); state[c] = WAITING }
  :: d_step { state[c] == ASKS && reply[c] == LOST -> send(c, ACQUIRE, ASKS) }
  :: d_step { state[c] == WAITING && msg[c] == token(c) ->
#ifdef FROM_ARRIVAL
       ms = GRANT;
#else
       ms = less(msg_left[c], behind[c]);
#endif
#ifdef WITHIN
       timer[c] = 0;
#endif
       if
       :: ms > 0 -> comes_to_hold(c, ms, fences(msg_fence[c]))
       :: else -> send(c, ACQUIRE, ASKS)
       fi;
       forget(c) }
  :: d_step { state[c] == WAITING && due(c) -> send(c, ACQUIRE, ASKS) }
#ifndef WITHIN
  :: d_step { (state[c] == WAITING || state[c] == ASKS && reply[c] == LOST) -> give_up(c) }
#endif
  :: d_step { state[c] == HOLDS && valid[c] > 0 && request[c] == NONE && reply[c] == NONE && may_renew(c) ->
#ifdef WITHIN
       renewals[c]++;
#endif
       send(c, RENEW, HOLDS) }
  :: d_step { state[c] == HOLDS && reply[c] == DONE && goes_on(c) ->
       ms = most(rep_left[c], valid[c]); believe(c, ms); answered(c);
#ifdef FENCES
       assert(ms == 0 || mine[c] == highest) /* fence */
#endif
     }
  :: d_step { state[c] == HOLDS && reply[c] == LOST -> answered(c) }
  :: d_step { state[c] == HOLDS -> give_up(c) } /* done, lost, or over */
  :: d_step { msg[c] != 0 && msg[c] != token(c) -> forget(c) }

  /* The server runs a script; its reply is on its way, or lost. */
#ifdef WITHIN
  :: d_step { request[c] == ACQUIRE -> acquire(token(c)); reply_with(c) }
  :: d_step { request[c] == RELEASE -> release(token(c)); next_round(c) }
  :: d_step { late[c] != 0 -> acquire(late[c]); late[c] = 0 }
#else
  :: d_step { request[c] == ACQUIRE && may_ask -> hears = true; acquire(token(c)); reply_with(c) }
  :: d_step { request[c] == ACQUIRE && may_ask -> hears = false; acquire(token(c)); reply_with(c) }
  :: d_step { request[c] == RELEASE && may_ask -> hears = true; release(token(c)); next_round(c) }
  :: d_step { request[c] == RELEASE && may_ask -> hears = false; release(token(c)); next_round(c) }
  :: d_step { late[c] != 0 && may_ask -> hears = true; acquire(late[c]); late[c] = 0 }
  :: d_step { late[c] != 0 && may_ask -> hears = false; acquire(late[c]); late[c] = 0 }
#endif
  :: d_step { request[c] == RENEW -> renew(token(c)); reply_with(c) }

  /* What goes wrong. */
  :: d_step { request[c] == ACQUIRE && may_lose && late[c] == 0 -> lose;
       late[c] = token(c); request[c] = NONE; reply[c] = LOST; age[c] = 0 }
  :: d_step { request[c] == RENEW && may_lose -> lose; request[c] = NONE; reply[c] = LOST; age[c] = 0 }
  :: d_step { request[c] == RELEASE && may_lose -> lose; next_round(c) }
  :: d_step { reply[c] != NONE && reply[c] != LOST && may_lose -> lose; answered(c); reply[c] = LOST; behind[c] = 0 }
#ifdef WITHIN
  :: d_step { late[c] != 0 -> late[c] = 0 }
  :: d_step { msg[c] != 0 && may_lose -> lose; forget(c) }
  :: d_step { lives(c) && crashes < CRASHES && (CRASH_HOLDER || state[c] == WAITING && holder != token(c)) -> crashes++;
       state[c] = DEAD; valid[c] = 0; request[c] = NONE; age[c] = 0; behind[c] = 0; round[c] = 0;
       timer[c] = 0; renewals[c] = 0; answered(c); forget(c) }
#endif
  od
}

#ifdef WITHIN
/* rests: c has nothing to do before the next tick. */
#define rests(c) (request[c] == NONE && reply[c] == NONE && msg[c] == 0 && late[c] == 0 && \
  !(state[c] == IDLE && round[c] < ROUNDS) && !(state[c] == WAITING && due(c)) && \
  !(state[c] == HOLDS && valid[c] == 0))
#if CLIENTS > 2
#define all_rest (rests(0) && rests(1) && rests(2))
#else
#define all_rest (rests(0) && rests(1))
#endif
#else
#define all_rest true
#endif

active proctype time() {
end:
  do
  :: d_step { all_rest ->
       left = less(left, 1);
       if :: left == 0 -> holder = 0 :: else fi;
       i = 0; ms = 0; x = 0;
       do
       :: i < CLIENTS ->
          valid[i] = less(valid[i], 1);
          msg_left[i] = less(msg_left[i], 1);
#ifndef FROM_REPLY
          rep_left[i] = less(rep_left[i], 1);
#endif
          if :: request[i] != NONE && request[i] != RELEASE && age[i] < TTL -> age[i]++ :: else fi;
#ifdef WITHIN
          timer[i] = less(timer[i], 1);
          if :: state[i] == WAITING -> ms = 1 :: else fi;
          if :: state[i] == HOLDS && valid[i] > 0 -> x = 1 :: else fi;
#endif
          i++
       :: else -> break
       od;
#ifdef WITHIN
       if
       :: ms == 1 && x == 0 -> idle++; assert(idle <= WITHIN) /* starved */
       :: else -> idle = 0
       fi
#endif
     }
  od
}
