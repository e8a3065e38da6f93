package page

import (
	"os"
	"path/filepath"

	"github.com/zamok-go/zamok/lab/bench/locker"
	"github.com/zamok-go/zamok/lab/bench/result"
	"github.com/zamok-go/zamok/lab/bench/scene"
)

// drawn says what is plotted of a scenario.
type drawn struct {
	file, title, metric, x, y string
	log                       bool
}

func plots() map[string]drawn {
	return map[string]drawn{
		scene.Growth: {"handover.svg", "Hand-over: from the call of a release to when another holds (median)", "p50 µs", "waiters", "µs", true},
		scene.HandOver: {"fairness.svg", "Fairness: how often each of 16 clients had the lock", "share",
			"clients, the most successful first", "acquisitions, in units of an equal share", false},
	}
}

// Plots writes the plots of what was played into a folder.
func Plots(d *result.Data, dir string) error {
	for scenario, as := range plots() {
		if _, ok := d.Runs[scenario]; !ok {
			continue
		}
		p := plot{title: as.title, x: as.x, y: as.y, logX: as.log, logY: as.log}
		for _, k := range locker.All() {
			l := line{name: result.Library(k.Name), colour: colour(k), dashed: k.Family == locker.Scripts}
			for _, x := range d.Xs(scenario, as.metric) {
				if s := d.Spread(scenario, k.Name, as.metric, x); s.N > 0 {
					l.points = append(l.points, [2]float64{float64(x), s.Median})
				}
			}
			if len(l.points) > 0 {
				p.lines = append(p.lines, l)
			}
		}
		if err := os.WriteFile(filepath.Join(dir, as.file), []byte(p.svg()), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// colour is one for each locker in every plot, but zamok's is that of its floor. They are
// told apart also by those who see few colours.
func colour(k locker.Kind) string {
	switch {
	case k.Family == "redsync":
		return "#009e73"
	case k.Family == "redislock":
		return "#cc79a7"
	case k.Family == "rueidislock":
		return "#56b4e9"
	case k.On == "rueidis":
		return "#d55e00"
	}
	return "#0072b2"
}
