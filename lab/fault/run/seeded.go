package run

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"

	"github.com/zamok-go/zamok/lab/fault/broken"
	"github.com/zamok-go/zamok/lab/fault/deploy"
)

// seeded plays the locks that are broken on purpose, all at a time: most of a scene is
// waiting. A check that no longer sees what it is there for is worth no more than a
// campaign that fails.
func (s *series) seeded(ctx context.Context) error {
	dir, err := os.MkdirTemp(s.dir, "broken-")
	if err != nil {
		return err
	}
	scenes := broken.Scenes()
	catches, errs := make([]broken.Catch, len(scenes)), make([]error, len(scenes))
	var wg sync.WaitGroup
	for i := range scenes {
		wg.Go(func() {
			host := deploy.NewHost(filepath.Join(dir, fmt.Sprint(i)), s.say)
			defer host.Close()
			errs[i] = host.Try(func() { catches[i] = scenes[i].Catch(ctx, host) })
		})
	}
	wg.Wait()
	if err := errors.Join(append(errs, ctx.Err())...); err != nil {
		return err
	}
	s.Seeded += len(scenes)
	for i, c := range catches {
		if c.Seen {
			s.Caught++
		} else {
			fmt.Fprintf(s.say, "MISSED: no violation of %q by a lock with this flaw: %s; its history is in %s\n", scenes[i].Want, scenes[i].Flaw, filepath.Join(dir, fmt.Sprint(i)))
		}
	}
	fmt.Fprintf(s.say, "%-13s seeded bugs caught %d/%d\n", "broken", s.Caught, s.Seeded)
	if s.Caught < s.Seeded {
		return nil
	}
	return os.RemoveAll(dir)
}
