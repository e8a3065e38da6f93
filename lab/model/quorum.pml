/*
 * A quorum of three independent servers (nodes): votes, the write-back of the
 * fence, renewal with refill, restarts, quarantine.
 *
 * Each atomic step is one of
 *   a script on one node: the vote (take the lock for this token if it is free and
 *     the node is in no quarantine), the confirmation (where the value still has
 *     this token, raise the counter to the fence), the renewal (which takes the
 *     lock again where it is free), the release;
 *   a client's decision when a majority has granted, confirmed or renewed;
 *   something that happens: time, a vote, reply or release that is lost or late, a
 *     restart that loses what a node had.
 *
 * Requests go to all nodes at once and run in any order; what is not run yet is on
 * its way, also when its client has decided. A client may be slow without limit,
 * which is also how it crashes.
 *
 * Without -DFENCES there is time, counted as what is left, and no fence. With
 * -DFENCES there is no time: a lease may end on a node at any moment while its
 * client does not believe to hold, and a client comes to believe only if the nodes
 * that it stands on still have its lock. There the fence of a node is its counter
 * + 1: the clocks of nodes need not agree, so they are of no help.
 *
 * Client 0 begins, since the two are alike. Left out: the queue (it is advice),
 * more than ROUNDS attempts of a client, more than RESTARTS restarts, more than
 * RENEWALS renewals of a lease.
 *
 * Properties:
 *   overlap  two clients never believe at once that they hold
 *   fence    who comes to hold has a larger fence than all before (-DFENCES)
 *
 * Naive variants:
 *   FRESH_VOTES  a node that has lost its data votes at once
 *   NO_WRITE     the fence is the largest of the majority, and is not written back
 *   WRITE_ALL    it is written back to any majority, and not where the lock is still held
 *   FENCE_MOVES  a vote that comes after the first majority still raises the fence
 *   LATE_COUNTS  such a vote, with a larger fence than the majority's, is confirmed
 *                and counts; when a lock was lost on a node before its time (its
 *                clock stepped), another may have held in between
 * What does not help: a quarantine where counters are lost (-DFENCES -DRESTARTS=1).
 */
#ifndef ROUNDS
#define ROUNDS 2
#endif
#ifndef RESTARTS
#define RESTARTS 0
#endif
#ifndef RENEWALS
#define RENEWALS 0
#endif
#define CLIENTS 2
#define NODES 3
#define MAJORITY 2
#define TTL 2

#define IDLE 0
#define ASKS 1
#define HOLDS 2
#define GIVES 3
#define ENDED 4

/* What a client knows of a node. */
#define SENT 0      /* the vote is on its way */
#define YES 1
#define NO 2        /* refused, or nothing is known */
#define CONFIRMED 3
#define RENEWING 4  /* a renewal is on its way */
#define RENEWED 5
#define OVER 6

byte holder[NODES]
#ifdef FENCES
byte counter[NODES], fence[CLIENTS], highest
bool abstains[NODES], settled[CLIENTS]
#else
byte left[NODES], quarantine[NODES], age[CLIENTS], valid[CLIENTS], renewals[CLIENTS]
#endif
byte state[CLIENTS], round[CLIENTS], restarts
byte vote[CLIENTS * NODES]

hidden byte i, k, yes, confirmed, renewed, over

#define token(c) ((c) * ROUNDS + round[c] + 1)
#define less(a, b) ((a) > (b) -> (a) - (b) : 0)
#define most(a, b) ((a) > (b) -> (a) : (b))
#define at(c, n) vote[(c) * NODES + (n)]

inline count(c) {
  yes = 0; confirmed = 0; renewed = 0; over = 0; i = 0;
  do
  :: i < NODES ->
     if
     :: at(c, i) == YES -> yes++
     :: at(c, i) == CONFIRMED -> confirmed++
     :: at(c, i) == RENEWED -> renewed++
     :: at(c, i) == OVER -> over++
     :: else
     fi;
     i++
  :: else -> break
  od
}

inline set_all(c, what) {
  i = 0;
  do :: i < NODES -> at(c, i) = what; i++ :: else -> break od;
  i = 0
}

#ifdef FENCES
#define votes(n) (!abstains[n])
#else
#define votes(n) (quarantine[n] == 0)
#endif

#ifdef FENCE_MOVES
#define raises(c) true
#else
#define raises(c) (!settled[c])
#endif

/* takes: the vote at a node that grants it. */
inline takes(c, n) {
  holder[n] = token(c);
#ifdef FENCES
  counter[n]++;
  if :: state[c] == ASKS && raises(c) -> fence[c] = most(fence[c], counter[n]) :: else fi
#else
  left[n] = TTL
#endif
}

inline confirm(c, n) {
  if
#ifdef WRITE_ALL
  :: true ->
#else
  :: holder[n] == token(c) ->
#endif
     at(c, n) = CONFIRMED;
#ifdef FENCES
     counter[n] = most(counter[n], fence[c])
#endif
  :: else -> at(c, n) = NO
  fi
}

#ifdef NO_WRITE
#define enough (yes >= MAJORITY)
#else
#define enough (confirmed >= MAJORITY)
#endif
/* decided: a majority has granted. */
#define decided(c) ((at(c, 0) == YES || at(c, 0) == CONFIRMED) + (at(c, 1) == YES || at(c, 1) == CONFIRMED) + \
  (at(c, 2) == YES || at(c, 2) == CONFIRMED) >= MAJORITY)
/* counts: a vote that comes after the first majority, with a larger fence than that
 * majority's, is none: somebody may have held with a fence between the two. The engine
 * confirms it all the same, which changes nothing here: its counter is larger. */
#if defined(FENCES) && !defined(LATE_COUNTS)
#define counts(c, n) (!settled[c] || counter[n] <= fence[c])
#else
#define counts(c, n) true
#endif
#ifdef FENCES
/* settle: the fence is that of the first majority. */
#define settle(c) if :: state[c] == ASKS && decided(c) -> settled[c] = true :: else fi
#else
#define settle(c) skip
#endif
#ifdef WRITE_ALL
#define writes_to(c, n) (at(c, n) == YES || at(c, n) == NO)
#else
#define writes_to(c, n) (at(c, n) == YES)
#endif

inline give_up(c) {
  state[c] = GIVES;
#ifdef FENCES
  fence[c] = 0; settled[c] = false;
#else
  age[c] = 0; valid[c] = 0; renewals[c] = 0;
#endif
  i = 0;
  do
  :: i < NODES -> if :: at(c, i) != SENT && at(c, i) != OVER -> at(c, i) = NO :: else fi; i++
  :: else -> break
  od;
  i = 0
}

#define node_steps(c, n) \
  :: d_step { at(c, n) == SENT && (state[c] == ASKS || state[c] == GIVES) && holder[n] == 0 && votes(n) -> \
       takes(c, n); at(c, n) = (state[c] == ASKS && counts(c, n) -> YES : NO); settle(c) } \
  :: d_step { at(c, n) == SENT && state[c] == ASKS -> at(c, n) = NO } \
  :: d_step { state[c] == ASKS && writes_to(c, n) && decided(c) -> confirm(c, n) } \
  :: d_step { state[c] == GIVES && at(c, n) != OVER -> /* the release ran, or found nothing */ \
       if :: holder[n] == token(c) -> free(n) :: else fi; at(c, n) = OVER } \
  :: d_step { state[c] == GIVES && at(c, n) != OVER -> at(c, n) = OVER } /* it was lost */

#ifdef FENCES
#define free(n) holder[n] = 0
#else
#define free(n) holder[n] = 0; left[n] = 0
#endif

active [CLIENTS] proctype client() {
  byte c = _pid;
end:
  do
  :: d_step { state[c] == IDLE && (c == 0 || state[0] != IDLE || round[0] > 0) -> state[c] = ASKS; set_all(c, SENT) }
  node_steps(c, 0)
  node_steps(c, 1)
  node_steps(c, 2)
  :: d_step { state[c] == ASKS -> give_up(c) }
  :: d_step { state[c] == HOLDS -> give_up(c) }
  :: d_step { state[c] == GIVES && at(c, 0) == OVER && at(c, 1) == OVER && at(c, 2) == OVER ->
       set_all(c, SENT);
       if :: round[c] + 1 < ROUNDS -> round[c]++; state[c] = IDLE :: else -> state[c] = ENDED fi }
#ifdef FENCES
  :: d_step { state[c] == ASKS && decided(c) ->
       count(c); k = 0; i = 0;
       do
       :: i < NODES -> if :: (at(c, i) == YES || at(c, i) == CONFIRMED) && holder[i] == token(c) -> k++ :: else fi; i++
       :: else -> break
       od;
       if
       :: enough && k >= MAJORITY ->
          assert(state[1 - c] != HOLDS); /* overlap */
          assert(fence[c] > highest);    /* fence */
          highest = fence[c]; fence[c] = 0; settled[c] = false; state[c] = HOLDS; set_all(c, CONFIRMED)
       :: else
       fi }
#else
  :: d_step { state[c] == ASKS && decided(c) ->
       count(c);
       if
       :: enough && age[c] < TTL -> state[c] = HOLDS; valid[c] = TTL - age[c]; age[c] = 0; assert(valid[1 - c] == 0) /* overlap */
       :: else
       fi }
  :: d_step { state[c] == HOLDS && valid[c] > 0 && renewals[c] < RENEWALS -> renewals[c]++; age[c] = 0; set_all(c, RENEWING) }
  :: d_step { state[c] == HOLDS && valid[c] > 0 ->
       count(c);
       if
       :: renewed >= MAJORITY -> valid[c] = most(valid[c], less(TTL, age[c])); age[c] = 0; set_all(c, CONFIRMED);
          assert(valid[1 - c] == 0) /* overlap */
       :: else
       fi }
#define renew_step(c, n) \
  :: d_step { at(c, n) == RENEWING && state[c] == HOLDS -> \
       if \
       :: holder[n] == token(c) || holder[n] == 0 && votes(n) -> holder[n] = token(c); left[n] = TTL; at(c, n) = RENEWED \
       :: else -> at(c, n) = NO \
       fi }
  renew_step(c, 0)
  renew_step(c, 1)
  renew_step(c, 2)
#endif
  od
}

#ifdef FENCES
/* believed: the owner of this token holds, so that its lease does not end. */
#define believed(t) (state[0] == HOLDS && (t) == token(0) || state[1] == HOLDS && (t) == token(1))
#define node_fails(n) \
  :: d_step { holder[n] != 0 && !believed(holder[n]) -> free(n) } \
  :: d_step { restarts < RESTARTS -> restarts++; free(n); counter[n] = 0; abstains[n] = true } \
  :: d_step { abstains[n] && state[0] != HOLDS && state[1] != HOLDS && state[0] != ASKS && state[1] != ASKS -> abstains[n] = false }
#else
#ifdef FRESH_VOTES
#define ABSTAIN 0
#else
#define ABSTAIN TTL
#endif
#define node_fails(n) \
  :: d_step { restarts < RESTARTS -> restarts++; free(n); quarantine[n] = ABSTAIN }
#endif

active proctype world() {
end:
  do
  node_fails(0)
#ifdef FENCES
  node_fails(1)
  node_fails(2)
#else
#if RESTARTS > 0
  node_fails(1)
  node_fails(2)
#endif
  :: d_step {
       true ->
       i = 0;
       do
       :: i < NODES ->
          left[i] = less(left[i], 1); quarantine[i] = less(quarantine[i], 1);
          if :: left[i] == 0 -> holder[i] = 0 :: else fi;
          i++
       :: else -> break
       od;
       i = 0;
       do
       :: i < CLIENTS ->
          valid[i] = less(valid[i], 1);
          if
          :: state[i] == ASKS && age[i] < TTL -> age[i]++
          :: state[i] == HOLDS && age[i] < TTL && (at(i, 0) >= RENEWING || at(i, 1) >= RENEWING || at(i, 2) >= RENEWING) -> age[i]++
          :: else
          fi;
          i++
       :: else -> break
       od;
       i = 0 }
#endif
  od
}
