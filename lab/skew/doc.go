// Package skew starts servers for tests that live by a clock of the test's.
package skew
