package doctor

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"
)

// rounds is how often the server is asked for its time.
const rounds = 20

// firstGrant is for how long the server gives a lock to a waiter at first, which
// must renew it within that: see docs/protocol.md.
const firstGrant = 2 * time.Second

// sample is one question for the server's time.
type sample struct {
	sent, got time.Time // here
	server    time.Time
}

func (s sample) trip() time.Duration { return s.got.Sub(s.sent) }

// ahead returns how far the server's clock is ahead of ours, which is known as
// exactly as half of the trip.
func (s sample) ahead() time.Duration {
	return s.server.Sub(s.sent.Add(s.trip() / 2)) // by the wall clocks, since s.server has no other
}

// measure asks for the time again and again: one plain command gives the latency
// and the clock, and needs no right that locks do not need. The questions are
// spread over Config.Measure, so that a pause in it is not missed.
func (e *exam) measure(ctx context.Context) error {
	var samples []sample
	for i := range rounds + 1 {
		if i > 1 {
			if err := pause(ctx, e.conf.Measure/(rounds-1)); err != nil {
				return err
			}
		}
		s, refused, err := e.sample(ctx)
		if err != nil {
			return err
		}
		if refused != "" {
			e.add(Finding{
				Check: "latency", Severity: Note, Found: "not measured: " + refused,
				Reason: "How fast the server answers, and what its clock shows, was not looked at.",
			})
			return nil
		}
		if i > 0 { // the first may have had to connect
			samples = append(samples, s)
		}
	}
	e.add(latency(samples, e.conf.TTL), clock(samples))
	return nil
}

func (e *exam) sample(ctx context.Context) (s sample, refused string, err error) {
	s.sent = time.Now()
	reply, refused, err := e.ask(ctx, "TIME")
	s.got = time.Now()
	if err != nil || refused != "" {
		return s, refused, err
	}
	pair := texts(reply)
	if len(pair) != 2 {
		return s, fmt.Sprintf("TIME was answered with %.100q", fmt.Sprint(reply)), nil
	}
	seconds, err1 := strconv.ParseInt(pair[0], 10, 64)
	micros, err2 := strconv.ParseInt(pair[1], 10, 64)
	if err1 != nil || err2 != nil {
		return s, fmt.Sprintf("TIME was answered with %.100q", pair), nil
	}
	s.server = time.Unix(seconds, micros*1000)
	return s, "", nil
}

// pause waits, and no longer than ctx.
func pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// latency judges the round trips. A lock and its release are two of them, and a
// hand-over is one, so the usual one says how often a lock can change hands. The
// longest must leave time to renew: what a hand-over grants at first, and two
// thirds of a TTL.
func latency(samples []sample, ttl time.Duration) Finding {
	var trips []time.Duration
	for _, s := range samples {
		trips = append(trips, s.trip())
	}
	slices.Sort(trips)
	least, median, most := trips[0], trips[len(trips)/2], trips[len(trips)-1]
	f := Finding{Check: "latency", Severity: OK, Found: fmt.Sprintf("a round trip takes %v (of %d, %v to %v)", short(median), len(trips), short(least), short(most))}
	switch {
	case most >= ttl*2/3:
		f.Severity = Critical
		f.Reason = fmt.Sprintf("A lease of %v is lost when its renewal takes so long.", ttl)
		f.Remedy = "Find what stops the server or the network, or take longer TTLs."
	case most >= min(firstGrant/2, ttl/5):
		f.Severity = Warning
		f.Reason = fmt.Sprintf("A lock that is passed on is granted for %v at first, and renewed a third of its TTL before that at the latest: with such pauses a waiter can come too late, and is passed over.", firstGrant)
		f.Remedy = "Find what stops the server or the network: slow commands, forks, swapping, a shared CPU."
	case median >= 100*time.Millisecond:
		f.Severity = Warning
		f.Reason = fmt.Sprintf("One lock can go from holder to holder about %.0f times a second at most.", max(1, float64(time.Second)/float64(median)))
		f.Remedy = "Put the server nearer to those who lock."
	}
	return f
}

// clock compares the server's clock with ours. No client's clock decides
// anything, so a distance is no more than worth knowing.
func clock(samples []sample) Finding {
	best := slices.MinFunc(samples, func(a, b sample) int { return int(a.trip() - b.trip()) })
	ahead, which := best.ahead(), "ahead of"
	if ahead < 0 {
		which = "behind"
	}
	f := Finding{Check: "clock", Severity: OK, Found: fmt.Sprintf("the server's is %v %s ours, ± %v", short(ahead.Abs()), which, short(best.trip()/2))}
	here, there, even := evenness(samples)
	switch {
	case !even:
		f.Severity = Warning
		f.Found = fmt.Sprintf("the server's ran %v while %v passed here", short(there), short(here))
		f.Reason = "Leases end by the server's clock. Where it is set forward or runs fast they end early, and two can hold; where it is set back, late."
		f.Remedy = "Slew the server's clock (chrony, ntpd -x), never step it. See that the machine here keeps time too."
	case ahead.Abs()-best.trip()/2 > time.Second:
		f.Severity = Note
		f.Reason = "Locks are not concerned: no client's clock decides anything. But cron jobs of hosts so far apart do not start together (see --hold-min), and logs are hard to compare."
		f.Remedy = "Keep the time of both machines by NTP."
	}
	return f
}

// evenness says how long the samples took by either clock, and whether that is
// the same within 1 %. Ours is monotonic. The server looked at its own at some
// moment of each trip, which is all that is not known.
func evenness(samples []sample) (here, there time.Duration, even bool) {
	first, last := samples[0], samples[len(samples)-1]
	here, there = last.sent.Sub(first.sent), last.server.Sub(first.server)
	slack := here/100 + time.Millisecond
	return here, there, there <= here+last.trip()+slack && there >= here-first.trip()-slack
}

// short rounds for people.
func short(d time.Duration) time.Duration {
	switch {
	case d >= 10*time.Second:
		return d.Round(time.Second)
	case d >= 100*time.Millisecond:
		return d.Round(time.Millisecond)
	}
	return d.Round(10 * time.Microsecond)
}
