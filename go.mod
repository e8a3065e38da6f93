module github.com/zamok-go/zamok

go 1.25
