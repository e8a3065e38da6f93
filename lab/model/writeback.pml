/*
 * The fences of a quorum of three independent servers (nodes): votes, the write-back,
 * votes that come late, locks that end early, restarts. Its time is in quorum.pml.
 *
 * Each atomic step is one of
 *   a script on one node: vote.lua with fence.lua and node.lua, confirm.lua (where the
 *     value still has this token, raise the counter to the fence);
 *   a client's decision (quorum_round.go: decide, counts, win), or that it gives up;
 *   something that happens: a lock ends on a node, a node restarts without its data.
 *
 * There is no time: a lock may end on a node at any moment, also early, as by a step of
 * its clock, as long as a majority keeps that of a client which holds. A client comes
 * to hold only if a majority that it has heard from has its lock still: that its lease
 * is over before is what quorum.pml is about. A request or reply that is late or lost
 * is a step that does not come.
 *
 * The fence of a vote is any that is larger than the node's counter, since nothing is
 * known of the clocks, nor of what the client proposes; so a node that gives the largest
 * need not be told it. After a restart a node has no counter, but its clock is ahead of
 * all fences that were given until then, and it votes when all who asked or held then
 * have given up: the quarantine, when clocks differ by less than it.
 *
 * Only the order of fences counts, so they are numbered anew after each step, and only
 * who has what, so the nodes are sorted. So there is no last fence, round or restart:
 * any number of each. What is given up is free at once: a node that some token has which
 * nobody believes in gives no vote, which is one that does not come, and a counter that
 * such a token has raised makes a node give none of the smaller fences.
 *
 * Left out: renewal, blocks of fences, the queue, breaks.
 *
 * Properties:
 *   overlap  two clients never hold at once
 *   fence    who comes to hold has a larger fence than all before
 *
 * Naive variants:
 *   NO_WRITE     the fence is the largest of the majority, and is not written back
 *   WRITE_ALL    it is written back to any majority, and not where the lock is still held
 *   FENCE_MOVES  a vote that comes after the first majority still raises the fence
 *   LATE_COUNTS  such a vote, with a larger fence than the majority's, counts; when a lock
 *                was lost on a node before its time, another may have held in between. The
 *                engine confirms it all the same, which changes nothing here: its counter
 *                is larger
 *   COUNTER      fence = last + 1, and a node may lose its counter
 */
#define CLIENTS 2
#define NODES 3
#define MAJORITY 2
#define VALUES (NODES + CLIENTS + 1)

/* What a client is doing. */
#define IDLE 0
#define ASKS 1
#define KNOWS 2 /* a majority has voted, and the largest of its fences is the one */
#define HOLDS 3

/* What it has heard from a node. */
#define NOTHING 0 /* or a vote that does not count */
#define YES 1     /* a vote with a smaller fence than the largest */
#define FENCED 2  /* the node has the fence: it gave the largest, or was told it */

/* Who has a node's vote. */
#define NOBODY 0
#define me(c) ((c) + 1)

byte value[VALUES]    /* 0, or even */
#define counter(n) value[n]
#define fence(c) value[NODES + (c)]     /* the largest of its votes, while it asks */
#define highest value[NODES + CLIENTS]  /* of those who came to hold */
byte holder[NODES]
byte waits[NODES]     /* for whom to give up before the node votes again: a bit each */
byte state[CLIENTS], heard[CLIENTS * NODES]
byte f                /* the fence of a vote, within its step */

hidden byte i, j, k, x

#define at(c, n) heard[(c) * NODES + (n)]
#define most(a, b) ((a) > (b) -> (a) : (b))
#define bit(c) (state[c] == IDLE -> 0 : 1 << (c))

#ifdef FENCE_MOVES
#define moves(c) true
#else
#define moves(c) (state[c] == ASKS)
#endif
#ifdef LATE_COUNTS
#define LATE YES
#else
#define LATE NOTHING
#endif
#ifdef WRITE_ALL
#define writes_to(c, n) (at(c, n) != FENCED)
#define writes(c, n) true
#else
#define writes_to(c, n) (at(c, n) == YES)
#define writes(c, n) (holder[n] == me(c))
#endif
#ifdef NO_WRITE
#define enough true
#else
#define enough (k >= MAJORITY)
#endif

inline swap(a, b) { x = a; a = b; b = x }

#define key(n) ((((counter(n) * 4 + waits[n]) * 3 + holder[n]) * 3 + at(0, n)) * 3 + at(1, n))

/* order numbers the fences anew and sorts the nodes: states that differ by these alone become one. */
inline order() {
  f = 1; k = 1;
  do
  :: f <= 2 * VALUES + 1 ->
     i = 0; x = 0;
     do
     :: i < VALUES -> if :: value[i] == f -> value[i] = k; x = 1 :: else fi; i++
     :: else -> break
     od;
     k = k + x; f++
  :: else -> break
  od;
  f = 0; i = 0;
  do :: i < VALUES -> value[i] = 2 * value[i]; i++ :: else -> break od;
  i = 1;
  do
  :: i < NODES ->
     j = i;
     do
     :: j > 0 && key(j - 1) > key(j) ->
        swap(counter(j - 1), counter(j)); swap(holder[j - 1], holder[j]); swap(waits[j - 1], waits[j]);
        swap(at(0, j - 1), at(0, j)); swap(at(1, j - 1), at(1, j));
        j--
     :: else -> break
     od;
     i++
  :: else -> break
  od;
  i = 0 /* a d_step must not end with a loop */
}

inline vote(c, n) {
  counter(n) = f; holder[n] = me(c);
  if
  :: f == fence(c) -> at(c, n) = FENCED
  :: f < fence(c) -> at(c, n) = YES
  :: f > fence(c) && moves(c) ->
     i = 0;
     do
     :: i < NODES -> if :: state[c] == ASKS && at(c, i) == FENCED -> at(c, i) = YES :: else fi; i++
     :: else -> break
     od;
     fence(c) = f; at(c, n) = FENCED
  :: else -> at(c, n) = LATE
  fi;
  k = 0; i = 0;
  do :: i < NODES -> if :: at(c, i) != NOTHING -> k++ :: else fi; i++ :: else -> break od;
  if :: k >= MAJORITY -> state[c] = KNOWS :: else fi
}

inline confirm(c, n) {
  if
  :: writes(c, n) -> counter(n) = most(counter(n), fence(c)); at(c, n) = FENCED
  :: else -> at(c, n) = NOTHING
  fi
}

inline rest(c, next) {
  fence(c) = 0; state[c] = next; i = 0;
  do :: i < NODES -> at(c, i) = NOTHING; i++ :: else -> break od
}

inline hold(c) {
  k = 0; x = 0; i = 0;
  do
  :: i < NODES ->
     if :: at(c, i) == FENCED -> k++ :: else fi;
     if :: at(c, i) != NOTHING && holder[i] == me(c) -> x++ :: else fi;
     i++
  :: else -> break
  od;
  if
  :: enough && x >= MAJORITY ->
     assert(state[1 - c] != HOLDS); /* overlap */
     assert(fence(c) > highest);    /* fence */
     highest = fence(c); rest(c, HOLDS)
  :: else
  fi
}

inline give_up(c) {
  i = 0;
  do
  :: i < NODES ->
     if :: holder[i] == me(c) -> holder[i] = NOBODY :: else fi;
     waits[i] = waits[i] & ~(1 << (c));
     i++
  :: else -> break
  od;
  rest(c, IDLE)
}

inline restart(n) {
  holder[n] = NOBODY; waits[n] = bit(0) | bit(1); x = 0; i = 0;
#ifndef COUNTER
  do :: i < VALUES -> x = most(x, value[i]); i++ :: else -> break od;
#endif
  counter(n) = x
}

#define votes(c, n) ((state[c] == ASKS || state[c] == KNOWS) && at(c, n) == NOTHING && holder[n] == NOBODY && waits[n] == 0)

active [CLIENTS] proctype client() {
  byte c = _pid;
end:
  do
  :: d_step { state[c] == IDLE -> state[c] = ASKS; order() }
  :: d_step { state[c] != IDLE -> give_up(c); order() }
  :: d_step { state[c] == KNOWS -> hold(c); order() }
#define gives(n, v) :: (v) > counter(n) -> f = v
#define node_steps(n) \
  :: atomic { votes(c, n) -> \
       if gives(n, 1) gives(n, 2) gives(n, 3) gives(n, 4) gives(n, 5) gives(n, 6) gives(n, 7) \
          gives(n, 8) gives(n, 9) gives(n, 10) gives(n, 11) gives(n, 12) gives(n, 13) fi; \
       d_step { vote(c, n); order() } } \
  :: d_step { state[c] == KNOWS && writes_to(c, n) -> confirm(c, n); order() }
  node_steps(0)
  node_steps(1)
  node_steps(2)
  od
}

/* may_end: a lock of c may end on a node. */
#define has(c) ((holder[0] == me(c)) + (holder[1] == me(c)) + (holder[2] == me(c)))
#define may_end(c) (state[c] != HOLDS || has(c) > MAJORITY)

active proctype world() {
end:
  do
#define node_fails(n) \
  :: d_step { holder[n] == me(0) && may_end(0) -> holder[n] = NOBODY; order() } \
  :: d_step { holder[n] == me(1) && may_end(1) -> holder[n] = NOBODY; order() } \
  :: d_step { true -> restart(n); order() }
  node_fails(0)
  node_fails(1)
  node_fails(2)
  od
}
