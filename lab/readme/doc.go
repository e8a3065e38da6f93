// Package readme runs the code of README.md against a real server.
package readme
