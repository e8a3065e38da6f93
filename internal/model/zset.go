package model

import (
	"cmp"
	"math"
	"slices"
)

// zset is a sorted set: by score, then by the bytes of the member. A slice is
// enough, because nearly all that happens to a queue happens at its two ends.
type zset struct {
	scores map[string]float64
	order  []Scored
}

// Scored is a member of a sorted set and its score.
type Scored struct {
	Member string
	Score  float64
}

func compare(a, b Scored) int {
	return cmp.Or(cmp.Compare(a.Score, b.Score), cmp.Compare(a.Member, b.Member))
}

// find returns the member's place, which is where it would go if it is absent.
func (z *zset) find(m Scored) int {
	i, _ := slices.BinarySearchFunc(z.order, m, compare)
	return i
}

func (z *zset) remove(member string) bool {
	score, ok := z.scores[member]
	if !ok {
		return false
	}
	i := z.find(Scored{member, score})
	if i == 0 {
		z.order = z.order[1:] // cheap for the usual case: the first goes
	} else {
		z.order = slices.Delete(z.order, i, i+1)
	}
	delete(z.scores, member)
	return true
}

func (z *zset) add(m Scored) {
	z.scores[m.Member] = m.Score
	z.order = slices.Insert(z.order, z.find(m), m)
}

// zset returns the sorted set under the key, a new one if there is none.
func (s *Store) zset(key string) (*zset, error) {
	e, ok, err := s.typed(key, ZSet)
	if err != nil {
		return nil, err
	}
	if !ok {
		e = entry{kind: ZSet, set: &zset{scores: make(map[string]float64)}}
		s.put(key, e)
	}
	return e.set, nil
}

// ZAdd is ZADD NX: it returns whether the member is new.
func (s *Store) ZAdd(key, member string, score float64) (bool, error) {
	z, err := s.zset(key)
	if err != nil {
		return false, err
	}
	if _, had := z.scores[member]; had {
		return false, nil
	}
	z.add(Scored{member, score})
	return true, nil
}

// zput is ZADD: one that is in the set gets the new score.
func (s *Store) zput(key, member string, score float64) error {
	z, err := s.zset(key)
	if err != nil {
		return err
	}
	z.remove(member)
	z.add(Scored{member, score})
	return nil
}

// zremUpTo is ZREMRANGEBYSCORE from the least to score, which is among them. It
// returns how many went.
func (s *Store) zremUpTo(key string, score float64) (n int, err error) {
	all, err := s.ZRange(key)
	for len(all) > 0 && all[0].Score <= score {
		if _, err := s.ZRem(key, all[0].Member); err != nil {
			return n, err
		}
		n++
		all, err = s.ZRange(key)
	}
	return n, err
}

// zremBelow is the same without score itself.
func (s *Store) zremBelow(key string, score float64) (n int, err error) {
	return s.zremUpTo(key, math.Nextafter(score, math.Inf(-1)))
}

// ZRem is ZREM, for one member. A set that becomes empty is no key any more.
func (s *Store) ZRem(key, member string) (bool, error) {
	e, ok, err := s.typed(key, ZSet)
	if err != nil || !ok || !e.set.remove(member) {
		return false, err
	}
	if len(e.set.order) == 0 {
		delete(s.keys, key)
	}
	return true, nil
}

// ZRange returns all members in order. The slice is the store's own: it is for
// reading, until the set changes.
func (s *Store) ZRange(key string) ([]Scored, error) {
	e, ok, err := s.typed(key, ZSet)
	if err != nil || !ok {
		return nil, err
	}
	return e.set.order, nil
}

// zpopmin is ZPOPMIN.
func (s *Store) zpopmin(key string) (member string, ok bool, err error) {
	all, err := s.ZRange(key)
	if err != nil || len(all) == 0 {
		return "", false, err
	}
	member = all[0].Member
	_, err = s.ZRem(key, member)
	return member, true, err
}

// zscore is ZSCORE of a member that is known to be there, zrank its ZRANK.
func (s *Store) zscore(key, member string) float64 { return s.keys[key].set.scores[member] }

func (s *Store) zrank(key, member string) int64 {
	z := s.keys[key].set
	return int64(z.find(Scored{member, z.scores[member]}))
}
