// Package drivertest tries what package driver asks of a driver, against a real
// server and through a proxy that breaks connections at chosen moments.
//
// It is for tests only: [Run] is the conformance suite of a driver for a Redis
// client library, [RunScripts] is the part of it that needs no server, and
// [StartServer] and [StartProxy] are what it stands on, of use to any test that
// needs a server of its own or a fault at an exact point.
//
// Nothing here is skipped when something is missing: a test that needs a server
// and finds no redis-server binary fails and says how to install it.
package drivertest
