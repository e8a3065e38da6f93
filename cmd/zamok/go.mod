module github.com/zamok-go/zamok/cmd/zamok

go 1.25

require (
	github.com/redis/go-redis/v9 v9.17.3
	github.com/rogpeppe/go-internal v1.13.1
	github.com/spf13/cobra v1.10.2
	github.com/spf13/pflag v1.0.9
	github.com/zamok-go/zamok v0.0.0
	github.com/zamok-go/zamok/zamokgoredis v0.0.0
	golang.org/x/sys v0.30.0
	golang.org/x/term v0.29.0
)

require (
	github.com/cespare/xxhash/v2 v2.3.0 // indirect
	github.com/cpuguy83/go-md2man/v2 v2.0.6 // indirect
	github.com/dgryski/go-rendezvous v0.0.0-20200823014737-9f7001d12a5f // indirect
	github.com/inconshreveable/mousetrap v1.1.0 // indirect
	github.com/russross/blackfriday/v2 v2.1.0 // indirect
	go.yaml.in/yaml/v3 v3.0.4 // indirect
	golang.org/x/tools v0.22.0 // indirect
)

replace (
	github.com/zamok-go/zamok => ../../
	github.com/zamok-go/zamok/zamokgoredis => ../../zamokgoredis
)
