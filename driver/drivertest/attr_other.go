//go:build !linux

package drivertest

import "syscall"

func serverAttr() *syscall.SysProcAttr { return nil }
