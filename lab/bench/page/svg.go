package page

import (
	"fmt"
	"math"
	"strings"
)

// plot is lines in a field.
type plot struct {
	title, x, y string
	logX, logY  bool
	lines       []line
}

// line is one of them, with its points in the order of x.
type line struct {
	name   string
	colour string // of SVG
	dashed bool
	points [][2]float64
}

// The size of a plot, and of the field in it.
const (
	width, height         = 820, 440
	left, right           = 80, 590
	top, bottom           = 45, 385
	legendAt, legendEvery = 610, 22
)

// axis maps values to pixels.
type axis struct {
	from, to float64 // of values, after the logarithm if there is one
	at, till float64 // of pixels
	log      bool
}

func newAxis(values []float64, log bool, at, till float64) axis {
	a := axis{from: math.Inf(1), to: math.Inf(-1), at: at, till: till, log: log}
	for _, v := range values {
		if log {
			v = math.Log10(v)
		}
		a.from, a.to = min(a.from, v), max(a.to, v)
	}
	switch {
	case len(values) == 0:
		a.from, a.to = 0, 1
	case log:
		a.from, a.to = math.Floor(a.from), math.Ceil(a.to)
	default:
		a.from = min(a.from, 0)
	}
	if a.to <= a.from {
		a.to = a.from + 1
	}
	return a
}

func (a axis) pixel(v float64) float64 {
	if a.log {
		v = math.Log10(v)
	}
	return a.at + (v-a.from)/(a.to-a.from)*(a.till-a.at)
}

// ticks are powers of ten, or four to eight round steps.
func (a axis) ticks() []float64 {
	var all []float64
	if a.log {
		for e := a.from; e <= a.to; e++ {
			all = append(all, math.Pow(10, e))
		}
		return all
	}
	step := math.Pow(10, math.Floor(math.Log10(a.to-a.from)))
	for _, finer := range []float64{2, 2.5} {
		if (a.to-a.from)/step < 4 {
			step /= finer
		}
	}
	for i := math.Ceil(a.from / step); i*step <= a.to*(1+1e-9); i++ {
		all = append(all, i*step)
	}
	return all
}

// svg draws it. Points at or below zero are left out of a logarithmic field.
func (p plot) svg() string {
	var xs, ys []float64
	for i := range p.lines {
		var kept [][2]float64
		for _, at := range p.lines[i].points {
			if (!p.logX || at[0] > 0) && (!p.logY || at[1] > 0) {
				kept, xs, ys = append(kept, at), append(xs, at[0]), append(ys, at[1])
			}
		}
		p.lines[i].points = kept
	}
	x, y := newAxis(xs, p.logX, left, right), newAxis(ys, p.logY, bottom, top)
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" font-family="sans-serif" font-size="13">`+"\n", width, height)
	fmt.Fprintf(&b, `<rect width="%d" height="%d" fill="white"/>`+"\n", width, height)
	text(&b, (left+right)/2, 24, "middle", p.title)
	text(&b, (left+right)/2, height-12, "middle", p.x)
	fmt.Fprintf(&b, `<text transform="translate(20 %d) rotate(-90)" text-anchor="middle">%s</text>`+"\n", (top+bottom)/2, escape(p.y))
	for _, v := range x.ticks() {
		at := x.pixel(v)
		fmt.Fprintf(&b, `<path d="M%.1f %d V%d" stroke="#dddddd"/>`+"\n", at, top, bottom)
		text(&b, at, bottom+18, "middle", tick(v))
	}
	for _, v := range y.ticks() {
		at := y.pixel(v)
		fmt.Fprintf(&b, `<path d="M%d %.1f H%d" stroke="#dddddd"/>`+"\n", left, at, right)
		text(&b, left-8, at+4, "end", tick(v))
	}
	for i, l := range p.lines {
		l.draw(&b, x, y, float64(top+10+i*legendEvery))
	}
	b.WriteString("</svg>\n")
	return b.String()
}

// draw draws a line, its points, and its name beside the field at that height.
func (l line) draw(b *strings.Builder, x, y axis, at float64) {
	style := fmt.Sprintf(`stroke="%s" stroke-width="2" fill="none"`, l.colour)
	if l.dashed {
		style += ` stroke-dasharray="6 4"`
	}
	var path strings.Builder
	for i, p := range l.points {
		command := "L"
		if i == 0 {
			command = "M"
		}
		fmt.Fprintf(&path, "%s%.1f %.1f ", command, x.pixel(p[0]), y.pixel(p[1]))
		fmt.Fprintf(b, `<circle cx="%.1f" cy="%.1f" r="3" fill="%s"/>`+"\n", x.pixel(p[0]), y.pixel(p[1]), l.colour)
	}
	fmt.Fprintf(b, `<path d="%s" %s/>`+"\n", strings.TrimSpace(path.String()), style)
	fmt.Fprintf(b, `<path d="M%d %.1f h26" %s/>`+"\n", legendAt, at, style)
	text(b, legendAt+34, at+4, "start", l.name)
}

func text(b *strings.Builder, x, y float64, anchor, words string) {
	fmt.Fprintf(b, `<text x="%.1f" y="%.1f" text-anchor="%s">%s</text>`+"\n", x, y, anchor, escape(words))
}

func escape(words string) string {
	return strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;").Replace(words)
}

func tick(v float64) string {
	if v != 0 && math.Abs(v) < 1 {
		return fmt.Sprintf("%g", math.Round(v*1000)/1000)
	}
	return number(v, boundDigits(v))
}
