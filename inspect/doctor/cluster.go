package doctor

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/zamok-go/zamok"
	"github.com/zamok-go/zamok/driver"
)

// ExamineCluster looks at all primaries of a cluster at the same time, and returns what
// Examine finds on each, since each can be set otherwise. d is a driver of the cluster,
// and primaries are drivers of one primary each, which are asked for nothing but plain
// commands. The errors are those of Examine.
func ExamineCluster(ctx context.Context, d driver.Driver, primaries []zamok.Node, c *Config) ([]Finding, error) {
	conf, err := c.withDefaults()
	switch {
	case err != nil:
		return nil, err
	case d == nil || len(primaries) == 0:
		return nil, &zamok.ConfigError{Field: "primaries", Err: errors.New("there are none")}
	}
	exams := make([]*exam, len(primaries))
	for i, p := range primaries {
		exams[i] = &exam{d: shard{d, p.Driver}, conf: conf, shard: true}
	}
	var findings []Finding
	err = errors.Join(runAll(ctx, exams)...)
	for i, e := range exams {
		findings = append(findings, e.of(primaries[i].Name)...)
	}
	worstFirst(findings)
	return findings, err
}

// shard is a cluster of which plain commands ask one primary.
type shard struct {
	driver.Driver

	primary driver.Driver
}

func (s shard) Do(ctx context.Context, limit time.Duration, args ...string) (any, error) {
	return s.primary.Do(ctx, limit, args...)
}

// runAll runs several at the same time, and returns the error of each.
func runAll(ctx context.Context, exams []*exam) []error {
	errs := make([]error, len(exams))
	var all sync.WaitGroup
	for i, e := range exams {
		all.Go(func() { errs[i] = e.run(ctx) })
	}
	all.Wait()
	return errs
}

// of returns the findings as those of one of several servers.
func (e *exam) of(name string) []Finding {
	for i := range e.findings {
		e.findings[i].Member = name
	}
	return e.findings
}
