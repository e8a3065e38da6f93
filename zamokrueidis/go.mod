module github.com/zamok-go/zamok/zamokrueidis

go 1.25

require (
	github.com/redis/rueidis v1.0.19
	github.com/zamok-go/zamok v0.0.0
)

replace github.com/zamok-go/zamok => ../
